"""Every legal anchor equally likely."""

from __future__ import annotations

import numpy as np

from ringfence.timeline import Anchors, Look, Timeline, Window

ROUNDS = 6  # of drawing again what was refused, before all legal anchors are listed and drawn from


class Uniform:
    """Draw with replacement, exactly uniformly over the legal anchors of all streams together."""

    def __init__(self, seed: int | np.random.SeedSequence | np.random.Generator | None = None) -> None:
        self._generator = None if seed is None else np.random.default_rng(seed)

    def start(self, generator: np.random.Generator) -> None:
        """Take the generator that all choices come from, unless ``seed`` gave one."""
        self._generator = self._generator or generator

    def draw(self, timeline: Timeline, look: Look, window: Window, count: int) -> Anchors:
        """Choose ``count`` anchors.

        Raises:
            NotEnoughData: No held step is the anchor of a legal window.
        """
        if not look.total:
            raise timeline.refuse(look, window)
        anchors = self._any(look, count)
        if window.trivial or timeline.surely_legal(look, anchors, window):
            return anchors
        for _ in range(ROUNDS):
            refused = np.flatnonzero(~timeline.legal(look, anchors, window))
            if not len(refused):
                return anchors
            _replace(anchors, refused, self._any(look, len(refused)))
        refused = np.flatnonzero(~timeline.legal(look, anchors, window))
        _replace(anchors, refused, self._listed(timeline, look, window, len(refused)))
        return anchors

    def _any(self, look: Look, count: int) -> Anchors:
        """Draw among all held steps."""
        assert self._generator is not None
        if len(look.heads) == 1:
            return Anchors(None, self._generator.integers(look.tails[0], look.heads[0], count))
        heads = np.asarray(look.heads)
        places = self._generator.integers(0, look.total, count)
        ends = np.cumsum(heads - look.tails)
        streams = ends.searchsorted(places, "right")
        return Anchors(streams, places - (ends - heads)[streams])

    def _listed(self, timeline: Timeline, look: Look, window: Window, count: int) -> Anchors:
        """Draw among the legal anchors, listed one by one: for when they are rare."""
        assert self._generator is not None
        if not count:
            return Anchors(None if len(look.heads) == 1 else np.zeros(0, np.int64), np.zeros(0, np.int64))
        every = timeline.every(look, window)
        if not len(every.times):
            raise timeline.refuse(look, window)
        places = self._generator.integers(0, len(every.times), count)
        return Anchors(None if every.streams is None else every.streams[places], every.times[places])


def _replace(anchors: Anchors, places: np.ndarray[tuple[int], np.dtype[np.int64]], others: Anchors) -> None:
    anchors.times[places] = others.times
    if anchors.streams is not None and others.streams is not None:
        anchors.streams[places] = others.streams
