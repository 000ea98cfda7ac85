"""Every episode equally likely, however long it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.draw.base import Bound, Drawn, Seed
from ringfence.timeline import Anchors, Ints, Look, Timeline, Window
from ringfence.timeline.spans import Legal, Spans
from ringfence.timeline.timeline import TIME_BITS

Floats = NDArray[np.float64]


class PerEpisode:
    """Draw with replacement: an episode, uniformly over those with a legal anchor, then one of its anchors, uniformly.

    A step of a short episode is then drawn more often than one of a long episode; ``probabilities`` say how often.
    """

    def __init__(self, seed: Seed = None) -> None:
        self._bound = Bound(seed)
        self._marks, self._runs = b"", Spans(None, *np.zeros((2, 0), np.int64))

    def start(self, timeline: Timeline, window: Window, generator: np.random.Generator) -> None:
        """Serve a view; ValueError if one is served already."""
        self._bound.start(timeline, window, generator)
        self._legal = Legal(timeline, window)

    def draw(self, look: Look, count: int) -> Drawn:
        """Choose ``count`` anchors.

        Raises:
            NotEnoughData: No held step is the anchor of a legal window.
        """
        episodes, random = self._episodes(look), self._bound.random
        chosen = random.integers(0, len(episodes.counts), count)
        lengths = episodes.counts[chosen]
        anchors = episodes.steps(chosen, random.integers(0, lengths))
        return Drawn(anchors, _chances(episodes, lengths))

    def chances(self, look: Look, anchors: Anchors) -> Floats:
        """Give the probability of each of these legal anchors."""
        episodes = self._episodes(look)
        runs = _keys(episodes.streams, episodes.firsts).searchsorted(_keys(*anchors), "right") - 1
        return _chances(episodes, episodes.counts[runs])

    def _episodes(self, look: Look) -> Spans:
        """Give the legal anchors, one run for each episode; worked out once as long as the ring stays as it is."""
        if look.marks != self._marks:
            runs = self._legal.at(look)
            self._marks, self._runs = look.marks, _parted(runs, *self._bound.timeline.episodes(look))
        return self._runs

    def stats(self) -> dict[str, Any]:
        """Give nothing: there is nothing to tell."""
        return {}

    def state(self) -> dict[str, Any]:
        """Give the generator's state."""
        return self._bound.state()

    def load(self, state: dict[str, Any]) -> None:
        """Take the generator's state back."""
        self._bound.load(state)


def _chances(episodes: Spans, lengths: Ints) -> Floats:
    return 1 / (len(episodes.counts) * lengths)


def _parted(runs: Spans, streams: Ints, ends: Ints) -> Spans:
    """Cut runs of legal anchors where an episode ends in them, at these steps."""
    firsts, lasts = _keys(runs.streams, runs.firsts), _keys(runs.streams, runs.lasts)
    ends = _keys(streams, ends)
    owners = firsts.searchsorted(ends, "right") - 1
    # the last step of a run cuts nothing off; one that lies between runs would cut into none
    cuts = np.unique(ends[(owners >= 0) & (ends < lasts[owners])])
    if not len(cuts):
        return runs
    # only where all steps of a stream are one run does an episode end inside, and there every step is an anchor
    firsts, lasts = np.sort(np.append(firsts, cuts + 1)), np.sort(np.append(lasts, cuts))
    parents = None if runs.streams is None else firsts >> TIME_BITS
    times = firsts & (1 << TIME_BITS) - 1
    return Spans(parents, times, (lasts - firsts) // runs.stride + 1, runs.stride)


def _keys(streams: Ints | None, times: Ints) -> Ints:
    return times if streams is None else streams << TIME_BITS | times
