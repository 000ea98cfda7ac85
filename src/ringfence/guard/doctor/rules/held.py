"""What kind of thing a growing container is: each belongs to exactly one rule."""

from __future__ import annotations

from ringfence.guard.doctor.evidence import Evidence, Holder
from ringfence.guard.doctor.finding import Finding, Kind
from ringfence.units import format_bytes

HALF = 0.5
ENDS = 2  # episodes that ended while watched, from which on a list that none of them emptied is never emptied
CROWD = 16  # infos below something that has no length


def kind_of(holder: Holder, resets: int) -> Kind:
    """Decide what a holder is, by what is in it before who has it."""
    infos = holder.infos if holder.length is not None else holder.infos / CROWD
    tests: tuple[tuple[Kind, bool], ...] = (
        ("filling", holder.bound is not None),
        ("graph", holder.graphs >= HALF and holder.length is not None),
        ("frames", holder.frames >= HALF),
        ("infos", infos >= HALF),
        ("environment", bool(holder.inside)),
        ("episodes", holder.episodes or (bool(holder.emptied_by) and resets >= ENDS)),
        ("arrays", holder.arrays >= HALF),
    )
    return next((kind for kind, holds in tests if holds), "objects")


def holders(evidence: Evidence, kind: Kind) -> list[Holder]:
    """Give the growing containers of a kind."""
    return [holder for holder in evidence.holders if kind_of(holder, evidence.resets) == kind]


def leak(evidence: Evidence, holder: Holder, kind: Kind, title: str, advice: str) -> Finding:
    """Make the finding of a container that only grows."""
    return Finding(
        kind=kind,
        level="leak",
        title=title,
        per_step=holder.growth / evidence.span if evidence.unit != "second" else 0.0,
        per_second=holder.growth / evidence.seconds,
        evidence=tuple(_seen(evidence, holder)),
        advice=advice,
        nbytes=holder.last,
    )


def _seen(evidence: Evidence, holder: Holder) -> list[str]:
    lines = [f"{holder.path} ({holder.kind}) went from {format_bytes(holder.first)} to {format_bytes(holder.last)}"]
    if holder.length is not None and holder.added:
        lines.append(
            f"it has {holder.length:,} entries and gains {holder.added:,.3g} a {evidence.unit}, without ever losing one"
        )
    if holder.parts > 1:
        lines.append(f"{holder.parts} containers inside of it grow alike")
    if holder.element:
        lines.append(f"its newest entry: {holder.element}")
    if holder.pinned > 0:
        lines.append(f"each entry is a view that keeps {format_bytes(int(holder.pinned))} alive which it does not show")
    if holder.inside:
        lines.append(f"it belongs to {holder.inside}, {'a wrapper' if holder.wrapper else 'the environment'}")
    if holder.emptied_by and evidence.resets:
        lines.append(
            f"{holder.emptied_by} would empty it, which did not happen while {evidence.resets:,} episodes began"
        )
    return lines + allocated(evidence)


def allocated(evidence: Evidence) -> list[str]:
    """Name the script's lines that allocated most of what was still held after a moment."""
    total = sum(line.nbytes for line in evidence.lines)
    return [
        f"allocated at {line.where} ({line.nbytes / total:.0%} of what stayed in a moment of tracing)"
        for line in evidence.lines[:2]
        if line.nbytes > 0.2 * total
    ]
