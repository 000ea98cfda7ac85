"""Fixed shares of each batch by several draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.draw.base import Draw, Drawn
from ringfence.draw.epochs import Epochs
from ringfence.draw.split import Split, joined, joined_weights
from ringfence.draw.uniform import Uniform
from ringfence.timeline import Anchors, Look, Timeline, Window
from ringfence.timeline.spans import Legal

Floats = NDArray[np.float64]
EVEN = (Uniform, Epochs)  # draws that choose each anchor as often as any other


class Mix:
    """Draw fixed shares of each batch by several draws, and lay their rows one after the other.

    A share that is no whole number of rows is made up for in the batches that follow: in the long run shares are exact.

    ``probabilities`` are those of the mixture, each draw's own weighted by its share, and NaN where one of the draws
    cannot tell how likely a step is that another one chose (:class:`Fresh`). Weights are each draw's own, 1 where it
    gives none. New priorities go to every draw that takes them.

    Args:
        parts: Pairs of a draw and its share. Shares are numbers above 0 in any unit, such as
            ``[(Uniform(), 3), (Recency(1000), 1)]``.

    Raises:
        ValueError: There is no part, or a share is not above 0.
    """

    def __init__(self, parts: Sequence[tuple[Draw, float]]) -> None:
        self._draws = [draw for draw, _ in parts]
        self._split = Split([share for _, share in parts])
        if not self._split.shares.all():
            raise ValueError(f"shares: expected numbers above 0, got {[share for _, share in parts]}")
        self._owed = self._split.carry
        self._took: list[Draw] = []
        """The draws that the last batch came from."""

    def start(self, timeline: Timeline, window: Window, generator: np.random.Generator) -> None:
        """Serve a view with every part; ValueError if one serves a view already."""
        for draw in self._draws:
            draw.start(timeline, window, generator)
        self._legal = Legal(timeline, window)

    def draw(self, look: Look, count: int) -> Drawn:
        """Choose ``count`` anchors.

        Raises:
            NotEnoughData: One of the draws finds nothing; what the others chose is taken back.
        """
        counts = self._split.of(count)
        self._owed, self._took = self._split.carry, []
        parts = []
        for draw, rows in zip(self._draws, counts, strict=True):
            if rows:
                try:
                    parts.append(draw.draw(look, rows))
                except ValueError:
                    self.take_back()
                    raise
                self._took.append(draw)
        self._split.give(counts)
        anchors = joined([part.anchors for part in parts])
        even = all(isinstance(draw, EVEN) for draw in self._draws)
        return Drawn(anchors, None if even else self.chances(look, anchors), joined_weights(parts))

    def take_back(self) -> None:
        """Take the last batch back, which nobody got."""
        self._split.carry = self._owed
        for draw in self._took:
            take_back(draw)

    def chances(self, look: Look, anchors: Anchors) -> Floats:
        """Give the probability of each of these legal anchors, NaN where it is not known."""
        total = np.zeros(len(anchors.times))
        for draw, share in zip(self._draws, self._split.shares, strict=True):
            if isinstance(draw, EVEN):
                total += share / self._legal.at(look).total
            else:
                own = getattr(draw, "chances", None)
                total += np.nan if own is None else share * own(look, anchors)
        return total

    @property
    def updatable(self) -> bool:
        """Whether one of the draws takes priorities."""
        return any(map(updatable, self._draws))

    def update(self, anchors: Anchors, priorities: Floats) -> int:
        """Give new priorities to every draw that takes them; give how many were applied.

        Raises:
            TypeError: No draw has priorities.
            ValueError: A priority is negative, NaN or infinite; none was taken.
        """
        return updated(self._draws, anchors, priorities)

    def stats(self) -> dict[str, Any]:
        """Give each draw's figures, in a list."""
        return {"parts": [draw.stats() for draw in self._draws]}

    def state(self) -> dict[str, Any]:
        """Give each draw's state, and what is owed to whom."""
        return {"owed": self._split.carry.copy(), "parts": [draw.state() for draw in self._draws]}

    def load(self, state: dict[str, Any]) -> None:
        """Take them back; ValueError if they are of another number of draws."""
        self._split.load(state["owed"])
        self._owed, self._took = self._split.carry, []
        for draw, part in zip(self._draws, state["parts"], strict=True):
            draw.load(part)


def take_back(draw: Draw) -> None:
    """Have a draw that keeps account take its last batch back."""
    again = getattr(draw, "take_back", None)
    if again is not None:
        again()


def updatable(draw: Draw) -> bool:
    """Tell whether a draw, or one of those that it is made of, takes priorities."""
    return bool(getattr(draw, "updatable", hasattr(draw, "update")))


def updated(draws: Iterable[Draw], anchors: Anchors, priorities: Floats) -> int:
    """Give new priorities to all draws that take them; give how many were applied.

    Raises:
        TypeError: None has priorities.
    """
    takers: list[Any] = [draw for draw in draws if updatable(draw)]
    if not takers:
        raise TypeError("none of these draws has priorities; make one of them Prioritized(...)")
    return max(int(draw.update(anchors, priorities)) for draw in takers)
