"""Pages of mapped files: resident, and the kernel's to take back."""

from __future__ import annotations

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.finding import Finding
from ringfence.units import format_bytes

ADVICE = """It is no leak: the kernel takes file pages back when memory is wanted. Some limits of containers count \
those that are not written yet; `madvise(MADV_DONTNEED)` or plain reads and writes keep resident memory low."""
LEAST, LEAST_SECOND = 8 * 2**20, 64 * 1024.0


def files(evidence: Evidence) -> list[Finding]:
    """Find growth that is pages of mapped files."""
    growth = evidence.looks[-1].file - evidence.looks[0].file
    if growth < LEAST or growth / evidence.seconds < LEAST_SECOND:
        return []
    largest = sorted(evidence.mapped.items(), key=lambda each: each[1][0] - each[1][1])[:3]
    seen = [f"{name}: {format_bytes(first)} → {format_bytes(last)} resident" for name, (first, last) in largest]
    seen.append(
        f"file pages went from {format_bytes(evidence.looks[0].file)} to {format_bytes(evidence.looks[-1].file)}"
    )
    per_step = growth / evidence.span if evidence.unit != "second" else 0.0
    title = "resident memory grows by pages of a mapped file"
    return [Finding("files", "note", title, per_step, growth / evidence.seconds, tuple(seen), ADVICE, growth)]
