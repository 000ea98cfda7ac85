"""What a view reads around an anchor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Boundary = Literal["stop", "cross", "pad"]


@dataclass(frozen=True, slots=True)
class Window:
    """Steps around an anchor that must be held for the anchor to be legal.

    What lies before the anchor is always of its episode.
    """

    before: int = 0
    """Steps before the anchor."""
    after: int = 0
    """Steps after it."""
    boundary: Boundary = "stop"
    """Where an episode ends among the steps after the anchor: ``"stop"``, the anchor is not legal; ``"cross"``, the
    window goes on into the next episode; ``"pad"``, the window is shorter, also at the newest step."""
    short_start: bool = False
    """Fewer steps before the anchor will do where the episode has no more: the view pads them."""
    stride: int = 1
    """Only every so-many-th step of an episode is an anchor, the first one among them."""
    trivial: bool = field(init=False)
    """Every step held is a legal anchor."""

    def __post_init__(self) -> None:
        """Note what is asked at each draw."""
        free = not self.after or self.boundary == "pad"
        object.__setattr__(self, "trivial", not self.before and free and self.stride == 1)
