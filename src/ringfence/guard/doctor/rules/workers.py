"""Workers of a DataLoader that make the replay their own."""

from __future__ import annotations

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.finding import Finding
from ringfence.guard.doctor.rules.children import copies, described, grows
from ringfence.units import format_bytes

COPY = """Keep the data in arrays or tensors rather than in Python objects: a worker that reads an object writes its \
reference count, and the kernel copies the page. A ring in shared memory (ringfence.Replay) is not copied at all; or \
use num_workers=0."""
KEEP = "Bound what a worker caches, or let one process read for all; each worker has a cache of its own."


def workers(evidence: Evidence) -> list[Finding]:
    """Find workers of a DataLoader whose private memory only grows."""
    found = [child for child in evidence.children if child.role == "loader" and grows(child, evidence.seconds)]
    if not found:
        return []
    nbytes = sum(child.private[-1] - child.private[0] for child in found)
    copied = all(copies(child) for child in found)
    doing = "copy what the parent holds, page by page" if copied else "collect data of their own"
    per_step = nbytes / evidence.span if evidence.unit != "second" else 0.0
    seen = [line for child in found[:4] for line in described(child)]
    seen.append(f"the parent has {format_bytes(evidence.looks[-1].anonymous)}: the most that each can copy")
    title = f"{len(found)} workers of a DataLoader {doing}"
    advice = COPY if copied else KEEP
    return [Finding("workers", "leak", title, per_step, nbytes / evidence.seconds, tuple(seen), advice, nbytes)]
