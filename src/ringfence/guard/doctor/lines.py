"""Which lines of the script allocate what stays: a short window of tracemalloc at the end of the watch."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

from ringfence.guard.doctor.evidence import Line

WINDOW, DEEP = 0.6, 4.0  # seconds
ENOUGH, DEEP_ENOUGH = 2 * 2**20, 32 * 2**20  # bytes traced, at which the window closes: to read traces takes long
PERIOD = 0.02
FRAMES, DEEP_FRAMES = 6, 20
SHOWN = 8


def lines(own: Callable[[str], bool], *, deep: bool) -> tuple[Line, ...]:
    """Trace allocations for a moment, and name the script's lines that still hold most at its end."""
    if tracemalloc.is_tracing():  # the script does so itself: not ours to stop
        return ()
    tracemalloc.start(DEEP_FRAMES if deep else FRAMES)
    try:
        end = time.monotonic() + (DEEP if deep else WINDOW)
        while time.monotonic() < end and tracemalloc.get_traced_memory()[0] < (DEEP_ENOUGH if deep else ENOUGH):
            time.sleep(PERIOD)
        snapshot = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    sizes: dict[str, tuple[int, int]] = {}
    for trace in snapshot.traces:
        frame = next((each for each in reversed(trace.traceback) if own(each.filename)), None)
        if frame is not None:
            where = f"{frame.filename}:{frame.lineno}"
            nbytes, count = sizes.get(where, (0, 0))
            sizes[where] = (nbytes + trace.size, count + 1)
    largest = sorted(sizes.items(), key=lambda each: -each[1][0])[:SHOWN]
    return tuple(Line(where, nbytes, count) for where, (nbytes, count) in largest)
