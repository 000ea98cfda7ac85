"""Which windows a buffer draws: all legal ones, but for one whose last successor is not known yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ringfence.draw import Drawn, Uniform
from ringfence.errors import NotEnoughData
from ringfence.timeline import Anchors, Look, Timeline, Window


class Settled:
    """Draw with replacement, uniformly over the legal windows of one stream.

    The generator is the buffer's own, which draws from it elsewhere too and saves it; so it is no part of this state.
    """

    def __init__(self, generator: np.random.Generator, known: Callable[[int], bool] | None = None) -> None:
        """Draw with a generator.

        Args:
            generator: Of the buffer.
            known: Tell whether the successor of a stream's newest step, at this time, is known; unless given, nobody
                asks, and the window that ends there is drawn like any other.
        """
        self._uniform, self._known = Uniform(generator), known
        self._timeline: Timeline | None = None
        self._window = Window()

    def start(self, timeline: Timeline, window: Window, generator: np.random.Generator) -> None:
        """Serve a view; ValueError if one is served already."""
        self._uniform.start(timeline, window, generator)
        self._timeline, self._window = timeline, window

    def draw(self, look: Look, count: int) -> Drawn:
        """Choose ``count`` anchors.

        Raises:
            NotEnoughData: No held step is the anchor of a legal window, or only that of the one that is left out.
        """
        drawn = self._uniform.draw(look, count)
        left_out = self._left_out(look)
        if left_out is None:
            return drawn
        assert self._timeline is not None
        again = np.flatnonzero(drawn.anchors.times == left_out)
        if len(again) and self._timeline.count(look, self._window) == 1:
            refused = self._timeline.refuse(look, self._window)
            raise NotEnoughData(f"{refused}; the only such window ends at the newest step, whose successor is to come")
        while len(again):
            drawn.anchors.replace(again, self._uniform.draw(look, len(again)).anchors)
            again = again[drawn.anchors.times[again] == left_out]
        return drawn

    def leaves_out(self) -> bool:
        """Tell whether there is a legal window now that is not drawn."""
        return self._timeline is not None and self._left_out(self._timeline.look()) is not None

    def _left_out(self, look: Look) -> int | None:
        """Give the anchor of the legal window that is not drawn, if there is one."""
        head, tail = int(look.heads[0]), look.tail(0)
        anchor = head - 1 - self._window.after
        if self._known is None or self._timeline is None or anchor < tail or self._known(head - 1):
            return None
        legal = self._timeline.legal(look, Anchors(None, np.array([anchor])), self._window)
        return anchor if legal[0] else None

    def stats(self) -> dict[str, Any]:
        """Give nothing: there is nothing to tell."""
        return {}

    def state(self) -> dict[str, Any]:
        """Give nothing: the buffer saves its generator itself."""
        return {}

    def load(self, state: dict[str, Any]) -> None:
        """Take nothing back."""
