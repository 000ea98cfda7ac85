"""How many windows were legal at one moment, counted when somebody asks.

The legal anchors are known from where episodes end, so that counting takes time in proportion to the episodes held, and
listing every step is not needed. What the count is made of is copied when a batch is drawn: the batch can then be asked
at any later time, and refers to nothing of the ring.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ringfence.store import Store
from ringfence.timeline import Anchors, Ints, Look, Timeline, Window

TRIES = 8  # a writer may end an episode while the ends are being copied


class Census:
    """Keep the ends of the episodes held at one moment. Costs 8 bytes for each one that the ring can keep."""

    def __init__(self, store: Store, timeline: Timeline, window: Window) -> None:
        assert window.short_start
        self._window = window
        for _ in range(TRIES):
            self._look = look = timeline.look()
            if window.trivial:
                break
            self._ends = store.final_times.copy()
            self._first_ages = _first_ages(timeline, look)
            if store.marks.tobytes() == look.marks:
                break

    @property
    def marks(self) -> bytes:
        """The marks of that moment."""
        return self._look.marks

    @cached_property
    def legal(self) -> int:
        """The number of legal windows."""
        if self._window.trivial:
            return self._look.total
        low, high, born = self._ranges()
        stride = self._window.stride
        # ages that are multiples of the stride, up to the last anchor of an episode less those before its first
        counts = (high - born) // stride - (low - 1 - born) // stride
        return int(counts[high >= low].sum())

    def _ranges(self) -> tuple[Ints, Ints, Ints]:
        """Give the first and last legal anchor of each episode, stride aside, and the time at which it began."""
        streams, ends = self._episodes()
        tails, heads = np.asarray(self._look.tails), np.asarray(self._look.heads)
        first = np.ones(len(ends), np.bool_)
        first[1:] = streams[1:] != streams[:-1]
        starts = tails[streams]
        later = np.flatnonzero(~first)
        starts[later] = ends[later - 1] + 1
        ages = np.where(first, self._first_ages[streams], 0)
        # where an episode's beginning is gone, frames before its first steps are gone too
        low = starts + np.where(ages > 0, self._window.before, 0)
        if self._window.boundary == "stop":
            high = ends - self._window.after
        elif self._window.boundary == "cross":
            high = np.minimum(ends, heads[streams] - 1 - self._window.after)
        else:
            high = ends
        return low, high, starts - ages

    def _episodes(self) -> tuple[Ints, Ints]:
        """Give stream and last held step of each episode, the open one of a stream last."""
        tails, heads = np.asarray(self._look.tails), np.asarray(self._look.heads)
        numbers = np.frombuffer(self._look.marks, np.int64)[-len(heads) :]
        known = np.arange(self._ends.shape[1]) < numbers[:, None]
        known &= (self._ends >= tails[:, None]) & (self._ends < heads[:, None])
        ended = (known & (self._ends == heads[:, None] - 1)).any(axis=1)
        open_ = np.flatnonzero((heads > tails) & ~ended)
        streams = np.concatenate([np.nonzero(known)[0], open_])
        ends = np.concatenate([self._ends[known], heads[open_] - 1])
        order = np.lexsort((ends, streams))
        return streams[order], ends[order]


def _first_ages(timeline: Timeline, look: Look) -> NDArray[np.int32]:
    """Copy the age of the oldest step of each stream; of an empty one any number."""
    streams = None if timeline.streams == 1 else np.arange(timeline.streams)
    return timeline.ages(timeline.rows(Anchors(streams, np.asarray(look.tails))))
