"""Which steps to take: what every draw does."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ringfence.timeline import Anchors, Look, Timeline, Window


class Draw(Protocol):
    """Choose anchors among the legal ones.

    A draw pulls: it is told of nothing, and looks at the timeline when it is asked. One thread at a time may ask it.
    """

    def draw(self, timeline: Timeline, look: Look, window: Window, count: int) -> Anchors:
        """Choose ``count`` anchors.

        Raises:
            NotEnoughData: No held step is the anchor of a legal window.
        """
        ...

    def start(self, generator: np.random.Generator) -> None:
        """Take the generator that all of this draw's choices come from, unless it was given one of its own."""
        ...
