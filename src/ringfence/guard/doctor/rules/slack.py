"""Memory that is free and was not given back."""

from __future__ import annotations

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.finding import Finding
from ringfence.guard.doctor.rules.growth import grown, held
from ringfence.units import format_bytes

ADVICE = """Call `ringfence.trim()` now and then, or set MALLOC_ARENA_MAX=2 and MALLOC_TRIM_THRESHOLD_=131072 before \
the run, or let large work buffers live as long as the run. It is no leak: what is free is used again."""
LEAST, SHARE = 8 * 2**20, 0.4


def slack(evidence: Evidence) -> list[Finding]:
    """Find growth that malloc gives back when it is asked to."""
    trimmed, rise = evidence.trimmed or 0, grown(evidence)
    if trimmed < LEAST or rise < LEAST or trimmed < SHARE * rise or held(evidence) > rise - SHARE * trimmed:
        return []
    seen = [
        f"the process grew by {format_bytes(rise)}; one malloc_trim at the end gave {format_bytes(trimmed)} back",
        f"containers and arrays explain {format_bytes(held(evidence))}",
    ]
    last = evidence.looks[-1]
    if last.heap_used is not None and last.heap_held is not None:
        seen.append(f"malloc held {format_bytes(last.heap_held)} for {format_bytes(last.heap_used)} in use")
    title = f"{format_bytes(trimmed)} are free and were not given back to the system"
    per_step = trimmed / evidence.span if evidence.unit != "second" else 0.0
    return [Finding("slack", "warning", title, per_step, trimmed / evidence.seconds, tuple(seen), ADVICE, trimmed)]
