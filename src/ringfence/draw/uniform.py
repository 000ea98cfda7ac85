"""Every legal anchor equally likely."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.draw.base import Bound, Drawn, Seed
from ringfence.timeline import Anchors, Look, Timeline, Window
from ringfence.timeline.spans import Legal, Spans

ROUNDS = 6  # of drawing again what was refused, before the legal anchors are worked out and drawn from
RARE = 0.5  # share of the first draw that is refused, from which on that is quicker at once


class Uniform:
    """Draw with replacement, exactly uniformly over the legal anchors of all streams together."""

    def __init__(self, seed: Seed = None) -> None:
        self._bound = Bound(seed)
        self._spans: Legal | None = None

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
            if len(refused) > RARE * count:
                break
            anchors.replace(refused, self._any(look, len(refused)))
        refused = np.flatnonzero(~timeline.legal(look, anchors, window))
        if len(refused):
            spans = self._legal(look)
            anchors.replace(refused, spans.nth(self._bound.random.integers(0, spans.total, len(refused))))
        return Drawn(anchors)

    def _legal(self, look: Look) -> Spans:
        """Work out the legal anchors, for when they are rare; once as long as the ring stays as it is."""
        if self._spans is None:
            self._spans = Legal(self._bound.timeline, self._bound.window)
        return self._spans.at(look)

    def _any(self, look: Look, count: int) -> Anchors:
        """Draw among all held steps."""
        if len(look.heads) == 1:
            return Anchors(None, self._bound.random.integers(look.tails[0], look.heads[0], count))
        heads = np.asarray(look.heads)
        places = self._bound.random.integers(0, look.total, count)
        ends = np.cumsum(heads - look.tails)
        streams = ends.searchsorted(places, "right")
        return Anchors(streams, places - (ends - heads)[streams])

    def stats(self) -> dict[str, Any]:
        """Give nothing: there is nothing to tell."""
        return {}

    def state(self) -> dict[str, Any]:
        """Give the generator's state."""
        return self._bound.state()

    def load(self, state: dict[str, Any]) -> None:
        """Take the generator's state back."""
        self._bound.load(state)
