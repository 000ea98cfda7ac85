"""Processes below the script's that grow."""

from __future__ import annotations

from ringfence.guard.doctor.evidence import Child, Evidence
from ringfence.guard.doctor.finding import Finding
from ringfence.units import format_bytes

ADVICE = """Look into the process that grows: run its function, or the environment that it steps, under the doctor by \
itself."""
COPIED = """The pages are the parent's, copied when the child writes to them, and reading a Python object writes its \
reference count: hand the child arrays, not objects."""
LEAST, LEAST_SECOND = 2**20, 16 * 1024.0
EVEN = 0.15
SHOWN = 4


def children(evidence: Evidence) -> list[Finding]:
    """Find child processes whose private memory only grows; workers of a DataLoader have a rule of their own."""
    found = [child for child in evidence.children if child.role != "loader" and grows(child, evidence.seconds)]
    if not found:
        return []
    nbytes = sum(child.private[-1] - child.private[0] for child in found)
    seen = [line for child in found[:SHOWN] for line in described(child)]
    per_step = nbytes / evidence.span if evidence.unit != "second" else 0.0
    names = ", ".join(child.name or str(child.pid) for child in found[:SHOWN])
    advice = COPIED if all(copies(child) for child in found) else ADVICE
    title = f"{len(found)} child process{'es' if len(found) > 1 else ''} grow: {names}"
    return [Finding("children", "leak", title, per_step, nbytes / evidence.seconds, tuple(seen), advice, nbytes)]


def grows(child: Child, seconds: float) -> bool:
    """Tell whether a child has more to itself at each look."""
    rises = [b - a for a, b in zip(child.private, child.private[1:], strict=False)]
    growth = child.private[-1] - child.private[0]
    enough = growth >= LEAST and growth / max(seconds, 1e-9) >= LEAST_SECOND
    return len(rises) >= 2 and enough and min(rises) > EVEN * growth / len(rises)


def copies(child: Child) -> bool:
    """Tell whether a child's own pages were the parent's before: they became private, and no more."""
    return child.resident[-1] - child.resident[0] < 0.5 * (child.private[-1] - child.private[0])


def described(child: Child) -> list[str]:
    """Say how a child grew, and what in it."""
    first, last = format_bytes(child.private[0]), format_bytes(child.private[-1])
    lines = [f"{child.name or 'process'} (pid {child.pid}) had {first} to itself, then {last}"]
    lines += [
        f"in it, {each.path} ({each.kind}) went from {format_bytes(each.first)} to {format_bytes(each.last)}"
        for each in child.holders[:2]
    ]
    return lines
