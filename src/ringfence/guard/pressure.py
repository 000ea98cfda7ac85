"""The moment at which memory runs out: what is told of it, and the end where nobody answers."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ringfence.guard.bound import Level
from ringfence.guard.gauge import Reading

ENDED = 75
"""Exit code of a run that its guard ended, or that a watch stopped in time: EX_TEMPFAIL, "try again later"."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """Why the run should stop."""

    cause: str
    """A sentence without its full stop: what limit was passed, or which signal came."""
    level: Level | None
    """The figures of the rule that decided; None for a signal."""
    trimmed: int
    """Bytes that malloc gave back before, which was not enough."""

    def __str__(self) -> str:
        trimmed = f", after a trim that gave {self.trimmed:,} bytes back" if self.trimmed else ""
        return f"{self.cause}{trimmed}"


def report(path: Path, pressure: Pressure, reading: Reading | None) -> None:
    """Write what is known to a file, the line that each thread is at included; to stderr where that cannot be."""
    lines = [
        f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} process {os.getpid()}: {' '.join(sys.argv)}",
        f"ended by its guard with exit code {ENDED}: {pressure}, and the training loop did not call step() meanwhile",
        *(f"{name} {value}" for name, value in (reading.metrics() if reading else {}).items()),
        *(f"child {child.pid} {child.held} {child.command}" for child in (reading.children or () if reading else ())),
        "",
    ]
    try:
        with path.open("w", encoding="utf-8") as file:
            file.write("\n".join(lines))
            file.flush()
            faulthandler.dump_traceback(file, all_threads=True)
            os.fsync(file.fileno())
    except OSError:
        with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr may be closed, or no file at all
            sys.stderr.write("\n".join(lines))
            faulthandler.dump_traceback(all_threads=True)
