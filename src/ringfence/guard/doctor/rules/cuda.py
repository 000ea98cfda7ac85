"""Memory of the accelerator: what lives, and what torch only keeps."""

from __future__ import annotations

from itertools import pairwise

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.finding import Finding
from ringfence.units import format_bytes

LIVE = "Tensors on the device are kept: look for lists of losses, states with their graph, a replay on the device."
CACHE = """It is torch's cache, and used again; `torch.cuda.empty_cache()` gives it back, \
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True keeps it small where sizes vary."""
LEAST, SHARE = 512 * 2**20, 0.5
GROWTH = 8 * 2**20


def cuda(evidence: Evidence) -> list[Finding]:
    """Tell live memory that grows from a cache that is merely large."""
    used = [look.device_used for look in evidence.looks]
    held = evidence.looks[-1].device_held
    rises = [b - a for a, b in pairwise(used)]
    growth = used[-1] - used[0]
    if growth >= GROWTH and min(rises) > 0.15 * growth / len(rises):
        seen = (f"tensors on the device: {format_bytes(used[0])} → {format_bytes(used[-1])}, more at each look",)
        per_step = growth / evidence.span if evidence.unit != "second" else 0.0
        title = "tensors on the device become more and more"
        return [Finding("cuda", "leak", title, per_step, growth / evidence.seconds, seen, LIVE, used[-1])]
    idle = held - used[-1]
    if idle >= LEAST and idle >= SHARE * held:
        seen = (f"torch holds {format_bytes(held)} on the device, {format_bytes(used[-1])} of it live",)
        title = f"{format_bytes(idle)} on the device are cache, not live"
        return [Finding("cuda", "note", title, 0.0, 0.0, seen, CACHE, idle)]
    return []
