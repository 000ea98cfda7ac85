"""The one answer: how many more bytes this process may take, and which rule says so."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ringfence.limits.cgroup import cgroup_rules
from ringfence.limits.host import host_rules
from ringfence.limits.rlimit import rlimit_rules
from ringfence.limits.rule import Rule
from ringfence.limits.tree import Tree
from ringfence.units import format_bytes


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """The rule that leaves least to take, beside all the others that were considered."""

    limit: int
    """Bytes that the deciding rule allows in all."""
    used: int
    """Bytes that count against it now."""
    headroom: int
    """Bytes that may still be taken; never negative."""
    rule: str
    """The name of the deciding rule."""
    rules: tuple[Rule, ...]
    """Every rule considered, the tightest first: the first one decides."""

    @classmethod
    def of(cls, rules: Iterable[Rule]) -> MemoryLimit:
        """Let the rule with the least headroom decide; without any rule, only the size of an address is left."""
        ranked = tuple(sorted(rules, key=lambda rule: rule.headroom))
        if not ranked:
            ranked = (Rule("no rule found", limit=sys.maxsize, used=0, where="sys.maxsize"),)
        tightest = ranked[0]
        return cls(tightest.limit, tightest.used, tightest.headroom, tightest.name, ranked)

    @property
    def shared(self) -> MemoryLimit:
        """The same answer for an anonymous shared mapping, such as a ring in RAM, which some rules do not count."""
        return MemoryLimit.of(rule for rule in self.rules if rule.shared)

    def __str__(self) -> str:
        deciding, *others = (str(rule) for rule in self.rules)
        used = f"{format_bytes(self.used)} used"
        return "\n".join([f"{deciding}, {used}", *(f"  also {other}" for other in others)])


def memory_limit(root: str | Path = "/", *, rlimits: Mapping[str, int] | None = None) -> MemoryLimit:
    """Say how many more bytes this process may take, and which rule says so.

    Considers every control group from ours up (version 2 and 1), the resource limits of this process, and the memory
    of the machine. Swap is not memory. The rule with the least headroom decides, not the one with the smallest limit:
    our own group may allow 8 GiB and have used none, while its parent allows 64 GiB and the neighbours have left
    100 MiB of them. A limit that cannot be read is not considered, and nothing is raised for it. Takes well under a
    millisecond on Linux; the figures are those of the moment, so ask again rather than keep the answer.

    Args:
        root: A folder with made-up `proc` and `sys` files to read in place of the machine's.
        rlimits: Soft limits by name (`{"RLIMIT_AS": 2**30}`) to use in place of this process's own.
    """
    tree = Tree(root)
    return MemoryLimit.of([*cgroup_rules(tree), *rlimit_rules(tree, rlimits), *host_rules(tree)])
