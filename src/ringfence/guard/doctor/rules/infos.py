"""Info dicts that are kept."""

from __future__ import annotations

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.finding import Finding
from ringfence.guard.doctor.rules.held import holders, leak

ADVICE = """Take out of an info what you need, by value, and let the rest go (ringfence.integrations.info.clean_info \
does so): an info may hold observations, scans and whole episodes."""


def infos(evidence: Evidence) -> list[Finding]:
    """Find containers of info dicts that only grow."""
    return [
        leak(evidence, each, "infos", f"the info dicts of all steps are kept in {each.path}", ADVICE)
        for each in holders(evidence, "infos")
    ]
