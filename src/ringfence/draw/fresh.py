"""Each new step at least once, soon after it was added."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.draw.base import Draw, Drawn
from ringfence.draw.mix import take_back, updatable, updated
from ringfence.draw.split import HAIR, joined, joined_weights
from ringfence.draw.uniform import Uniform
from ringfence.timeline import Anchors, Ints, Look, Timeline, Window
from ringfence.timeline.spans import Legal, Spans


class Fresh:
    """Draw each new step once, soon after it was added, and fill up the batch with another draw.

    This is the online queue of DreamerV3 (Hafner et al. 2023), without the queue: a number for each stream says how far
    it has come. Where a view reads windows of several steps, windows lie side by side from the beginning of each
    episode on, and one more ends with the episode where the last is cut short: so each step is read at least once, as
    far as any legal window holds it, and a window waits until the step behind it is known.

    The longest waiting steps come first. Those that are overwritten or cleared before their turn are counted; what is
    left of their window is not made up for. What was added before the view was made is not new.

    Rows of new steps lie in front. Their ``probabilities`` are NaN, since they were not drawn by chance; those of the
    other rows are the inner draw's.

    Costs 8 bytes a stream.

    Args:
        inner: The draw of the other rows; uniform unless given.
        share: Of a batch, the most that new steps may take, above 0 and up to 1. A fraction of a row is kept for the
            batches that follow.

    Raises:
        ValueError: ``share`` is not above 0, or above 1.
    """

    def __init__(self, inner: Draw | None = None, share: float = 1.0) -> None:
        if isinstance(share, bool) or not 0 < share <= 1:
            raise ValueError(f"share: expected a number above 0 and up to 1, got {share!r}")
        self._inner = Uniform() if inner is None else inner
        self._share, self._owed = float(share), 0.0
        self._given = self._missed = 0
        self._inner_took = False

    def start(self, timeline: Timeline, window: Window, generator: np.random.Generator) -> None:
        """Serve a view, with the inner draw; ValueError if that serves one already."""
        self._inner.start(timeline, window, generator)
        self._timeline, self._window, self._legal = timeline, window, Legal(timeline, window)
        self._tile = window.stride * max(1, (window.after + 1) // window.stride)
        # the first new step may lie within a window that begins before it
        self._next = np.maximum(np.asarray(timeline.look().heads) - window.after, 0)
        self._before = self._note()

    def draw(self, look: Look, count: int) -> Drawn:
        """Choose ``count`` anchors.

        Raises:
            NotEnoughData: No held step is the anchor of a legal window.
        """
        self._before, self._inner_took = self._note(), False
        due = self._owed + self._share * count
        quota = int(due + HAIR)
        fresh, after, missed = self._fresh(look, quota)
        given = len(fresh.times)
        rest = self._inner.draw(look, count - given) if given < count else None
        self._inner_took = rest is not None
        self._next, self._owed = after, due - quota
        self._given, self._missed = self._given + given, self._missed + missed
        if rest is None:
            return Drawn(fresh, np.full(given, np.nan))
        if not given:
            return rest
        probabilities = rest.probabilities
        if probabilities is None:
            probabilities = np.full(count - given, 1 / self._legal.at(look).total)
        return Drawn(
            joined([fresh, rest.anchors]),
            np.concatenate([np.full(given, np.nan), probabilities]),
            joined_weights([Drawn(fresh), rest]),
        )

    def take_back(self) -> None:
        """Take the last batch back, which nobody got: its new steps come next."""
        self._next, self._owed, self._given, self._missed = self._before
        if self._inner_took:
            take_back(self._inner)

    def _note(self) -> tuple[Ints, float, int, int]:
        """Give all that a batch changes; the array is never written to."""
        return self._next, self._owed, self._given, self._missed

    def _fresh(self, look: Look, quota: int) -> tuple[Anchors, Ints, int]:
        """Find at most ``quota`` new anchors; give them, how far each stream has come, and the steps that were lost."""
        after, tails = self._window.after, np.asarray(look.tails)
        ends = np.asarray(look.heads) - (after + 1 if after else 0)
        at = np.maximum(self._next, tails)
        missed = int((at - self._next).sum())
        found, reach = [], quota * self._tile
        while quota and reach:
            steps = longest(np.maximum(ends - at, 0), reach)
            if not steps.any():
                break
            anchors = self._due(look, between(self._timeline, at, steps))
            at = at + steps
            anchors = self._first(anchors, ends, at, quota)
            found.append(anchors)
            quota -= len(anchors.times)
            reach *= 2  # few were due among so many: looking ever further takes few rounds
        if not found:
            found.append(between(self._timeline, at, np.zeros_like(at)))
        return joined(found), at, missed

    def _due(self, look: Look, anchors: Anchors) -> Anchors:
        """Give the anchors that are to be drawn for their own sake."""
        timeline, window = self._timeline, self._window
        if window.trivial and not window.after:
            return anchors
        legal = timeline.legal(look, anchors, window)
        if self._tile == 1:
            return anchors.at(legal)
        ages = timeline.ages(timeline.rows(anchors))
        due = (ages - (0 if window.short_start else window.before)) % self._tile == 0
        if window.boundary == "stop":
            beyond = timeline.rows(anchors._replace(times=anchors.times + window.after + 1))
            due |= timeline.ages(beyond) != ages + window.after + 1
        return anchors.at(legal & due)

    @staticmethod
    def _first(anchors: Anchors, ends: Ints, at: Ints, quota: int) -> Anchors:
        """Keep the ``quota`` that have waited longest; set back the streams of the others."""
        if len(anchors.times) <= quota:
            return anchors
        streams = np.zeros(len(anchors.times), np.int64) if anchors.streams is None else anchors.streams
        order = (anchors.times - ends[streams]).argsort(kind="stable")
        late = order[quota:]
        np.minimum.at(at, streams[late], anchors.times[late])
        return anchors.at(order[:quota])

    @property
    def updatable(self) -> bool:
        """Whether the inner draw takes priorities."""
        return updatable(self._inner)

    def update(self, anchors: Anchors, priorities: NDArray[np.float64]) -> int:
        """Give the inner draw new priorities; give how many were applied.

        Raises:
            TypeError: The inner draw has no priorities.
            ValueError: A priority is negative, NaN or infinite; none was taken.
        """
        return updated([self._inner], anchors, priorities)

    def stats(self) -> dict[str, Any]:
        """Give ``fresh`` rows drawn, steps ``waiting``, those ``missed``, and the ``inner`` draw's figures."""
        look = self._timeline.look()
        waiting = np.asarray(look.heads) - np.maximum(self._next, np.asarray(look.tails))
        return {
            "fresh": self._given,
            "waiting": int(np.maximum(waiting, 0).sum()),
            "missed": self._missed,
            "inner": self._inner.stats(),
        }

    def state(self) -> dict[str, Any]:
        """Give how far each stream has come, what is owed, the counts, and the inner draw's state."""
        return {
            "next": self._next.copy(),
            "owed": self._owed,
            "fresh": self._given,
            "missed": self._missed,
            "inner": self._inner.state(),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take them back; ValueError if they are of another number of streams, or of a ring that has gone further."""
        after = np.array(state["next"], np.int64)
        if after.shape != self._next.shape:
            raise ValueError(f"state: is of {after.size} stream(s), and there are {self._next.size}")
        if (after < 0).any() or (after > np.asarray(self._timeline.look().heads)).any():
            raise ValueError("state: it has drawn steps that this ring never held")
        self._inner.load(state["inner"])
        self._owed = float(state["owed"])
        self._next, self._given, self._missed = after, int(state["fresh"]), int(state["missed"])
        self._before, self._inner_took = self._note(), False


def between(timeline: Timeline, firsts: Ints, counts: Ints) -> Anchors:
    """Give the next so many steps of each stream."""
    streams = None if timeline.streams == 1 else np.arange(timeline.streams)
    return Spans(streams, firsts, counts).nth(np.arange(int(counts.sum())))


def longest(lengths: Ints, count: int) -> Ints:
    """Take ``count`` in all, or everything, so that the longest of what is left is as short as can be."""
    if int(lengths.sum()) <= count:
        return lengths
    ordered = np.sort(lengths)[::-1]
    sums = ordered.cumsum()
    # to cut the k longest down to the length of the k-th takes this many
    cut = sums - np.arange(1, len(ordered) + 1) * ordered
    some = int(cut.searchsorted(count, "right"))
    level = -(-(int(sums[some - 1]) - count) // some)
    taken = np.maximum(lengths - level, 0)
    spare = np.flatnonzero(lengths >= level)[: count - int(taken.sum())]
    taken[spare] += 1
    return taken
