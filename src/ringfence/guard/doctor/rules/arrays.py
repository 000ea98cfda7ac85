"""Arrays and tensors that are kept alive."""

from __future__ import annotations

from ringfence.guard.doctor.evidence import Evidence, Holder
from ringfence.guard.doctor.finding import Finding
from ringfence.guard.doctor.rules.held import HALF, holders, leak

KEPT = (
    "Bound it: a ring of preallocated arrays (ringfence.Replay), or a deque with maxlen; drop what is no longer needed."
)
VIEWS = """Keep a copy (`row.copy()`, `tensor.clone()`): a view of a few bytes keeps the whole array alive that it \
was cut from."""
WAITING = "Give the queue a maxsize, so that whoever fills it waits for whoever empties it."


def arrays(evidence: Evidence) -> list[Finding]:
    """Find containers that only grow and hold mostly arrays."""
    return [_finding(evidence, each) for each in holders(evidence, "arrays")]


def _finding(evidence: Evidence, holder: Holder) -> Finding:
    if holder.waiting:
        return leak(evidence, holder, "arrays", f"the queue {holder.path} fills faster than it is emptied", WAITING)
    if holder.pinned * max(holder.length or 0, 1) >= HALF * holder.last:
        return leak(evidence, holder, "arrays", f"views in {holder.path} keep whole arrays alive", VIEWS)
    return leak(evidence, holder, "arrays", f"arrays are kept alive in {holder.path}", KEPT)
