"""The thread that reads: it notes pressure for the loop to answer, and ends the process only where no one does."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ringfence.guard.bound import Bound, Level, rules
from ringfence.guard.gauge import Reading, gauge, own_held
from ringfence.guard.heap import heap, trim
from ringfence.guard.pressure import ENDED, Pressure, report

STALE = 1.0  # seconds; a reading that took longer tells of a moment that is over
FASTER = 10  # times as many readings where the limit is near
NEAR = 2  # readings ahead
REST = 20  # readings between two trims: what a trim gives back is soon faulted in again

_log = logging.getLogger("ringfence")


class Sentry:
    """Read memory in a thread of its own.

    All that decides lies in one reading at a time: if reading fails or hangs, nothing is decided. Patience is counted
    in readings, so that the time in which a machine slept does not use it up.
    """

    def __init__(
        self, soft: Bound, hard: Bound, call: Callable[[], None], *, every: float, readings: int | None, report: Path
    ) -> None:
        self._soft, self._hard, self._call = soft, hard, call
        self._every, self._patience, self._report = every, readings, report
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._level: Level | None = None
        self._rest = self._over = self._trims = self._trimmed = self._failures = self._pressures = 0
        self._answering = self._dealt = False
        self.pressure: Pressure | None = None
        self.hard = False
        """Whether the last reading was over the second limit."""

    def start(self) -> None:
        """Begin to read; the first reading is made before this returns."""
        if self._thread is not None:
            raise RuntimeError("this guard is entered already; make another one for another run")
        self.pressure, self.hard, self._dealt, self._over = None, False, False, 0
        self._ended.clear()
        self.look()
        self._thread = threading.Thread(target=self._run, name="ringfence-guard", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; one that hangs in a reading is left behind, and does nothing any more."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=STALE)
        self._thread = None

    def signalled(self, name: str) -> None:
        """Note that a signal asked to stop."""
        self.pressure = Pressure(f"the process was asked to stop by {name}", None, 0)

    @contextlib.contextmanager
    def answering(self) -> Iterator[Pressure | None]:
        """Give the pressure to answer; until the answer is over the process is not ended."""
        self._answering = True
        try:
            yield self.pressure
        finally:
            self.pressure = None
            self._dealt, self._over, self._answering = True, 0, False

    def metrics(self) -> dict[str, float]:
        """Give a fresh reading and what was counted."""
        level = self._level
        found: dict[str, float] = dict(gauge().metrics())
        if level is not None:
            found |= {"guard/used": level.used, "guard/limit": level.limit, "guard/share": level.share}
        found |= {"guard/pressures": self._pressures, "guard/trims": self._trims, "guard/trimmed": self._trimmed}
        found["guard/failures"] = self._failures
        return found

    def _run(self) -> None:
        wait = self._every
        while not self._ended.wait(wait):
            before = self._level
            try:
                self.look()
            except Exception:  # noqa: BLE001  # out of memory, or of files: whatever it is, the run goes on
                self._failures += 1
                self._over = 0
            wait = self._every / FASTER if self._near(before) else self._every

    def _near(self, before: Level | None) -> bool:
        """Tell whether the limit will be passed within two readings, if it goes on like that."""
        now = self._level
        if now is None or before is None or now.name != before.name:
            return False
        return now.share < 1 <= now.share + NEAR * (now.share - before.share)

    def look(self) -> None:
        """Read once, and decide."""
        began = time.monotonic()
        machine = rules()
        held = own_held() if self._soft.size is not None else None
        level = self._soft.worst(lambda: held, machine)
        harder = self._hard.worst(lambda: held, machine)
        fresh = time.monotonic() - began < STALE
        if self._ended.is_set():  # it was left while we read
            return
        self._level, self._rest = level, max(0, self._rest - 1)
        self.hard = harder is not None and harder.share >= 1
        if level is None or level.share < 1:
            self._dealt, self._over = False, 0
            if self.pressure is not None and self.pressure.level is not None:
                self.pressure = None  # the loop finds nothing to answer
            return
        if self.pressure is None and (not self._dealt or self.hard) and not self._answering:
            self._press(level)
        self._judge(harder, fresh=fresh)

    def _press(self, level: Level) -> None:
        trimmed = self._slacken(level)
        if trimmed > level.excess:
            return  # the next reading tells whether it did
        self.pressure = Pressure(f"memory passed the limit of {self._soft.text}: {level}", level, trimmed)
        self._pressures += 1
        _log.warning("%s", self.pressure)
        self._call()

    def _slacken(self, level: Level) -> int:
        """Trim where slack explains the excess; tell what that gave."""
        heaped = heap()
        if self._rest or heaped is None or heaped[1] - heaped[0] <= level.excess:
            return 0
        self._rest = REST
        given = trim() or 0
        self._trims, self._trimmed = self._trims + 1, self._trimmed + given
        return given

    def _judge(self, harder: Level | None, *, fresh: bool) -> None:
        """End the process if it is over the second limit for long, by fresh readings, and nobody answers."""
        if not self.hard or not fresh or self._answering or self.pressure is None:
            self._over = 0
            return
        self._over += 1
        if self._patience is None or self._over < self._patience:
            return
        last = Pressure(f"memory passed the hard limit of {self._hard.text}: {harder}", harder, self._trimmed)
        report(self._report, last, _reading())
        os._exit(ENDED)


def _reading() -> Reading | None:
    try:
        return gauge()
    except Exception:  # noqa: BLE001  # the report is written with what there is
        return None
