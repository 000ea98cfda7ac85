"""Rules of resource limits: what `ulimit` sets for one process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ringfence.limits.rule import UNLIMITED, Rule
from ringfence.limits.tree import Tree, field

# What the kernel compares with each limit, and whether a shared mapping counts there. RLIMIT_DATA counts private
# writable memory only: the heap and NumPy's arrays, not a ring in RAM.
_COUNTED = {"RLIMIT_AS": ("VmSize", True), "RLIMIT_DATA": ("VmData", False)}


def rlimit_rules(tree: Tree, rlimits: Mapping[str, int] | None = None) -> Iterator[Rule]:
    """Yield the resource limits on address space and on data, where this process has them.

    Takes the soft limits of this process unless `rlimits` gives others by name; a negative one means no limit. Yields
    nothing where `/proc/self/status` does not say how much is used, as on macOS and Windows.
    """
    soft = _soft_limits() if rlimits is None else rlimits
    bounds = {name: soft[name] for name in _COUNTED if 0 <= soft.get(name, -1) < UNLIMITED}
    status = tree.read("/proc/self/status") if bounds else ""
    for name, limit in bounds.items():
        counted, shared = _COUNTED[name]
        used = field(status, counted)
        if used is not None:
            yield Rule(name, limit, used, f"getrlimit, {counted} in /proc/self/status", shared)


def _soft_limits() -> dict[str, int]:
    try:
        import resource  # there is none on Windows
    except ImportError:
        return {}
    return {name: resource.getrlimit(getattr(resource, name))[0] for name in _COUNTED if hasattr(resource, name)}
