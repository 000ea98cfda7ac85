"""Time calls and read resident memory, in the process that is measured.

Times are processor time, not time on the wall: with one thread on an otherwise idle processor they are the same, and on
a busy one the turns of other processes are left out.
"""

import ctypes
import gc
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from time import process_time
from typing import Any

Timer = Callable[[int], float]
"""Makes this many calls and returns the seconds they took."""

ALIVE = 0.02
"""Seconds a calibration must last before its rate is believed."""


def calls(function: Callable[..., object], *args: object) -> Timer:
    """Time `function(*args)`, again and again."""

    def run(count: int) -> float:
        begin = process_time()
        for _ in range(count):
            function(*args)
        return process_time() - begin

    return run


def stream(function: Callable[..., object], rows: Iterable[tuple[Any, ...]]) -> Timer:
    """Time `function(*row)` over endless rows that exist already; each chunk goes on where the last one stopped."""
    rest = iter(rows)

    def run(count: int) -> float:
        begin = process_time()
        for row in islice(rest, count):
            function(*row)
        return process_time() - begin

    return run


def made(function: Callable[..., object], rows: Iterable[tuple[Any, ...]]) -> Timer:
    """Time `function(*row)` alone, over endless rows too big to keep: eight are made, then their calls are timed."""
    rest = iter(rows)

    def run(count: int) -> float:
        total = 0.0
        for begun in range(0, count, 8):
            few = list(islice(rest, min(8, count - begun)))
            begin = process_time()
            for row in few:
                function(*row)
            total += process_time() - begin
        return total

    return run


def forever(rows: Callable[[], Iterator[tuple[Any, ...]]]) -> Iterator[tuple[Any, ...]]:
    """Start `rows()` anew each time it ends."""
    return chain.from_iterable(iter(rows, None))


def calibrate(timer: Timer, seconds: float) -> int:
    """Find how many calls take about `seconds`; serves as warm-up too."""
    count = 1
    while (spent := timer(count)) < ALIVE:
        count *= 2
    return max(1, round(seconds * count / spent))


def chunk(timer: Timer, count: int) -> float:
    """Return microseconds a call over `count` calls, after a few untimed ones that bring the caches back."""
    timer(1 + count // 20)
    return timer(count) / count * 1e6


def resident() -> int:
    """Return the bytes of memory that only this process's own data occupies.

    Anonymous and shared pages, so that a ring in a shared mapping counts; pages of files (libraries, recorded frames)
    do not.
    Freed memory is given back first, so that allocator slack does not count either.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    fields = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return sum(int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssShmem"))
