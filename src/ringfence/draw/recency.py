"""Recent steps more often: fading with age, or only the newest so many."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.draw.base import Bound, Drawn, Seed
from ringfence.timeline import Anchors, Ints, Look, Timeline, Window
from ringfence.timeline.spans import Legal, Spans

Floats = NDArray[np.float64]


class Recency:
    """Draw with replacement, a legal anchor half as likely as one that is ``half_life`` steps younger in its stream.

    The probability is exactly in proportion to ``2 ** (-age / half_life)`` over the legal anchors, the age being the
    steps from the anchor to the newest of its stream. Every legal anchor can be drawn, as far as a float64 can tell its
    share from nothing.

    Args:
        half_life: Steps.
        seed: Of a generator of its own; the replay's unless given.

    Raises:
        ValueError: ``half_life`` is no number above 0.
    """

    def __init__(self, half_life: float, seed: Seed = None) -> None:
        self._rate = math.log(2) / _positive("half_life", half_life)
        self._bound = Bound(seed)

    def start(self, timeline: Timeline, window: Window, generator: np.random.Generator) -> None:
        """Serve a view; ValueError if one is served already."""
        self._bound.start(timeline, window, generator)
        self._legal = Legal(timeline, window)

    def draw(self, look: Look, count: int) -> Drawn:
        """Choose ``count`` anchors.

        Raises:
            NotEnoughData: No held step is the anchor of a legal window.
        """
        legal, random = self._legal.at(look), self._bound.random
        shares, youngest = self._shares(look, legal)
        ends = shares.cumsum()
        # rounded up, the product can be the whole: it then falls to the last run with a share
        masses = np.minimum(random.random(count) * ends[-1], np.nextafter(ends[-1], 0))
        runs = ends.searchsorted(masses, "right")
        # within a run the place from its end is a geometric number that stops at the run's length
        step, lengths = self._rate * legal.stride, legal.counts[runs]
        back = np.log1p(random.random(count) * np.expm1(-step * lengths)) / -step
        anchors = legal.steps(runs, lengths - 1 - np.minimum(back.astype(np.int64), lengths - 1))
        ages = look.room(anchors) - 1 - youngest
        return Drawn(anchors, self._masses(legal, ages) / ends[-1])

    def chances(self, look: Look, anchors: Anchors) -> Floats:
        """Give the probability of each of these legal anchors."""
        legal = self._legal.at(look)
        shares, youngest = self._shares(look, legal)
        return self._masses(legal, look.room(anchors) - 1 - youngest) / shares.sum()

    def _shares(self, look: Look, legal: Spans) -> tuple[Floats, int]:
        """Give the mass of each run, a common factor aside, and the age of the youngest anchor."""
        ages = legal.of(look.heads) - 1 - legal.lasts
        youngest = int(ages.min())
        lengths = legal.counts * legal.stride
        return np.exp(-self._rate * (ages - youngest)) * -np.expm1(-self._rate * lengths), youngest

    def _masses(self, legal: Spans, ages: Ints) -> Floats:
        """Give the mass of single anchors, with the same factor, by age beyond that of the youngest."""
        masses: Floats = np.exp(-self._rate * ages) * -np.expm1(-self._rate * legal.stride)
        return masses

    def stats(self) -> dict[str, Any]:
        """Give nothing: there is nothing to tell."""
        return {}

    def state(self) -> dict[str, Any]:
        """Give the generator's state."""
        return self._bound.state()

    def load(self, state: dict[str, Any]) -> None:
        """Take the generator's state back."""
        self._bound.load(state)


class Newest:
    """Draw with replacement, uniformly over the legal anchors among the newest steps.

    Args:
        steps: How many steps, evenly shared by the streams and rounded down, at least one each. Or a function of the
            number of batches drawn so far and the number of steps held that says how many; see :meth:`ere`.
        seed: Of a generator of its own; the replay's unless given.

    Raises:
        ValueError: ``steps`` is neither a function nor a whole number of at least 1.
    """

    def __init__(self, steps: int | Callable[[int, int], float], seed: Seed = None) -> None:
        if not callable(steps) and (isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1):
            raise ValueError(f"steps: expected a whole number of at least 1, or a function, got {steps!r}")
        self._steps = steps
        self._bound = Bound(seed)
        self._drawn, self._share = 0, 1

    @classmethod
    def ere(cls, updates: int, *, eta: float = 0.996, least: int = 1, seed: Seed = None) -> Newest:
        """Emphasise recent experience (Wang & Ross 2019): the window shrinks from batch to batch, then starts again.

        Of a round of K batches, number k = 1..K comes from the newest ``max(N * eta ** (1000 * k / K), least)`` of the
        N steps held.

        Args:
            updates: K, most often the steps of the last episode.
            eta: How far it shrinks: 1 is uniform, 0.996 leaves the last batch the newest 1.8 %.
            least: The smallest window.
            seed: Of a generator of its own; the replay's unless given.

        Raises:
            ValueError: A number makes no sense.
        """
        if isinstance(updates, bool) or not isinstance(updates, int | np.integer) or updates < 1:
            raise ValueError(f"updates: expected a whole number of at least 1, got {updates!r}")
        if not 0 < eta <= 1:
            raise ValueError(f"eta: expected a number above 0 and up to 1, got {eta!r}")
        _positive("least", least)
        return cls(lambda drawn, held: max(held * eta ** (1000 * (drawn % updates + 1) / updates), least), seed)

    def start(self, timeline: Timeline, window: Window, generator: np.random.Generator) -> None:
        """Serve a view; ValueError if one is served already, or the steps are fewer than the streams."""
        if not callable(self._steps) and self._steps < timeline.streams:
            raise ValueError(
                f"steps: {self._steps} leave none to each of {timeline.streams} streams; "
                f"the minimum is {timeline.streams}"
            )
        self._bound.start(timeline, window, generator)
        self._legal = Legal(timeline, window)

    def draw(self, look: Look, count: int) -> Drawn:
        """Choose ``count`` anchors.

        Raises:
            NotEnoughData: None of the newest steps is the anchor of a legal window.
        """
        share = self._each(look)
        newest = self._newest(look, share)
        if not len(newest.counts):
            reason = self._bound.timeline.refuse(look, self._bound.window)
            reason.args = (f"{reason}; of each stream only the newest {share} step(s) are drawn from",)
            raise reason
        total = newest.total
        anchors = newest.nth(self._bound.random.integers(0, total, count))
        self._drawn, self._share = self._drawn + 1, share
        return Drawn(anchors, np.full(count, 1 / total))

    def chances(self, look: Look, anchors: Anchors) -> Floats:
        """Give the probability of each of these legal anchors in a batch such as the last one."""
        total = self._newest(look, self._share).total
        return (look.room(anchors) <= self._share) / max(total, 1)

    def _each(self, look: Look) -> int:
        """Give the steps of each stream that are drawn from now."""
        steps = self._steps(self._drawn, look.total) if callable(self._steps) else self._steps
        return max(int(steps // self._bound.timeline.streams), 1)

    def _newest(self, look: Look, share: int) -> Spans:
        return self._legal.at(look).since(np.asarray(look.heads) - share)

    def stats(self) -> dict[str, Any]:
        """Give ``newest``, the steps of each stream that the last batch was drawn from, and ``batches`` drawn."""
        return {"newest": self._share, "batches": self._drawn}

    def state(self) -> dict[str, Any]:
        """Give the generator's state and the number of batches drawn."""
        return {**self._bound.state(), "batches": self._drawn}

    def load(self, state: dict[str, Any]) -> None:
        """Take them back."""
        self._bound.load(state)
        self._drawn = int(state["batches"])


def _positive(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < math.inf:
        raise ValueError(f"{name}: expected a number above 0, got {value!r}")
    return float(value)
