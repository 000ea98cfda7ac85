# Loops in C; each has a NumPy twin in the file of this room that calls it.

from typing_extensions import Buffer

def gather(records: Buffer, itemsize: int, rows: Buffer, spans: Buffer, outs: tuple[Buffer, ...], /) -> None: ...
def nstep(
    records: Buffer,
    itemsize: int,
    rows: Buffer,
    room: Buffer,
    ring: tuple[int, int],
    final_offset: int,
    reward_offset: int,
    reward_size: int,
    gammas: Buffer,
    returns: Buffer,
    steps: Buffer,
    lasts: Buffer,
    /,
) -> None: ...
def tree_put(nodes: Buffer, lows: Buffer, starts: Buffer, size: int, rows: Buffer, values: Buffer, /) -> None: ...
def tree_mend(nodes: Buffer, lows: Buffer, starts: Buffer, first: int, last: int, /) -> None: ...
def tree_running(nodes: Buffer, starts: Buffer, prefix: Buffer, /) -> None: ...
def tree_find(
    nodes: Buffer, starts: Buffer, prefix: Buffer, masses: Buffer, rows: Buffer, leaves: Buffer, /
) -> None: ...
