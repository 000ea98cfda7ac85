"""Rings that will not fit into what this process is allowed."""

from __future__ import annotations

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.finding import Finding
from ringfence.guard.doctor.rules.filling import WORTH, filled, rings

MISREAD = """Size it from what this process may use, not from what the machine has: psutil.virtual_memory does not \
know the limit of a container; ringfence.memory_limit() does, and Replay(budget=...) keeps to it."""
LARGE = "Make it smaller: narrower dtypes, one frame in place of a stack, a smaller capacity, a ring on disk."


def limit(evidence: Evidence) -> list[Finding]:
    """Find rings that end above the limit, and say whether they were sized for the host."""
    found = rings(evidence)
    ahead = sum(ring.planned - ring.now for ring in found)
    if ahead < WORTH or ahead <= evidence.limit - evidence.used:
        return []
    misread = evidence.limit < evidence.host and ahead <= evidence.host
    return [filled(evidence, found, "limit", "warning", MISREAD if misread else LARGE)]
