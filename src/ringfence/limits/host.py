"""The rule of the machine itself: the memory it has and the part that is free."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ringfence.limits.rule import Rule
from ringfence.limits.tree import Tree, field

_NAME = "host memory"


def host_rules(tree: Tree) -> Iterator[Rule]:
    """Yield the memory of the machine; what the kernel can hand out without swapping is free, swap is not memory."""
    meminfo = tree.read("/proc/meminfo")
    total, available = field(meminfo, "MemTotal"), field(meminfo, "MemAvailable")
    if total is not None and available is not None:
        yield Rule(_NAME, total, max(0, total - available), "/proc/meminfo")
    elif tree.real and sys.platform != "linux":
        yield _elsewhere()


def _elsewhere() -> Rule:
    import psutil  # not on Linux: it costs 20 to 50 ms and 3 MiB, and two lines of a file say the same

    memory = psutil.virtual_memory()
    return Rule(_NAME, memory.total, max(0, memory.total - memory.available), "psutil.virtual_memory")
