"""Every legal anchor equally likely."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.draw.base import Bound, Drawn, Seed
from ringfence.timeline import Anchors, Look, Timeline, Window

ROUNDS = 6  # of drawing again what was refused, before all legal anchors are listed and drawn from


class Uniform:
    """Draw with replacement, exactly uniformly over the legal anchors of all streams together."""

    def __init__(self, seed: Seed = None) -> None:
        self._bound = Bound(seed)

    def start(self, timeline: Timeline, window: Window, generator: np.random.Generator) -> None:
        """Serve a view; ValueError if one is served already."""
        self._bound.start(timeline, window, generator)

    def draw(self, look: Look, count: int) -> Drawn:
        """Choose ``count`` anchors.

        Raises:
            NotEnoughData: No held step is the anchor of a legal window.
        """
        timeline, window = self._bound.timeline, self._bound.window
        if not look.total:
            raise timeline.refuse(look, window)
        anchors = self._any(look, count)
        if window.trivial or timeline.surely_legal(look, anchors, window):
            return Drawn(anchors)
        for _ in range(ROUNDS):
            refused = np.flatnonzero(~timeline.legal(look, anchors, window))
            if not len(refused):
                return Drawn(anchors)
            anchors.replace(refused, self._any(look, len(refused)))
        refused = np.flatnonzero(~timeline.legal(look, anchors, window))
        if len(refused):
            anchors.replace(refused, self._listed(look, len(refused)))
        return Drawn(anchors)

    def _any(self, look: Look, count: int) -> Anchors:
        """Draw among all held steps."""
        if len(look.heads) == 1:
            return Anchors(None, self._bound.random.integers(look.tails[0], look.heads[0], count))
        heads = np.asarray(look.heads)
        places = self._bound.random.integers(0, look.total, count)
        ends = np.cumsum(heads - look.tails)
        streams = ends.searchsorted(places, "right")
        return Anchors(streams, places - (ends - heads)[streams])

    def _listed(self, look: Look, count: int) -> Anchors:
        """Draw among the legal anchors, listed one by one: for when they are rare."""
        every = self._bound.timeline.every(look, self._bound.window)
        if not len(every.times):
            raise self._bound.timeline.refuse(look, self._bound.window)
        return every.at(self._bound.random.integers(0, len(every.times), count))

    def stats(self) -> dict[str, Any]:
        """Give nothing: there is nothing to tell."""
        return {}

    def state(self) -> dict[str, Any]:
        """Give the generator's state."""
        return self._bound.state()

    def load(self, state: dict[str, Any]) -> None:
        """Take the generator's state back."""
        self._bound.load(state)
