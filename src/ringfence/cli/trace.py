"""The memory of this process over a run: as many measurements as fit a fixed table."""

from __future__ import annotations

import time

import numpy as np
import psutil
from numpy.typing import NDArray

ROOM = 1024
SECONDS = 0.5
SHARE = 100  # measurements of a run that is over in a minute


class Trace:
    """Measure resident memory at most twice a second and a hundred times a run, whichever is more often.

    Costs 16 KiB however long the run is: when the table is full, every other measurement is dropped and the next ones
    are taken half as often. On Linux, resident memory holds the pages of a shared mapping that this process touched.
    """

    def __init__(self, steps: int) -> None:
        self._table = np.full((2, ROOM), -1, np.int64)  # zeros would be paid for page by page, during the run
        self._count = 0
        self.full_at: int | None = None
        self.full: int | None = None
        self._process = psutil.Process()
        self._started = time.perf_counter()
        self._seconds, self._steps = SECONDS, max(1, steps // SHARE)
        self._last_seconds, self._last_step = -SECONDS, -self._steps

    def due(self, step: int) -> bool:
        """Tell whether it is time to measure."""
        return step - self._last_step >= self._steps or self.seconds - self._last_seconds >= self._seconds

    def measure(self, step: int, *, turning: bool = False) -> int:
        """Note the resident memory after so many steps, and when the ring first was turning; give the memory."""
        resident = self.resident()
        if self._count == ROOM:
            self._thin()
        self._last_step, self._last_seconds = step, self.seconds
        self._table[:, self._count] = step, resident
        self._count += 1
        if turning and self.full_at is None:
            self.full_at, self.full = step, resident
        return resident

    def resident(self) -> int:
        """Give the resident memory of this process now."""
        return int(self._process.memory_info().rss)

    def _thin(self) -> None:
        self._count = ROOM // 2
        self._table[:, : self._count] = self._table[:, ::2]
        self._seconds, self._steps = 2 * self._seconds, 2 * self._steps

    @property
    def seconds(self) -> float:
        """Seconds since the trace was begun."""
        return time.perf_counter() - self._started

    @property
    def steps(self) -> NDArray[np.int64]:
        """The step of each measurement."""
        return self._table[0, : self._count]

    @property
    def nbytes(self) -> NDArray[np.int64]:
        """The resident memory of each measurement."""
        return self._table[1, : self._count]
