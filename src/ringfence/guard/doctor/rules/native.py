"""Growth that nothing in Python explains."""

from __future__ import annotations

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.finding import Finding
from ringfence.guard.doctor.rules.environment import leaks_alone
from ringfence.guard.doctor.rules.graph import graph
from ringfence.guard.doctor.rules.growth import grown, held, steady, trend
from ringfence.guard.doctor.rules.held import allocated
from ringfence.guard.doctor.rules.objects import objects
from ringfence.units import format_bytes

ADVICE = """Something below Python holds it: a library written in C, a thread's arena, a driver. Watch for longer \
(--seconds 120), leave parts of the loop out one by one, or run it under memray with --native."""
LEAST, SHARE = 6 * 2**20, 0.5


def native(evidence: Evidence) -> list[Finding]:
    """Tell of steady growth of which no other rule explains even half."""
    rise, line = grown(evidence), trend(evidence)
    rest = rise - held(evidence) - (evidence.trimmed or 0)
    sure = line is not None and line.low > 0 and steady(evidence)
    if (
        not sure
        or rest < LEAST
        or rest < SHARE * rise
        or graph(evidence)  # what a graph has saved is below Python too, and belongs to it
        or leaks_alone(evidence)
        or objects(evidence)
    ):
        return []
    seen = [
        f"the process grew by {format_bytes(rise)} between the looks, all the time",
        f"containers and arrays explain {format_bytes(held(evidence))}, slack {format_bytes(evidence.trimmed or 0)}",
    ]
    first, last = evidence.looks[0].heap_used, evidence.looks[-1].heap_used
    if first is not None and last is not None:
        seen.append(f"malloc handed out {format_bytes(last - first)} more")
    per_step = rest / evidence.span if evidence.unit != "second" else 0.0
    title = "memory grows below Python, and no object accounts for it"
    return [
        Finding(
            "native", "leak", title, per_step, rest / evidence.seconds, tuple(seen + allocated(evidence)), ADVICE, rest
        )
    ]
