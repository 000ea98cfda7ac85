"""How a long run is doing: a line that is written over on a terminal, a line now and then in a log."""

from __future__ import annotations

import os
import shutil
import sys
import time

from ringfence.units import format_bytes

BAR = 24  # characters
LINES = 10  # in a log, for a whole run
QUIET = 60  # seconds at most between two of them
CLEAR = "\r\x1b[K"


class Progress:
    """Show steps, rate, resident memory and how full the ring is, on stderr.

    Not by rich: its caches keep every text that they have measured, 2.4 KB for each time a live bar is drawn, and a
    watch on memory must not be what grows.
    """

    def __init__(self, steps: int, capacity: int) -> None:
        self._steps, self._capacity = steps, capacity
        self._live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._stride = max(1, steps // LINES)
        self._began = time.perf_counter()
        self._seen = (0, self._began)
        self._next, self._late = self._stride, self._began + QUIET

    def stage(self, text: str) -> None:
        """Say what is being done before the first step."""
        self._began = time.perf_counter()
        self._seen = (0, self._began)
        self._show(text)

    def update(self, made: int, resident: int, held: int) -> None:
        """Show the figures of this moment."""
        before, then = self._seen
        now = time.perf_counter()
        self._seen = made, now
        rate = f"{(made - before) / max(now - then, 1e-9):,.0f} steps/s"
        figures = f"{rate}, resident {format_bytes(resident)}, ring {held / self._capacity:.0%}"
        if self._live:
            text = f"{made / self._steps:4.0%} {made:,} steps, {figures}, {self._left(made, now)}"
            self._show(self._bar(made, room=shutil.get_terminal_size().columns - len(text) - 1) + text)
        elif made >= self._next or now >= self._late:
            self._next, self._late = made - made % self._stride + self._stride, now + QUIET
            self._show(f"{made:,} of {self._steps:,} steps, {figures}")

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._live:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()

    def _show(self, text: str) -> None:
        if self._live:
            sys.stderr.write(CLEAR + text[: shutil.get_terminal_size().columns - 1])
        else:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def _bar(self, made: int, room: int) -> str:
        width = min(BAR, room - 2)
        return f"[{'#' * int(min(1.0, made / self._steps) * width):-<{width}}]" if width >= BAR // 4 else ""

    def _left(self, made: int, now: float) -> str:
        seconds = int((self._steps - made) * (now - self._began) / made) if made else 0
        return f"{max(0, seconds) // 60}:{max(0, seconds) % 60:02}"
