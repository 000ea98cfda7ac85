"""The limit that a guard or a watch keeps: a share of what the machine allows, or a size of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ringfence.limits import Rule, memory_limit
from ringfence.units import format_bytes, parse_bytes

MACHINE = 0.95
"""The share of the machine's own limits that is kept where the limit is a size: that may be more than there is."""


@dataclass(frozen=True, slots=True)
class Level:
    """How far one rule is used up."""

    name: str
    used: int
    """Bytes that count."""
    limit: int
    """Bytes at which to act; less than what kills, where the machine's own rule is meant."""

    @property
    def share(self) -> float:
        """Used by limit: 1 and more is over."""
        return self.used / self.limit

    @property
    def excess(self) -> int:
        """Bytes over the limit; negative below it."""
        return self.used - self.limit

    def __str__(self) -> str:
        return f"{format_bytes(self.used)} of {format_bytes(self.limit)} by {self.name}"


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit as it was written."""

    text: str
    share: float
    """Of each of the machine's rules."""
    size: int | None
    """Of what is watched, in bytes; None where the limit is a share alone."""

    @classmethod
    def parse(cls, text: float | str, name: str = "limit") -> Bound:
        """Read "80%" or "2 GiB".

        Raises:
            ValueError: The text is neither, or the share is not above 0 and at most 100 %.
            TypeError: It is no text and no number.
        """
        if isinstance(text, str) and text.strip().endswith("%"):
            try:
                share = float(text.strip()[:-1]) / 100
            except ValueError:
                share = 0.0
            if not 0 < share <= 1:
                raise ValueError(f"{name}: expected a share above 0% and up to 100%, such as '80%', got {text!r}")
            return cls(text.strip(), share, None)
        try:
            return cls(str(text), MACHINE, parse_bytes(text))
        except (ValueError, TypeError) as error:
            raise type(error)(f"{name}: {error}, or '80%' of what the machine allows") from None

    def above(self) -> Bound:
        """Give the limit that lies half way between this share and all, or an eighth above this size."""
        if self.size is None:
            return Bound(f"{50 + self.share * 50:g}%", (1 + self.share) / 2, None)
        return Bound(format_bytes(self.size + self.size // 8), (1 + self.share) / 2, self.size + self.size // 8)

    def worst(self, watched: Callable[[], int | None], rules: tuple[Rule, ...]) -> Level | None:
        """Give the rule that is used up furthest; None where nothing could be read.

        Args:
            watched: Reads the bytes that count against a size; called only where the limit is one.
            rules: Those of the machine.
        """
        levels = [Level(rule.name, rule.used, max(1, int(rule.limit * self.share))) for rule in rules]
        if self.size is not None:
            used = watched()
            if used is not None:
                levels.append(Level(f"the limit of {self.text}", used, self.size))
        return max(levels, key=lambda level: level.share, default=None)


def rules(*, own: bool = True) -> tuple[Rule, ...]:
    """Give the machine's rules that hold now; those of `ulimit` are of this process alone, and left out on request."""
    return memory_limit(rlimits=None if own else {}).rules
