"""Rings that fill as planned: growth with an end."""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.finding import Finding
from ringfence.guard.doctor.rules.held import holders
from ringfence.units import format_bytes

ADVICE = """It is no leak. To know at once whether it fits, have it paid for when it is made: fill the arrays once, \
or use ringfence.Replay, which does so and refuses what does not fit."""
LEAST = 128 * 1024  # bytes added while watched
WORTH = 64 * 2**20  # bytes still to come, below which nobody needs to know


@dataclass(frozen=True, slots=True)
class Ring:
    """Something that grows up to a known size."""

    name: str
    now: int
    planned: int
    growth: int


def rings(evidence: Evidence) -> list[Ring]:
    """List what fills, as containers with a bound and as arrays whose pages are not all there yet."""
    bounded = [
        Ring(
            f"{each.path} ({each.kind}, {each.bound_name} {each.bound:,})",
            each.last,
            int(each.last / max(each.length or 1, 1) * (each.bound or 0)),
            each.growth,
        )
        for each in holders(evidence, "filling")
    ]
    lazy = [
        Ring(f"{each.path} ({each.kind} {each.dtype} {each.shape})", each.last, each.nbytes, each.last - each.first)
        for each in evidence.buffers
        if each.kind != "memmap" and each.last - each.first > 0
    ]
    return bounded + lazy


def filling(evidence: Evidence) -> list[Finding]:
    """Tell where rings are filling, how large they become, and when."""
    found = rings(evidence)
    growth, ahead = sum(ring.growth for ring in found), sum(ring.planned - ring.now for ring in found)
    room = evidence.limit - evidence.used
    if growth < LEAST or ahead < WORTH or ahead > room:  # what does not fit is the limit's to tell
        return []
    return [filled(evidence, found, "filling", "note", ADVICE)]


def filled(evidence: Evidence, found: list[Ring], kind: str, level: str, advice: str) -> Finding:
    """Make the finding: what fills, to which size, and when it is full."""
    growth, planned = sum(ring.growth for ring in found), sum(ring.planned for ring in found)
    ahead = planned - sum(ring.now for ring in found)
    rate = growth / evidence.seconds
    seen = [f"{ring.name}: {format_bytes(ring.now)} of {format_bytes(ring.planned)}" for ring in found[:4]]
    steps = f", at {evidence.unit} {evidence.looks[-1].steps + ahead / growth * evidence.span:,.0f}" if growth else ""
    seen.append(f"full in {ahead / max(rate, 1e-9) / 60:,.1f} minutes{steps}, with {format_bytes(ahead)} more than now")
    title = f"a ring fills as planned, to {format_bytes(planned)}"
    if kind == "limit":
        title = f"a ring is to become {format_bytes(planned)}, and {format_bytes(evidence.limit)} are allowed"
        seen.append(
            f"{evidence.limit_rule} allows {format_bytes(evidence.limit)}, {format_bytes(evidence.used)} are used; "
        )
        seen[-1] += f"the machine has {format_bytes(evidence.host)}"
    per_step = growth / evidence.span if evidence.unit != "second" else 0.0
    return Finding(kind, level, title, per_step, rate, tuple(seen), advice, planned)  # type: ignore[arg-type]
