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

    Costs 32 KiB however long the run is: when the table is full, every other measurement is dropped and the next ones
    are taken half as often. On Linux, resident memory holds the pages of a shared mapping that this process touched.
    """

    def __init__(self, steps: int) -> None:
        self._table = np.zeros((4, ROOM), np.int64)
        self._count = 0
        self._process = psutil.Process()
        self._started = time.perf_counter()
        self._seconds, self._steps = SECONDS, max(1, steps // SHARE)
        self._last_seconds, self._last_step = -SECONDS, -self._steps

    def due(self, step: int) -> bool:
        """Tell whether it is time to measure."""
        late = time.perf_counter() - self._started - self._last_seconds
        return step - self._last_step >= self._steps or late >= self._seconds

    def measure(self, step: int, held: int) -> int:
        """Note the resident memory after so many steps; give it."""
        resident = self.resident()
        if self._count == ROOM:
            self._thin()
        self._last_step, self._last_seconds = step, self.seconds
        self._table[:, self._count] = step, int(self._last_seconds * 1000), resident, held
        self._count += 1
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
        return self._table[2, : self._count]

    @property
    def held(self) -> NDArray[np.int64]:
        """The transitions held at each measurement."""
        return self._table[3, : self._count]
