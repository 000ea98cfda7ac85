"""Being asked to stop: Ctrl-C and a terminating scheduler end a run between two steps."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any

ASKING = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Note, while it is entered, that a signal asked to stop; a second one acts as it always did."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Stop:
        self._before = {number: signal.signal(number, self._note) for number in ASKING}
        return self

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
        self._restore()

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._restore()

    def _restore(self) -> None:
        while self._before:
            signal.signal(*self._before.popitem())
