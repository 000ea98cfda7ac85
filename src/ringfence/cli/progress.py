"""How a long run is doing: a live line on a terminal, a line now and then in a log."""

from __future__ import annotations

import time

from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from ringfence.cli import show
from ringfence.units import format_bytes

LINES = 10  # in a log, for a whole run
QUIET = 60  # seconds at most between two of them


class Progress:
    """Show steps, rate, resident memory and how full the ring is, on stderr.

    Drawn only when told, from the thread that tells: one that draws by itself would take its time from the run.
    """

    def __init__(self, steps: int, capacity: int) -> None:
        self._steps, self._capacity = steps, capacity
        self._page = show.console(stderr=True)
        self._live = self._page.is_terminal
        columns = ("{task.description}", "{task.fields[rate]}", "{task.fields[memory]}", "{task.fields[ring]}")
        texts = [TextColumn(column, markup=False) for column in columns]
        self._bar = Bar(
            texts[0],
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            *texts[1:],
            TimeRemainingColumn(),
            console=self._page,
            auto_refresh=False,
            transient=True,
            disable=not self._live,
        )
        self._task = self._bar.add_task("", total=steps, rate="", memory="", ring="")
        self._seen = (0, time.perf_counter())
        self._stride = max(1, steps // LINES)
        self._next, self._late = self._stride, time.perf_counter() + QUIET
        self._bar.start()

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._bar.stop()

    def stage(self, text: str) -> None:
        """Say what is being done before the first step."""
        self._seen = 0, time.perf_counter()
        if self._live:
            self._bar.update(self._task, description=text, refresh=True)
        else:
            self._page.print(text)

    def update(self, made: int, resident: int, held: int) -> None:
        """Show the figures of this moment."""
        before, then = self._seen
        now = time.perf_counter()
        rate = f"{(made - before) / max(now - then, 1e-9):,.0f} steps/s"
        self._seen = made, now
        memory, ring = f"resident {format_bytes(resident)}", f"ring {held / self._capacity:.0%}"
        if self._live:
            steps = f"{made:,} steps"
            self._bar.update(
                self._task, completed=made, description=steps, rate=rate, memory=memory, ring=ring, refresh=True
            )
        elif made >= self._next or now >= self._late:
            self._next, self._late = made - made % self._stride + self._stride, now + QUIET
            self._page.print(f"{made:,} of {self._steps:,} steps, {rate}, {memory}, {ring}")
