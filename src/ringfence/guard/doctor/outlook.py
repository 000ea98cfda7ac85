"""Where the memory goes from here: the measured rate with its interval, and when the limit is reached at it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.finding import Finding
from ringfence.guard.doctor.rules.filling import rings
from ringfence.guard.doctor.rules.growth import trend


@dataclass(frozen=True, slots=True)
class Outlook:
    """The process's own memory in bytes a second, and the seconds until what is allowed is used up."""

    rate: float
    low: float
    high: float
    left: float
    """Seconds until the limit at this rate; infinity where it does not grow."""
    planned: int
    """Bytes that rings have still to come: this growth has an end."""

    @property
    def text(self) -> str:
        """Say in one line when it ends; empty where it does not grow without an end."""
        return "" if math.isinf(self.left) else f"at this rate the limit is reached in {lasting(self.left)}"


def outlook(evidence: Evidence, findings: list[Finding]) -> Outlook | None:
    """Look ahead; None where the run was looked at fewer than twice.

    A time is given only where a leak was found: growth that is explained has an end of its own.
    """
    if len(evidence.looks) < 2:
        return None
    line = trend(evidence)
    rate, low, high = (line.per_step, line.low, line.high) if line else (0.0, -math.inf, math.inf)
    leaks = [each for each in findings if each.level == "leak" and each.kind != "cuda"]
    speed = max(rate, sum(each.per_second for each in leaks)) if leaks else 0.0
    room = max(0, evidence.limit - evidence.used)
    planned = sum(ring.planned - ring.now for ring in rings(evidence))
    return Outlook(rate, low, high, room / speed if speed > 0 else math.inf, planned)


def lasting(seconds: float) -> str:
    """Write a time in the unit that fits: "3.5 hours"."""
    for size, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= size:
            return f"{seconds / size:,.1f} {name}"
    return f"{seconds:,.0f} seconds"
