"""Steps with a large error more often: the proportional way of "Prioritized Experience Replay" (Schaul et al. 2016).

The probability of a step is ``(priority + eps) ** alpha`` over the sum of these numbers over all legal anchors.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.draw.base import Bound, Drawn, Seed
from ringfence.draw.importance import Beta, Importance, Normalise, number
from ringfence.draw.mass import Mass, price, rows
from ringfence.store import Cost
from ringfence.timeline import Anchors, Look, Timeline, Window

UNIFORM = 0.95  # of the legal anchors: an effective sample size from which on priorities change next to nothing

Floats = NDArray[np.float64]


class Prioritized:
    """Draw with replacement, each legal anchor in proportion to its priority.

    Priorities are given with ``view.update_priorities(batch.ids, ...)``. A step that has none yet has the largest that
    was ever given to a step then held, and 1 at least, so that it is drawn soon. Those of steps that are gone, or that
    are no longer legal anchors, are skipped. Costs 8.6 bytes a row of the ring, and half a byte more to normalise by
    memory.

    ``stats()`` gives the effective sample size ``(sum p)**2 / sum p**2`` and its share of the legal anchors. From a
    share of 0.95 on it reports ``near_uniform``: priorities then change next to nothing, and uniform draws do the same
    for less time and memory.

    Args:
        alpha: How much priorities matter: 0 is uniform, 1 in proportion.
        beta: How much of the bias the weights correct: 1 all of it. Or a schedule, a function of the number of steps
            added to the ring so far, such as :func:`linear`.
        eps: Added to each priority, so that a step of priority 0 is still drawn; with 0 it is not.
        stratified: Draw one step from each of so many equal parts of the whole mass, which varies less. Each step is as
            likely as without, but a batch is then in the order of memory.
        normalise: Divide weights by the largest of the batch, or by the largest of any legal anchor.
        seed: Of a generator of its own; the replay's unless given.

    Raises:
        ValueError: A number is negative, NaN or infinite.
    """

    def __init__(
        self,
        alpha: float = 0.6,
        beta: Beta = 0.4,
        eps: float = 1e-6,
        *,
        stratified: bool = True,
        normalise: Normalise = "batch",
        seed: Seed = None,
    ) -> None:
        self._alpha, self._eps = number("alpha", alpha), number("eps", eps)
        self._importance = Importance(beta, normalise)
        self._stratified = stratified
        self._bound = Bound(seed)
        self._mass: Mass | None = None
        self._largest, self._entry = 1.0, 0.0
        self._ceiling = np.float64(np.inf)  # of priorities, so that the sum of all leaves is finite

    def start(self, timeline: Timeline, window: Window, generator: np.random.Generator) -> None:
        """Serve a view, and take the memory; ValueError if one is served already."""
        self._bound.start(timeline, window, generator)
        self._mass = Mass(timeline, window, minimum=self._importance.memory)
        with np.errstate(over="ignore", divide="ignore"):
            self._ceiling = np.float64(sys.float_info.max / rows(timeline)) ** np.divide(1, self._alpha) - self._eps
        self._raise(1.0)

    def draw(self, look: Look, count: int) -> Drawn:
        """Choose ``count`` anchors.

        Raises:
            NotEnoughData: No held step is the anchor of a legal window, or all priorities are 0.
            ValueError: The schedule of beta gave no number of 0 or more.
        """
        mass = self._serving()
        mass.follow(look, self._entry)
        anchors, leaves = mass.draw(look, self._bound.random.random(count), stratified=self._stratified)
        weights = self._importance.weights(mass.tree, leaves, look)
        return Drawn(anchors, leaves / mass.tree.total, weights)

    def chances(self, look: Look, anchors: Anchors) -> Floats:
        """Give the probability of each of these legal anchors."""
        mass = self._serving()
        mass.follow(look, self._entry)
        return mass.chances(anchors)

    def update(self, anchors: Anchors, priorities: Floats) -> int:
        """Take new priorities, the last one where a step is named twice; give how many were applied.

        Raises:
            ValueError: A priority is negative, NaN, infinite, or so large that a sum of them would be; none was taken.
        """
        mass = self._serving()
        leaves, largest = self._leaves(priorities)
        look = self._bound.timeline.look()
        mass.follow(look, self._entry)
        held = mass.held(look, anchors)
        if held.places is not None:
            leaves = leaves[held.places]
            largest = float(priorities[held.places].max(initial=0))
        if len(leaves):
            mass.tree.set(held.rows, leaves)
            if largest > self._largest:
                self._raise(largest)
        return len(leaves)

    def _leaves(self, priorities: Floats) -> tuple[Floats, float]:
        """Turn priorities into mass, the one place where alpha is applied; and give the largest of them."""
        largest = checked(priorities, self._ceiling)
        leaves: Floats = (priorities + self._eps) ** self._alpha
        return leaves, largest

    def _raise(self, largest: float) -> None:
        """Let new steps enter at this priority."""
        self._entry = float(self._leaves(np.array([largest]))[0][0])
        self._largest = largest

    def _serving(self) -> Mass:
        if self._mass is None:
            raise ValueError("this draw serves no view yet; pass it as draw= to one")
        return self._mass

    @property
    def nbytes(self) -> int:
        """Bytes taken; none before a view is served."""
        return 0 if self._mass is None else self._mass.nbytes

    def stats(self) -> dict[str, Any]:
        """Give figures for a log: the size of the draw's tree, its mass, and how uneven it is."""
        mass, timeline = self._serving(), self._bound.timeline
        look = timeline.look()
        mass.follow(look, self._entry)
        return unevenness(mass, timeline.count(look, self._bound.window)) | {
            "max_priority": self._largest,
            "beta": self._importance.beta(look),
            "nbytes": self.nbytes,
        }

    def state(self) -> dict[str, Any]:
        """Give the generator's state, the leaves of the steps held, and the largest priority."""
        return self._bound.state() | self._serving().state() | {"max_priority": self._largest}

    def load(self, state: dict[str, Any]) -> None:
        """Take back what :meth:`state` gave.

        Raises:
            ValueError: It is of a ring of another shape, of one that has gone further, or of a draw whose priorities
                were larger than this one's alpha allows. Nothing was changed.
        """
        largest = float(state["max_priority"])
        self._leaves(np.array([largest]))
        self._serving().load(state)
        self._bound.load(state)
        self._raise(largest)


def cost(rows: int, streams: int = 1, *, normalise: Normalise = "batch") -> list[Cost]:
    """Price the priorities of a ring of so many rows in all."""
    return [Cost("priorities", price(rows, streams, minimum=normalise == "memory"), "a sum tree of float64")]


def checked(priorities: Floats, ceiling: float = math.inf) -> float:
    """Give the largest of some priorities.

    Raises:
        ValueError: One is negative, NaN, or not below ``ceiling``; the text names the first.
    """
    if not len(priorities):
        return 0.0
    largest = float(priorities.max())
    if priorities.min() >= 0 and largest < ceiling:
        return largest
    at = int(np.flatnonzero(~((priorities >= 0) & (priorities < ceiling)))[0])
    bound = "finite" if ceiling == math.inf else f"below {ceiling:g}"
    raise ValueError(
        f"priorities: expected numbers of at least 0 and {bound}, got {priorities[at]} at position {at}; "
        "of a TD error give the size, abs(error)"
    )


def unevenness(mass: Mass, legal: int) -> dict[str, Any]:
    """Give the figures that say whether priorities are worth it."""
    effective = mass.effective()
    share = effective / legal if legal else 0.0
    return {
        "mass": mass.tree.total,
        "effective_sample_size": effective,
        "effective_share": share,
        "near_uniform": share >= UNIFORM,
    }
