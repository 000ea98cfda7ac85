"""The gauge: one reading of the memory that this process, those below it and its control group really use."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, fields
from typing import Any

from ringfence.guard import kernel
from ringfence.guard.heap import heap
from ringfence.guard.kernel import Shares, Split
from ringfence.limits import memory_limit


@dataclass(frozen=True, slots=True)
class Member:
    """One process of a tree."""

    pid: int
    command: str
    split: Split
    shares: Shares

    @property
    def held(self) -> int | None:
        """Bytes that this process accounts for: in shares where the kernel tells, all of them where it does not."""
        if self.shares.held is not None:
            return self.shares.held
        return held(self.split)


@dataclass(frozen=True, slots=True)
class Reading:
    """Memory at one moment, in bytes. What the machine does not tell, or was not asked for, is None."""

    split: Split
    """Resident memory of this process by what it is."""
    shares: Shares | None
    """The same with each page divided among those who map it."""
    children: tuple[Member, ...] | None
    """Every process below this one."""
    group: int | None
    """What the limited control group with the least headroom counts, less what it can reclaim; others' use with it."""
    heap_used: int | None
    """Of malloc's memory, what is handed out."""
    heap_held: int | None
    """What malloc holds; the part that is not used is slack."""
    blocks: int | None
    """Blocks, not bytes, that Python's own allocator has handed out: it follows the number of objects."""
    mapped: dict[str, int] | None
    """Resident bytes by the name of what is mapped."""
    cuda_allocated: int | None
    cuda_reserved: int | None
    """What torch's allocator holds on the current device; None unless torch is loaded and uses one."""

    @property
    def slack(self) -> int | None:
        """Bytes that malloc holds and has not handed out: not all of them are resident."""
        return None if self.heap_used is None or self.heap_held is None else max(0, self.heap_held - self.heap_used)

    @property
    def held(self) -> int | None:
        """Bytes that the whole tree accounts for, pages of files aside; a ring shared by forked workers counts once.

        Without a look at the children it is this process's own.
        """
        own = self.shares.held if self.children and self.shares is not None else None
        own = held(self.split) if own is None else own
        return None if own is None else own + sum(child.held or 0 for child in self.children or ())

    def metrics(self) -> dict[str, int]:
        """Give the figures that are known as one flat dict, for a logger."""
        found: dict[str, int | None] = {f"memory/{each.name}": getattr(self.split, each.name) for each in fields(Split)}
        found |= {"memory/held": self.held, "memory/group": self.group, "memory/blocks": self.blocks}
        found |= {"memory/heap_used": self.heap_used, "memory/heap_held": self.heap_held}
        found |= {"memory/cuda_allocated": self.cuda_allocated, "memory/cuda_reserved": self.cuda_reserved}
        if self.shares is not None:
            found |= {"memory/pss": self.shares.pss, "memory/uss": self.shares.uss}
        if self.children is not None:
            found["memory/children"] = sum(child.held or 0 for child in self.children)
        return {name: value for name, value in found.items() if value is not None}


def gauge(*, shares: bool | None = None, children: bool = True, mapped: bool = False) -> Reading:
    """Read the memory of this process, of those below it and of its control group.

    Takes a fraction of a millisecond for the process itself, and as much again for each child and for the shares.

    Args:
        shares: Divide each page among those who map it. The kernel walks all pages for it, so it is done where it
            matters unless asked for: where there are children.
        children: Look at the processes below this one.
        mapped: Tell the names of what is mapped; some milliseconds.
    """
    below = members(kernel.below()) if children else None
    heaped = heap()
    allocated, reserved = _device()
    return Reading(
        split=kernel.split(),
        shares=kernel.shares() if shares or (shares is None and below) else None,
        children=below,
        group=_group(),
        heap_used=heaped[0] if heaped else None,
        heap_held=heaped[1] if heaped else None,
        blocks=sys.getallocatedblocks() or None,  # zero: built without an allocator of its own
        mapped=kernel.mapped() if mapped else None,
        cuda_allocated=allocated,
        cuda_reserved=reserved,
    )


def members(pids: list[int]) -> tuple[Member, ...]:
    """Read processes by their numbers; those that are gone are left out."""
    found = (Member(pid, kernel.command(pid), kernel.split(pid), kernel.shares(pid)) for pid in pids)
    return tuple(member for member in found if member.split.resident is not None)


def tree(pid: int) -> tuple[Member, ...]:
    """Read a process and all those below it."""
    return members([pid, *kernel.below(pid)])


def held(split: Split) -> int | None:
    """Give the bytes of one process that only its own doing can free: no pages of files, but those in swap."""
    if split.anonymous is None or split.shared is None:
        return split.resident
    return split.anonymous + split.shared + (split.swap or 0)


def own_held() -> int | None:
    """Give what this process and those below it hold, by the cheapest files that tell: 0.1 ms without children."""
    below = kernel.below(os.getpid())
    if not below:
        return held(kernel.split())
    return sum(member.held or 0 for member in members([os.getpid(), *below])) or None


def _group() -> int | None:
    return next((rule.used for rule in memory_limit(rlimits={}).rules if rule.name.startswith("cgroup")), None)


def _device() -> tuple[int | None, int | None]:
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    try:
        if cuda is None or not cuda.is_initialized():
            return None, None
        return int(cuda.memory_allocated()), int(cuda.memory_reserved())
    except Exception:  # noqa: BLE001  # a driver that is not there: a reading never fails
        return None, None
