"""One explanation of the memory: what grows, the evidence, the rate, and what to do about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal[
    "filling",
    "objects",
    "arrays",
    "infos",
    "episodes",
    "frames",
    "slack",
    "files",
    "children",
    "environment",
    "graph",
    "cuda",
    "workers",
    "storage",
    "limit",
    "native",
]
Level = Literal["leak", "warning", "note"]
ORDER: dict[str, int] = {"leak": 0, "warning": 1, "note": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause that the evidence names."""

    kind: Kind
    level: Level
    """leak: grows without an end; warning: costs more than it must, or ends badly; note: explained, and no fault."""
    title: str
    per_step: float
    """Bytes a step; 0 where nothing grows."""
    per_second: float
    evidence: tuple[str, ...]
    advice: str
    nbytes: int = 0
    """Bytes it is about in all."""

    def plain(self) -> dict[str, Any]:
        """Give it as plain values."""
        return asdict(self)


def ranked(findings: list[Finding]) -> list[Finding]:
    """Put the worst first: what never ends, then what costs too much, then what is only explained."""
    return sorted(findings, key=lambda each: (ORDER[each.level], -each.per_second, -each.nbytes))
