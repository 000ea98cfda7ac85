"""Being asked to stop: Ctrl-C and a terminating scheduler end a run between two steps."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ASKING = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Tell whether a signal asked to stop."""

    def __init__(self) -> None:
        self.asked = False


@contextmanager
def stopping() -> Iterator[Stop]:
    """Note a signal that asks to stop in place of dying of it; a second one acts as it always did."""
    stop = Stop()
    before = {number: signal.getsignal(number) for number in ASKING}

    def note(_number: int, _frame: FrameType | None) -> None:
        stop.asked = True
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in ASKING:
        signal.signal(number, note)
    try:
        yield stop
    finally:
        restore()
