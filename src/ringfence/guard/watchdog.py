"""The guard of a training run: reads memory beside it, and stops it between two steps with everything saved."""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from ringfence.errors import MemoryPressure
from ringfence.guard.bound import Bound
from ringfence.guard.pressure import Pressure
from ringfence.guard.sentry import Sentry
from ringfence.guard.watched import Watched

if TYPE_CHECKING:
    from typing_extensions import Self

OnPressure = Callable[[Pressure], Any]


class Guard:
    """Stop a training run before memory does, between two steps and with everything saved.

    A thread reads memory twice a second, more often when it grows fast. Over the limit it first has malloc give free
    pages back, where those explain the excess. If that is not enough, the next `step()` calls `on_pressure`, saves the
    replay and raises MemoryPressure. SIGTERM, which schedulers send before they kill, is answered likewise.

    A second, higher limit is for a loop that does not come round: passed in reading after reading for `patience`
    seconds, it writes a report and ends the process with exit code 75. Readings that fail or take over a second never
    count for that. Nothing is ever deleted.

    Use it as a context, from one thread. In a forked child the guard is without effect.

    Args:
        limit: "80%": of each limit of the machine (control groups, `ulimit`, host), each with what counts against it.
            "2 GiB": of what this process and those below it hold; pages of files, which the kernel can drop, are not
            counted. The machine's own limits are then kept to 95 %.
        replay: What to save: a Replay, or anything with `nbytes` and `save(path)`.
        save_to: Where to.
        on_pressure: Called in `step()` with a :class:`~ringfence.guard.Pressure`. If it returns True, the matter is
            dealt with: nothing is saved or raised, and it is not called again before memory was below the limit. Over
            the hard limit what it returns does not count.
        hard: The second limit, in the same unit; unless given, half way to 100 %, or an eighth above a size.
        every: Seconds between two readings.
        patience: Seconds over the hard limit, without a call of `step()`, after which the process is ended; None for
            never.
        report_to: File for the report; unless given, `save_to` or "ringfence" with "-pressure.txt" behind.
        sigterm: Answer SIGTERM. Only the main thread can; in another one it is left alone.

    Raises:
        ValueError: A limit cannot be read, the hard one is not above the other, or `save_to` comes without a replay.
        TypeError: The replay has no `nbytes` or no `save`.
    """

    __slots__ = ("_before", "_called", "_on_pressure", "_pid", "_replay", "_save_to", "_sentry", "_sigterm")

    def __init__(
        self,
        limit: float | str = "80%",
        replay: Watched | None = None,
        save_to: str | PathLike[str] | None = None,
        on_pressure: OnPressure | None = None,
        *,
        hard: float | str | None = None,
        every: float = 0.5,
        patience: float | None = 30.0,
        report_to: str | PathLike[str] | None = None,
        sigterm: bool = True,
    ) -> None:
        soft = Bound.parse(limit)
        harder = soft.above() if hard is None else Bound.parse(hard, "hard")
        _check(soft, harder, every, patience)
        _check_replay(replay, save_to)
        self._called = False
        self._replay, self._on_pressure = replay, on_pressure
        self._save_to = None if save_to is None else Path(save_to)
        place = Path(f"{save_to or 'ringfence'}-pressure.txt") if report_to is None else Path(report_to)
        readings = None if patience is None else math.ceil(patience / every)
        self._sentry = Sentry(soft, harder, self._call, every=every, readings=readings, report=place)
        self._sigterm = sigterm
        self._before: Any = None
        self._pid = os.getpid()

    def __enter__(self) -> Self:
        """Start the thread, and take SIGTERM over."""
        self._pid, self._called = os.getpid(), False
        self._sentry.start()
        if self._sigterm and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the thread, and give SIGTERM back."""
        self._sentry.stop()
        if self._before is not None and signal.getsignal(signal.SIGTERM) == self._note:
            signal.signal(signal.SIGTERM, self._before)
        self._before = None

    def step(self) -> None:
        """Answer what the guard has found since the last call: nothing, most of the time, in some 30 ns.

        Call it where the run may stop: after a step was added.

        Raises:
            MemoryPressure: The limit was passed or SIGTERM came. Where there is a `save_to`, the replay has been saved
                there; the text says so, or why it could not be.
        """
        if self._called:
            self._answer()

    @property
    def pressure(self) -> Pressure | None:
        """What the next `step()` will answer; None while all is well."""
        return self._sentry.pressure

    def metrics(self) -> dict[str, float]:
        """Give the figures of the last reading as one flat dict of numbers, for TensorBoard, W&B or a line of text."""
        found = self._sentry.metrics()
        if self._replay is not None:
            found["replay/nbytes"] = int(self._replay.nbytes)
        return found

    def _call(self) -> None:
        self._called = True

    def _note(self, number: int, frame: FrameType | None) -> None:
        """Take a SIGTERM down; a second one, and one to a forked child, acts as it did before."""
        del number, frame
        before = self._before
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
        if os.getpid() != self._pid:
            os.kill(os.getpid(), signal.SIGTERM)
            return
        self._sentry.signalled("SIGTERM")
        self._called = True

    def _answer(self) -> None:
        if os.getpid() != self._pid:
            self._called = False
            return
        self._called = False
        with self._sentry.answering() as pressure:
            if pressure is None:
                return
            dealt = self._on_pressure is not None and self._on_pressure(pressure) is True
            if dealt and not self._sentry.hard:
                return
            self._stop(pressure)

    def _stop(self, pressure: Pressure) -> None:
        if self._replay is None or self._save_to is None:
            raise MemoryPressure(f"{pressure}; the run stops here, and nothing was saved: there is no save_to")
        try:
            self._replay.save(self._save_to)
        except Exception as error:
            raise MemoryPressure(f"{pressure}; saving to {self._save_to} failed: {error}") from error
        raise MemoryPressure(f"{pressure}; everything was saved to {self._save_to}: load it to go on")


def _check(soft: Bound, hard: Bound, every: float, patience: float | None) -> None:
    if (soft.size is None) != (hard.size is None):
        kind = "a share" if soft.size is None else "a size"
        raise ValueError(f"hard: expected {kind} like the limit, got {hard.text!r}")
    if (hard.size or hard.share) <= (soft.size or soft.share) and hard.share < 1:
        raise ValueError(f"hard: expected more than the limit of {soft.text}, got {hard.text!r}")
    if not every > 0:
        raise ValueError(f"every: expected seconds above zero, got {every!r}")
    if patience is not None and not patience > 0:
        raise ValueError(f"patience: expected seconds above zero, or None, got {patience!r}")


def _check_replay(replay: Any, save_to: Any) -> None:
    if replay is None:
        if save_to is not None:
            raise ValueError(f"save_to: there is no replay to save to {save_to}; pass replay=, or use on_pressure=")
        return
    lacking = [name for name in ("nbytes", "save") if not hasattr(replay, name)]
    if lacking:
        raise TypeError(f"replay: expected nbytes and save(path), and {type(replay).__name__} lacks {lacking}")
