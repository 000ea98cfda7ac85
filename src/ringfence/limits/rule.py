"""One rule that bounds memory: what every source of limits returns."""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.units import format_bytes

# The kernel writes "no limit" as the largest number of pages it can count: 9223372036854771712 with 4 KiB pages, less
# with larger ones. No machine has 4 EiB, so everything from there on is no limit.
UNLIMITED = 2**62


@dataclass(frozen=True, slots=True)
class Rule:
    """A bound on memory, what counts against it now, and where both are written."""

    name: str
    """What kind of rule it is, such as "cgroup v2 memory.max"."""
    limit: int
    """Bytes allowed in all."""
    used: int
    """Bytes that count against the limit now and cannot be reclaimed; not always those of this process alone."""
    where: str
    """The file or call that says so."""
    shared: bool = True
    """Whether an anonymous shared mapping, such as a ring in RAM, counts against the limit."""

    @property
    def headroom(self) -> int:
        """Bytes that may still be taken; zero, never less, when the rule is already overdrawn."""
        return max(0, self.limit - self.used)

    def __str__(self) -> str:
        return f"{format_bytes(self.headroom)} left of {format_bytes(self.limit)} by {self.name} ({self.where})"
