"""What a view reads around an anchor."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Window:
    """Steps of one episode around an anchor that must all be held for the anchor to be legal."""

    before: int = 0
    """Steps before the anchor."""
    after: int = 0
    """Steps after it."""
    short_start: bool = False
    """Fewer steps before the anchor will do where the episode has no more: the view pads them."""

    trivial: bool = field(init=False)
    """Every step held is a legal anchor."""

    def __post_init__(self) -> None:
        """Note what is asked at each draw."""
        object.__setattr__(self, "trivial", not self.before and not self.after)
