"""Storage that could be a fraction of what it is."""

from __future__ import annotations

from ringfence.guard.doctor.evidence import Buffer, Evidence
from ringfence.guard.doctor.finding import Finding
from ringfence.units import format_bytes

ADVICE = """ringfence.Replay stores a step once, in the dtype it came in, and derives stacks and next observations \
when it samples: here it would take {needed} in place of {nbytes}."""
WORTH = 32 * 2**20  # bytes saved, below which nobody needs to know
BYTES = {"uint8": 1, "float32": 4, "float64": 8, "int64": 8, "float16": 2, "int32": 4}


def storage(evidence: Evidence) -> list[Finding]:
    """Find large arrays that hold values in more bytes than they need, stacks, or each step twice."""
    found = [(each, needed(each)) for each in evidence.buffers if needed(each) < each.nbytes]
    nbytes, least = sum(each.nbytes for each, _ in found), sum(size for _, size in found)
    if nbytes - least < WORTH:
        return []
    seen = [f"{each.path}: {each.dtype} {each.shape}, {_why(each)}" for each, _ in found[:4]]
    text = ADVICE.format(needed=format_bytes(least), nbytes=format_bytes(nbytes))
    title = f"{format_bytes(nbytes)} of storage could be {format_bytes(least)}"
    return [Finding("storage", "warning", title, 0.0, 0.0, tuple(seen), text, nbytes - least)]


def needed(buffer: Buffer) -> int:
    """Give the bytes that the same content takes, stored once and in the dtype that its values need."""
    if buffer.repeats:
        return 0
    width = BYTES.get(buffer.narrower, 0) / BYTES.get(buffer.dtype, 1) if buffer.narrower else 1.0
    return int(buffer.nbytes * min(width, 1.0) / buffer.stacked)


def _why(buffer: Buffer) -> str:
    reasons = []
    if buffer.narrower:
        reasons.append(f"all values seen fit {buffer.narrower}")
    if buffer.stacked > 1:
        reasons.append(f"each frame is stored {buffer.stacked} times, in stacks")
    if buffer.repeats:
        reasons.append(f"its rows are those of {buffer.repeats}, one later")
    return ", ".join(reasons)
