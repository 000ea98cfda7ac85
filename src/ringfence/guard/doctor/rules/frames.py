"""Video frames that are never let go."""

from __future__ import annotations

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.finding import Finding
from ringfence.guard.doctor.rules.held import holders, leak

ADVICE = """Let go of the frames: write each to its file as it comes, record one episode in many, empty the list at \
`reset`, or leave the wrapper out of training."""


def frames(evidence: Evidence) -> list[Finding]:
    """Find containers of rendered pictures that only grow."""
    return [
        leak(evidence, each, "frames", f"rendered frames are kept in {each.path}{_where(each.inside)}", ADVICE)
        for each in holders(evidence, "frames")
    ]


def _where(inside: str) -> str:
    return f", by {inside}" if inside else ""
