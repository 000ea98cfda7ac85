"""Which steps exist. A stream is one environment's time line; steps are known by absolute time, which only grows.

Three numbers a stream, in memory that forked readers share, say it all: the *head* (steps ever added), the *floor*
(steps before it were dropped early, or cleared) and the number of *finals* (episodes ever ended). A stream holds the
times from ``max(head - capacity, floor)`` to ``head - 1``. An id is ``stream << 44 | time``.

Whoever writes publishes the floor first and the head last. Whoever reads notes the marks, reads, and looks at the marks
again: steps that are held by both looks were not touched in between, since an add in progress writes only to the spare
slots.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import NotEnoughData
from ringfence.store import Store
from ringfence.timeline.window import Window

TIME_BITS = 44  # 1.7e13 steps a stream, half a million streams
TIME_MASK = (1 << TIME_BITS) - 1
Ints = NDArray[np.int64]


class Anchors(NamedTuple):
    """Steps, by stream and time."""

    streams: Ints | None
    """None where there is only one stream."""
    times: Ints

    def at(self, places: Ints | NDArray[np.bool_]) -> Anchors:
        """Give some of them, by position or by mask."""
        return Anchors(None if self.streams is None else self.streams[places], self.times[places])

    def replace(self, places: Ints, others: Anchors) -> None:
        """Put others in the place of some, where they are."""
        self.times[places] = others.times
        if self.streams is not None and others.streams is not None:
            self.streams[places] = others.streams


class Look(NamedTuple):
    """The marks at one moment: what each stream held then. For a single stream plain numbers, which cost less."""

    marks: bytes
    tails: Ints | tuple[int]
    heads: Ints | tuple[int]
    total: int
    """Transitions held by all streams."""

    def tail(self, stream: int) -> int:
        """Give the time of a stream's oldest step."""
        return int(self.tails[stream])

    def room(self, anchors: Anchors) -> Ints:
        """Count the steps held from each anchor on."""
        room: Ints = _of(self.heads, anchors) - anchors.times
        return room


class Timeline:
    """Answer which steps are held, which windows are legal, and where they lie."""

    def __init__(self, store: Store) -> None:
        shape = store.shape
        self.streams, self.capacity = shape.streams, shape.capacity
        self.slots, self.rows_each = shape.slots, shape.rows
        self._marks, self._ages, self.final_times = store.marks, store.ages, store.final_times

    # -- what is held

    def look(self) -> Look:
        """Note the marks."""
        marks = self._marks.tobytes()
        if self.streams == 1:
            head, floor, _ = _THREE(marks)
            tail = head - self.capacity
            tail = max(tail, floor)
            return Look(marks, (tail,), (head,), head - tail)
        numbers = np.frombuffer(marks, np.int64)
        heads = numbers[: self.streams]
        tails = np.maximum(heads - self.capacity, numbers[self.streams : -self.streams])
        return Look(marks, tails, heads, int((heads - tails).sum()))

    def untouched(self, look: Look, anchors: Anchors, before: int, reach: int) -> bool:
        """Tell whether what these anchors read, from ``before`` steps earlier to ``reach`` later, was read whole."""
        if self._marks.tobytes() == look.marks:
            return True
        now = self.look()
        overwritten = anchors.times - before < _of(now.tails, anchors)
        # an episode that was cut at its newest step gets its final observation after the fact
        ended = _of(self._finals(now) != self._finals(look), anchors)
        newest = (look.room(anchors) <= reach + 1) & ended
        return not (overwritten | newest).any()

    def _finals(self, look: Look) -> Ints:
        return np.frombuffer(look.marks, np.int64)[-self.streams :]

    # -- where it lies

    def rows(self, anchors: Anchors) -> Ints:
        """Give the physical rows of steps."""
        if anchors.streams is None:
            return anchors.times % self.slots
        return anchors.streams * self.rows_each + anchors.times % self.slots

    def ages(self, rows: Ints) -> NDArray[np.int32]:
        """Give the steps since the first of the episode."""
        return self._ages.take(rows, mode="clip")

    @staticmethod
    def ids(anchors: Anchors) -> Ints:
        """Give the ids of steps."""
        return anchors.times.copy() if anchors.streams is None else anchors.streams << TIME_BITS | anchors.times

    def anchors(self, ids: Ints) -> Anchors:
        """Give the steps that ids of this ring name."""
        return Anchors(None, ids) if self.streams == 1 else Anchors(ids >> TIME_BITS, ids & TIME_MASK)

    def holds(self, ids: Ints) -> NDArray[np.bool_]:
        """Tell which ids name a step that is still held."""
        look = self.look()
        streams, times = ids >> TIME_BITS, ids & TIME_MASK
        known = (streams >= 0) & (streams < self.streams)
        streams = np.where(known, streams, 0)
        held: NDArray[np.bool_] = (
            known & (times >= np.asarray(look.tails)[streams]) & (times < np.asarray(look.heads)[streams])
        )
        return held

    # -- which windows are legal

    def legal(self, look: Look, anchors: Anchors, window: Window) -> NDArray[np.bool_]:
        """Tell which of these held steps are anchors of a legal window."""
        ages = self.ages(self.rows(anchors))
        before = np.minimum(ages, window.before) if window.short_start else window.before
        good: NDArray[np.bool_] = (anchors.times - before >= _of(look.tails, anchors)) & (ages >= before)
        if window.stride > 1:
            good &= ages % window.stride == 0
        if window.after and window.boundary != "pad":
            good &= look.room(anchors) > window.after
        if window.after and window.boundary == "stop":
            # a later step of the same episode is exactly as much older; a row not yet written may hold anything
            last = anchors._replace(times=anchors.times + window.after)
            good &= self.ages(self.rows(last)) == ages + window.after
        return good

    def surely_legal(self, look: Look, anchors: Anchors, window: Window) -> bool:
        """Tell, for the price of one reduction, whether all of these are legal; no means perhaps not."""
        if window.after or window.stride > 1 or not window.short_start:
            return False
        # the steps before an anchor are missing only near the tail
        return bool((anchors.times - _of(look.tails, anchors)).min() >= window.before)

    def count(self, look: Look, window: Window) -> int:
        """Count the legal anchors."""
        if window.trivial:
            return look.total
        if window.after or window.stride > 1 or not window.short_start:
            return len(self.every(look, window).times)
        # only the first steps held of an episode whose beginning is gone can lack earlier ones
        if self.streams == 1:
            return look.total - self._lacking(look, window.before)
        depth = np.arange(window.before)
        times = np.asarray(look.tails)[:, None] + depth
        held = times < np.asarray(look.heads)[:, None]
        rows = np.arange(self.streams)[:, None] * self.rows_each + times % self.slots
        lacking = held & (np.minimum(self.ages(rows), window.before) > depth)
        return look.total - int(np.count_nonzero(lacking))

    def _lacking(self, look: Look, before: int) -> int:
        """Count, for a single stream, the steps near the tail that lack earlier ones; one by one is fastest for few."""
        tail, ages, slots = look.tails[0], self._ages, self.slots
        near = range(min(before, look.total))
        return sum(min(int(ages[(tail + depth) % slots]), before) > depth for depth in near)

    def every(self, look: Look, window: Window) -> Anchors:
        """List every legal anchor, stream by stream, oldest first: time and memory in proportion to what is held."""
        tails = np.asarray(look.tails)
        counts = np.asarray(look.heads) - tails
        streams = np.repeat(np.arange(self.streams), counts)
        times = np.arange(look.total) + np.repeat(tails - np.cumsum(counts) + counts, counts)
        anchors = Anchors(None if self.streams == 1 else streams, times)
        if window.trivial:
            return anchors
        return anchors.at(self.legal(look, anchors, window))

    def refuse(self, look: Look, window: Window) -> NotEnoughData:
        """Give the error for a request that no step can answer, with the counts."""
        _, _, lengths = self._runs(look)
        return NotEnoughData(
            f"no step can be drawn: {look.total} transitions are held by {self.streams} stream(s), the longest run "
            f"inside one episode is {lengths.max(initial=0)}, and a window needs {window.before} step(s) before and "
            f"{window.after} after its anchor"
        )

    def episodes(self, look: Look) -> tuple[Ints, Ints]:
        """Give stream and last held step of each held episode, stream by stream, the open ones last.

        Takes time in proportion to the episodes, not to the steps.
        """
        tails, heads = np.asarray(look.tails), np.asarray(look.heads)
        numbers, times = self._finals(look), self.final_times
        known = np.arange(times.shape[1]) < numbers[:, None]
        known &= (times >= tails[:, None]) & (times < heads[:, None] - 1)
        owners = np.nonzero(known)[0]
        held = np.flatnonzero(heads > tails)
        # an episode ends at the newest step too, or has got no further yet
        keys = np.concatenate([owners << TIME_BITS | times[known], held << TIME_BITS | heads[held] - 1])
        keys.sort()  # they lie in rings; and one that a writer is just putting there may be out of its turn
        return keys >> TIME_BITS, keys & TIME_MASK

    def _runs(self, look: Look) -> tuple[Ints, Ints, Ints]:
        """Give stream, last held step and number of held steps of each held episode."""
        streams, ends = self.episodes(look)
        before = np.empty_like(ends)
        before[1:] = ends[:-1]
        oldest = np.ones(len(ends), np.bool_)
        oldest[1:] = streams[1:] != streams[:-1]
        before[oldest] = np.asarray(look.tails)[streams[oldest]] - 1
        return streams, ends, ends - before

    def episode_lengths(self, stream: int) -> list[int]:
        """Give the number of held transitions of each episode, oldest first, the open one last."""
        streams, _, lengths = self._runs(self.look())
        found: list[int] = lengths[streams == stream].tolist()
        return found


_THREE = struct.Struct("=3q").unpack


def _of(numbers: Any, anchors: Anchors) -> Any:
    """Give each anchor's stream its number."""
    return numbers[0] if anchors.streams is None else numbers[anchors.streams]
