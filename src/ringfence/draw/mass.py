"""Mass on every legal anchor of a view, and on nothing else, as the ring turns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import NotEnoughData
from ringfence.kernels import sumtree
from ringfence.kernels.sumtree import SumTree
from ringfence.timeline import Anchors, Ints, Look, Timeline, Window

CHUNK = 65536  # steps whose legality is looked up at once, so that a whole ring costs no memory to speak of
WIDE = 16  # steps a stream from which on a range is set as one, and not step by step

Floats = NDArray[np.float64]


class Held(NamedTuple):
    """Which of some named steps are legal anchors now."""

    rows: Ints
    """Of those that are."""
    places: Ints | None
    """Their positions among the named ones; None where all are."""


class Mass:
    """Keep a sum tree of one leaf a row in step with the ring, which is looked at only when something is asked.

    A step gets its mass when the view's window around it is complete, and loses it when a part of the window is gone,
    so that every step with mass may be drawn and none has to be refused.

    Args:
        timeline: Of the ring.
        window: Of the view.
        minimum: Also know the smallest mass; see :class:`SumTree`.
        beside: (rows,) numbers that belong to the steps; they become infinite where a step goes.
    """

    def __init__(self, timeline: Timeline, window: Window, *, minimum: bool, beside: Floats | None = None) -> None:
        self._timeline, self._window, self._beside = timeline, window, beside
        self.tree = SumTree(rows(timeline), minimum=minimum)
        self._after = 0 if window.boundary == "pad" else window.after
        self._marks = b""
        # times from tails to ends - 1 are in the tree
        self._tails = np.zeros(timeline.streams, np.int64)
        self._ends = np.zeros(timeline.streams, np.int64)
        self._strata: Floats = np.arange(0.0)

    @property
    def nbytes(self) -> int:
        """Bytes taken."""
        return self.tree.nbytes + self._tails.nbytes + self._ends.nbytes

    def follow(self, look: Look, leaf: float) -> None:
        """Give ``leaf`` to steps that became legal anchors since the last look, and 0 to those that no longer are."""
        if look.marks == self._marks:
            return
        if self._timeline.streams == 1:
            self._follow_one(look, leaf, 0)
        else:
            self._follow_all(look, leaf)
        self._marks = look.marks

    def _follow_one(self, look: Look, leaf: float, stream: int) -> None:
        """Catch up with one stream, range by range."""
        was, until = int(self._tails[stream]), int(self._ends[stream])
        tail = int(look.tails[stream])
        end = max(int(look.heads[stream]) - self._after, tail)
        gone, came = min(tail, until), max(until, tail)
        for low, high, _ in self._runs(stream, was, gone):
            self.tree.set_range(low, high, 0.0)
            if self._beside is not None:
                self._beside[low:high] = np.inf
        if self._window.trivial:
            for low, high, _ in self._runs(stream, came, end):
                self.tree.set_range(low, high, leaf)
        else:
            self._let_in(look, leaf, stream, came, end)
            if tail > was and self._window.before:
                self._let_in(look, None, stream, tail, min(tail + self._window.before, until, end))
        self._tails[stream], self._ends[stream] = tail, end

    def _let_in(self, look: Look, leaf: float | None, stream: int, first: int, last: int) -> None:
        """Give mass to the legal ones; without ``leaf`` only take it from those that are not."""
        for start in range(first, last, CHUNK):
            for low, high, time in self._runs(stream, start, min(start + CHUNK, last)):
                times = np.arange(time, time + high - low)
                streams = None if self._timeline.streams == 1 else np.full(len(times), stream)
                legal = self._timeline.legal(look, Anchors(streams, times), self._window)
                self.tree.set_range(
                    low, high, np.where(legal, self.tree.leaves[low:high] if leaf is None else leaf, 0.0)
                )

    def _runs(self, stream: int, first: int, last: int) -> tuple[tuple[int, int, int], ...]:
        """Give the one or two ranges of rows in which times lie, as first row, row after the last, and first time."""
        if first >= last:
            return ()
        slots = self._timeline.slots
        start = stream * self._timeline.rows_each
        low = start + first % slots
        high, seam = low + last - first, start + slots
        if high <= seam:
            return ((low, high, first),)
        return (low, seam, first), (start, high - slots, first + seam - low)

    def _follow_all(self, look: Look, leaf: float) -> None:
        """Catch up with many streams: all in one go where each has moved little."""
        tails = np.asarray(look.tails)
        ends = np.maximum(np.asarray(look.heads) - self._after, tails)
        gone, came = np.minimum(tails, self._ends), np.maximum(self._ends, tails)
        moved = (gone > self._tails) | (ends > came)
        changes = int((gone - self._tails).sum() + (ends - came).sum())
        if changes > WIDE * np.count_nonzero(moved):
            for stream in np.flatnonzero(moved | (tails > self._tails)).tolist():
                self._follow_one(look, leaf, stream)
            return
        left, new = _spans(self._tails, gone), _spans(came, ends)
        lost = self._timeline.rows(left)
        if self._beside is not None:
            self._beside[lost] = np.inf
        values = np.full(len(new.times), leaf)
        if not self._window.trivial:
            values *= self._timeline.legal(look, new, self._window)
        # of a row that one step leaves to another the last value stays
        self.tree.set(np.concatenate([lost, self._timeline.rows(new)]), np.concatenate([np.zeros(len(lost)), values]))
        if self._window.before:
            near = np.where(tails > self._tails, np.minimum(tails + self._window.before, np.minimum(ends, came)), tails)
            self._recheck(look, _spans(tails, np.maximum(near, tails)))
        self._tails, self._ends = tails.copy(), ends

    def _recheck(self, look: Look, near: Anchors) -> None:
        """Take the mass of those that have lost a step before them."""
        if len(near.times):
            lost = self._timeline.rows(near.at(~self._timeline.legal(look, near, self._window)))
            self.tree.set(lost, np.zeros(len(lost)))

    def draw(self, look: Look, points: Floats, *, stratified: bool) -> tuple[Anchors, Floats]:
        """Give the anchors that lie at points of the whole mass, and their leaves; after :meth:`follow`.

        Args:
            look: The last look followed.
            points: (n,) from 0 to 1; of the whole mass, or each of its own one of n equal parts.
            stratified: Which of the two.

        Raises:
            NotEnoughData: Nothing has mass.
        """
        total, count = self.tree.total, len(points)
        if not total:
            raise self._refusal(look)
        if stratified:
            if len(self._strata) != count:
                self._strata = np.arange(count, dtype=np.float64)
            points += self._strata
            total /= count
        points *= total
        found, leaves = self.tree.find(points)
        return self._anchors(look, found), leaves

    def chances(self, anchors: Anchors) -> Floats:
        """Give the probability of each of these legal anchors; after :meth:`follow`."""
        total = self.tree.total
        return self.tree.leaves[self._timeline.rows(anchors)] / (total or 1.0)

    def _refusal(self, look: Look) -> NotEnoughData:
        """Tell whether no step is legal, or none of the legal ones has a priority."""
        legal = self._timeline.count(look, self._window)
        if not legal:
            return self._timeline.refuse(look, self._window)
        return NotEnoughData(f"all {legal} steps that could be drawn have priority 0; give some of them more, or eps")

    def _anchors(self, look: Look, found: Ints) -> Anchors:
        """Give the steps that rows hold by a look."""
        slots = self._timeline.slots
        if self._timeline.streams == 1:
            tail = look.tails[0]
            return Anchors(None, tail + (found - tail) % slots)
        streams, places = np.divmod(found, self._timeline.rows_each)
        tails = np.asarray(look.tails)[streams]
        return Anchors(streams, tails + (places - tails) % slots)

    def held(self, look: Look, anchors: Anchors) -> Held:
        """Give the rows of those that are legal anchors by a look, whatever was named."""
        good = self._inside(look, anchors)
        # a search of bytes takes a fifth of the time of a reduction over a few hundred numbers
        places = np.flatnonzero(good) if b"\0" in good.tobytes() else None
        some = anchors if places is None else anchors.at(places)
        if not self._window.trivial and len(some.times):
            legal = self._timeline.legal(look, some, self._window)
            if not legal.all():
                places = np.flatnonzero(legal) if places is None else places[legal]
                some = anchors.at(places)
        return Held(self._timeline.rows(some), places)

    def _inside(self, look: Look, anchors: Anchors) -> NDArray[np.bool_]:
        """Tell which steps are held, legal or not, whatever was named."""
        streams, times = anchors
        if streams is None:
            # what lies before the tail is very large as an unsigned number: one comparison instead of two
            return (times - look.tails[0]).view(np.uint64) < look.total
        known = (streams >= 0) & (streams < self._timeline.streams)
        streams = np.where(known, streams, 0)
        return known & (times >= np.asarray(look.tails)[streams]) & (times < np.asarray(look.heads)[streams])

    def effective(self) -> float:
        """Give the effective sample size: the number of equally likely steps that would be drawn as unevenly."""
        leaves = self.tree.leaves
        peak = float(leaves.max())
        if not peak:
            return 0.0
        squares = 0.0
        for first in range(0, len(leaves), CHUNK):
            chunk = leaves[first : first + CHUNK] / peak
            squares += float(chunk @ chunk)
        return (self.tree.total / peak) ** 2 / squares

    def state(self) -> dict[str, Any]:
        """Give the leaves of what was held at the last look, and which steps these are."""
        return {"tails": self._tails.copy(), "ends": self._ends.copy(), "leaves": self.tree.leaves[self.known()]}

    def known(self) -> Ints:
        """Give the rows of the steps in the tree at the last look, legal or not, stream by stream, oldest first."""
        streams, times = _spans(self._tails, self._ends)
        return self._timeline.rows(Anchors(None if self._timeline.streams == 1 else streams, times))

    def replace(self, places: Ints, leaves: Floats) -> None:
        """Give these rows their mass, and all others none."""
        everything = np.zeros(self.tree.size)
        everything[places] = leaves
        self.tree.set_range(0, self.tree.size, everything)

    def load(self, state: dict[str, Any]) -> NDArray[np.bool_]:
        """Take back what :meth:`state` gave, as far as its steps are still held; give which of them are.

        Raises:
            ValueError: It is of a ring of another shape, or of one that has gone further. Nothing was changed.
        """
        tails, ends = (np.array(state[name], np.int64) for name in ("tails", "ends"))
        leaves = np.asarray(state["leaves"], np.float64)
        look = self._timeline.look()
        fits = tails.shape == ends.shape == self._tails.shape and int((ends - tails).sum()) == len(leaves)
        fits = fits and bool(((tails >= 0) & (tails <= ends) & (ends <= look.heads)).all() and (leaves >= 0).all())
        if not fits or not np.isfinite(leaves.sum()):
            raise ValueError(
                f"priorities: the state of {len(leaves)} steps in {tails.size} stream(s) is not of this ring, which "
                f"holds {look.total} in {self._timeline.streams}"
            )
        named = _spans(tails, ends)
        now = np.asarray(look.tails)
        held: NDArray[np.bool_] = named.times >= np.repeat(now, ends - tails)
        self._tails, self._marks = np.maximum(tails, now), b""
        self._ends = np.maximum(ends, self._tails)
        self.replace(self.known(), leaves[held])
        if self._window.before:
            near = _spans(self._tails, np.minimum(self._tails + self._window.before, self._ends))
            self._recheck(look, near._replace(streams=None) if self._timeline.streams == 1 else near)
        return held


def rows(timeline: Timeline) -> int:
    """Count the rows of a ring."""
    return timeline.streams * timeline.rows_each


def price(rows: int, streams: int, *, minimum: bool) -> int:
    """Give the bytes that a mass takes."""
    return sumtree.cost(rows, minimum=minimum) + 16 * streams


def _spans(firsts: Ints, lasts: Ints) -> Anchors:
    """List the times from each stream's first to before its last."""
    counts = lasts - firsts
    streams = np.repeat(np.arange(len(counts)), counts)
    times = np.arange(len(streams)) + np.repeat(firsts - np.cumsum(counts) + counts, counts)
    return Anchors(streams, times)
