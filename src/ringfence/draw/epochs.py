"""Every legal anchor once before any comes again."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.draw.base import Bound, Drawn, Seed
from ringfence.timeline import Ints, Look, Timeline, Window
from ringfence.timeline.spans import Legal

NONE = np.zeros(0, np.int64)


class Epochs:
    """Draw without replacement: an epoch is every legal anchor once, in random order.

    Batches are always full: where an epoch ends the next one begins within the batch. Steps that were overwritten
    before their turn are passed over and counted. Steps added meanwhile join the next epoch.

    Costs 8 bytes a transition of the replay's capacity, taken when the view is made, beside the batch handed out last.
    To begin an epoch takes time in proportion to its steps, about 25 ms a million.

    Args:
        seed: Of a generator of its own; the replay's unless given.
    """

    def __init__(self, seed: Seed = None) -> None:
        self._bound = Bound(seed)
        self._epochs = self._skipped = 0
        self._at = self._end = 0  # what is left of the epoch lies between them
        self._last = self._again = NONE

    def start(self, timeline: Timeline, window: Window, generator: np.random.Generator) -> None:
        """Serve a view; ValueError if one is served already."""
        self._bound.start(timeline, window, generator)
        self._legal = Legal(timeline, window)
        # written to, so that the pages are there: NumPy's empty and zeros are lazy
        self._order = np.full(timeline.streams * timeline.capacity, -1, np.int64)

    def draw(self, look: Look, count: int) -> Drawn:
        """Choose ``count`` anchors.

        Raises:
            NotEnoughData: No held step is the anchor of a legal window.
        """
        parts = [self._good(look, self._again[:count])]
        self._again = self._again[count:]
        missing = count - len(parts[0])
        while missing:
            if self._at == self._end:
                parts.append(self._begin(look, missing))
                missing -= len(parts[-1])
            ids = self._order[self._at : min(self._at + missing, self._end)]
            self._at += len(ids)
            parts.append(self._good(look, ids))
            missing -= len(parts[-1])
        self._last = np.concatenate(parts)
        return Drawn(self._bound.timeline.anchors(self._last))

    def take_back(self) -> None:
        """Take the last batch back, which nobody got: its steps come next."""
        self._last, self._again = NONE, np.concatenate([self._last, self._again])

    def _begin(self, look: Look, missing: int) -> Ints:
        """Begin an epoch; before it give whole ones at once, as many as are missing."""
        legal, random = self._legal.at(look), self._bound.random
        size = legal.ids(self._order)
        epochs, rest = divmod(missing, size)
        whole = random.permuted(np.tile(self._order[:size], (epochs, 1)), axis=1).ravel() if epochs else NONE
        self._at, self._end = 0, size if rest else 0
        random.shuffle(self._order[: self._end])
        self._epochs += epochs + (rest > 0)
        return whole

    def _good(self, look: Look, ids: Ints) -> Ints:
        """Give those of these steps that are anchors still; count the others."""
        if not len(ids):
            return NONE
        timeline, window = self._bound.timeline, self._bound.window
        anchors = timeline.anchors(ids)
        if window.trivial:
            good = anchors.times >= np.asarray(look.tails)[0 if anchors.streams is None else anchors.streams]
        else:
            good = timeline.legal(look, anchors, window)
        kept: Ints = ids[good]  # a copy: the order is shuffled in place
        self._skipped += len(ids) - len(kept)
        return kept

    def stats(self) -> dict[str, Any]:
        """Give ``epochs`` begun, steps ``left`` in this one, those ``skipped`` so far, and ``nbytes`` that it costs."""
        left = self._end - self._at + len(self._again)
        return {"epochs": self._epochs, "left": left, "skipped": self._skipped, "nbytes": self._order.nbytes}

    def state(self) -> dict[str, Any]:
        """Give the generator's state, what is left of the epoch, and the counts."""
        return {
            **self._bound.state(),
            "order": self._order[self._at : self._end].copy(),
            "again": self._again.copy(),
            "epochs": self._epochs,
            "skipped": self._skipped,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take them back.

        Raises:
            ValueError: They are of another ring.
        """
        order, again = self._known(state["order"]), self._known(state["again"])
        if len(np.unique(order)) != len(order):
            raise ValueError("state: an epoch that holds a step twice")
        if len(order) > len(self._order):  # of a larger ring
            order = order[self._bound.timeline.holds(order)]
        self._bound.load(state)
        self._order[: len(order)] = order
        self._at, self._end = 0, len(order)
        self._last, self._again = NONE, again
        self._epochs, self._skipped = int(state["epochs"]), int(state["skipped"])

    def _known(self, ids: Any) -> Ints:
        """Give a copy of ids of steps that were added to this ring; ValueError if one never was."""
        names, timeline = np.array(ids, np.int64), self._bound.timeline
        anchors = timeline.anchors(names)
        streams = np.zeros(len(names), np.int64) if anchors.streams is None else anchors.streams
        if len(names) and (names.min() < 0 or streams.max() >= timeline.streams):
            raise ValueError("state: its steps are of streams that this ring does not have")
        if (anchors.times >= np.asarray(timeline.look().heads)[streams]).any():
            raise ValueError("state: it has steps that this ring never held")
        return names
