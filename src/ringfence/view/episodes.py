"""Where the episode of a step begins and ends among what is held."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.store import Store
from ringfence.timeline import Anchors, Ints, Look, Timeline


class Episodes:
    """Find the first and the last held step of the episodes that steps belong to.

    An open episode ends, for now, with its newest step.
    """

    def __init__(self, store: Store, timeline: Timeline) -> None:
        self._timeline, self._streams, self._kept = timeline, store.shape.streams, store.shape.finals
        self._ends = store.final_times

    def first(self, look: Look, steps: Anchors) -> Ints:
        """Give the times of the first held steps."""
        tails = look.tails[0] if steps.streams is None else np.asarray(look.tails)[steps.streams]
        starts: Ints = np.maximum(steps.times - self._timeline.ages(self._timeline.rows(steps)), tails)
        return starts

    def last(self, look: Look, steps: Anchors) -> Ints | None:
        """Give the times of the last held steps; None where a writer overtook the search."""
        counts = np.frombuffer(look.marks, np.int64)[-self._streams :]
        newest = look.room(steps) + (steps.times - 1)
        ended: Any
        slots: Any
        if steps.streams is None:
            ended, slots = int(counts[0]), 0
            numbers = self._search(ended, steps.times)
        else:
            ended, slots = counts[steps.streams], steps.streams * self._kept
            numbers = self._bisect(ended, slots, steps.times)
        ends: Ints = np.where(numbers < ended, self._ends.take(slots + numbers % self._kept), newest)
        # Ends only grow, and an add in progress has written one step beyond the newest at most: so each end has a
        # latest time, and a later one was overwritten meanwhile. A ring of one step has no such gap, and no need of it.
        if (ends - newest > numbers - ended + 2).any():
            return None
        last: Ints = np.minimum(ends, newest)
        return last

    def _search(self, ended: int, times: Ints) -> Ints:
        """Give the number of the first end at or after each time, or ``ended`` where there is none.

        For a single stream NumPy's own search serves, in both parts of the ring: a copy that puts them in order would
        take longer.
        """
        written = min(ended, self._kept)
        turn = ended % self._kept if ended > self._kept else 0
        ring = self._ends[0]
        numbers = ring[turn:written].searchsorted(times) + (ended - written)
        late = np.flatnonzero(numbers == ended - turn)
        numbers[late] += ring[:turn].searchsorted(times[late])
        return numbers

    def _bisect(self, ended: Ints, slots: Ints, times: Ints) -> Ints:
        """Give the same for many streams, whose rings begin at ``slots``: by halves, all of them at once."""
        left = min(int(ended.max()), self._kept)
        # of a stream with fewer ends than others, numbers below 0 are zeros that were never written: they lie before
        # every time but 0, whose episode is always the first
        numbers = ended - left
        while left:
            half = (left + 1) // 2
            numbers += half * (self._ends.take(slots + (numbers + (half - 1)) % self._kept) < times)
            left -= half
        return np.maximum(numbers, 0)
