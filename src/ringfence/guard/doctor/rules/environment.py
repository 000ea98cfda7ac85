"""The environment itself."""

from __future__ import annotations

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.finding import Finding
from ringfence.guard.doctor.rules.growth import held
from ringfence.guard.doctor.rules.held import HALF, holders, leak
from ringfence.units import format_bytes

KEPT = "Empty it in `reset`, or bound it."
NATIVE = """It leaks below Python: report it with a loop of random steps, take another version, or make the \
environment anew (in a process of its own) every so many episodes."""
LEAST, LEAST_STEP = 256 * 1024, 50.0
LATE = 0.25  # share of the growth in the second half of the steps: what only warms up has less


def environment(evidence: Evidence) -> list[Finding]:
    """Find containers in an environment that only grow, and growth of an environment that is stepped alone."""
    found = [
        leak(evidence, each, "environment", f"the environment keeps what happened: {each.path} only grows", KEPT)
        for each in holders(evidence, "environment")
    ]
    return found or _alone(evidence)


def _alone(evidence: Evidence) -> list[Finding]:
    alone = evidence.alone
    if (
        alone is None
        or held(evidence) > HALF * alone.growth / max(alone.steps, 1) * evidence.span
        or not leaks_alone(evidence)
    ):
        return []
    per_step = alone.growth / alone.steps
    seen = (
        (
            f"{alone.name}, stepped at random in a process with nothing else, added {format_bytes(alone.growth)} "
            f"in {alone.steps:,} steps, {format_bytes(alone.late)} of it in the second half"
        ),
        "no Python container in it grows",
    )
    title = f"the environment {alone.name} leaks by itself"
    rate = per_step * evidence.span / evidence.seconds if evidence.unit == "step" else 0.0
    return [Finding("environment", "leak", title, per_step, rate, seen, NATIVE, alone.growth)]


def leaks_alone(evidence: Evidence) -> bool:
    """Tell whether the environment grew when nothing but it ran."""
    alone = evidence.alone
    if alone is None or not alone.steps:
        return False
    enough = alone.growth >= LEAST and alone.growth / alone.steps >= LEAST_STEP
    return enough and alone.late >= max(LATE * alone.growth, LEAST / 4)
