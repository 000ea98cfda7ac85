"""The doctor's rules: each reads the evidence and names one cause, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.finding import Finding, ranked
from ringfence.guard.doctor.rules.arrays import arrays
from ringfence.guard.doctor.rules.children import children
from ringfence.guard.doctor.rules.cuda import cuda
from ringfence.guard.doctor.rules.environment import environment
from ringfence.guard.doctor.rules.episodes import episodes
from ringfence.guard.doctor.rules.files import files
from ringfence.guard.doctor.rules.filling import filling
from ringfence.guard.doctor.rules.frames import frames
from ringfence.guard.doctor.rules.graph import graph
from ringfence.guard.doctor.rules.infos import infos
from ringfence.guard.doctor.rules.limit import limit
from ringfence.guard.doctor.rules.native import native
from ringfence.guard.doctor.rules.objects import objects
from ringfence.guard.doctor.rules.slack import slack
from ringfence.guard.doctor.rules.storage import storage
from ringfence.guard.doctor.rules.workers import workers

__all__ = ["RULES", "diagnose"]

Rule = Callable[[Evidence], Sequence[Finding]]
RULES: tuple[Rule, ...] = (
    graph,
    frames,
    infos,
    environment,
    episodes,
    arrays,
    objects,
    workers,
    children,
    slack,
    native,
    cuda,
    limit,
    storage,
    filling,
    files,
)


def diagnose(evidence: Evidence) -> list[Finding]:
    """Ask every rule; give what they found, the worst first."""
    if len(evidence.looks) < 2:
        return []
    return ranked([finding for rule in RULES for finding in rule(evidence)])
