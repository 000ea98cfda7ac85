"""What every view does the same way: look, draw, read, and look again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ringfence.draw import Draw, Drawn
from ringfence.errors import NotEnoughData
from ringfence.timeline import Ints, Look, Timeline, Window

ATTEMPTS = 1000  # whole batches that a writer may overtake; one in a thousand is, on a ring of a few hundred steps
Taken = TypeVar("Taken")


class Updated(NamedTuple):
    """What became of priorities."""

    applied: int
    stale: int
    """Of steps that are gone, or that no longer begin a legal window."""


class Sampler:
    """Draw anchors for a view and have them read whole, whatever a writer does meanwhile."""

    def __init__(self, timeline: Timeline, draw: Draw, window: Window, reach: int) -> None:
        """Serve one view.

        Args:
            timeline: Of the ring.
            draw: Which steps to take; started already.
            window: What must be held around an anchor.
            reach: Steps after an anchor that the view reads, legal or not.
        """
        self._timeline, self._draw, self._window, self._reach = timeline, draw, window, reach
        # a draw that takes each step once gives back those of a batch that was overtaken
        self._take_back = getattr(draw, "take_back", None)

    def sample(self, n: int, read: Callable[[Look, Drawn], Taken | None]) -> Taken:
        """Give what ``read`` took for ``n`` anchors; where it gives None it was overtaken, and they are drawn again.

        Raises:
            NotEnoughData: Nothing can be drawn; the text holds the counts.
            ValueError: ``n`` is no number of anchors.
        """
        timeline = self._timeline
        if n.__class__ is not int or n < 1:
            n = _checked(n)
        for _ in range(ATTEMPTS):
            look = timeline.look()
            try:
                drawn = self._draw.draw(look, n)
            except NotEnoughData:
                if timeline.look().marks == look.marks:
                    raise
                continue  # a writer turned the ring while the draw looked at it, and left nothing of what was there
            taken = read(look, drawn)
            if taken is not None and timeline.untouched(look, drawn.anchors, self._window.before, self._reach):
                return taken
            if self._take_back is not None:
                self._take_back()
        raise NotEnoughData(
            f"the ring of {timeline.capacity} steps a stream was overtaken {ATTEMPTS} times while {n} windows were "
            "being read; give it more capacity, or draw fewer at a time"
        )

    def can_sample(self, n: int) -> bool:
        """Tell whether at least ``n`` different anchors can be drawn."""
        return self._timeline.count(self._timeline.look(), self._window) >= n

    def ids(self) -> Ints:
        """List the id of every anchor that can be drawn, stream by stream, oldest first."""
        return self._timeline.ids(self._timeline.every(self._timeline.look(), self._window))

    def update(self, ids: Any, priorities: Any) -> Updated:
        """Give the draw new priorities.

        Raises:
            TypeError: The draw has no priorities.
            ValueError: The shapes differ, or a priority is negative, NaN or infinite; none was taken.
        """
        update = getattr(self._draw, "update", None)
        if update is None:
            raise TypeError(f"{type(self._draw).__name__} draws have no priorities; pass draw=Prioritized(...)")
        names, values = np.asarray(ids, np.int64), np.asarray(priorities, np.float64)
        if names.ndim != 1 or values.shape != names.shape:
            raise ValueError(f"priorities: expected one for each of {names.shape} ids, got shape {values.shape}")
        applied = int(update(self._timeline.anchors(names), values))
        return Updated(applied, len(names) - applied)

    def stats(self) -> dict[str, Any]:
        """Give the draw's figures."""
        return self._draw.stats()

    def state(self) -> dict[str, Any]:
        """Give the draw's state."""
        return self._draw.state()

    def load(self, state: dict[str, Any]) -> None:
        """Take it back."""
        self._draw.load(state)

    @property
    def kind(self) -> str:
        """The name of the kind of draw."""
        return type(self._draw).__name__


def probabilities(drawn: Drawn, count: Callable[[], int]) -> NDArray[np.float64]:
    """Give the probability of each anchor."""
    if drawn.probabilities is not None:
        return drawn.probabilities
    return np.full(len(drawn.anchors.times), 1 / count())


def weights(drawn: Drawn) -> NDArray[np.float32]:
    """Give the importance weight of each anchor."""
    return np.ones(len(drawn.anchors.times), np.float32) if drawn.weights is None else drawn.weights


def _checked(n: Any) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n: expected a whole number of at least 1, got {n!r}")
    return int(n)
