"""Steps by the rank of their error: the rank-based way of "Prioritized Experience Replay" (Schaul et al. 2016).

The probability of a step is ``rank ** -alpha`` over the sum of these numbers over all legal anchors, where the rank is
1 for the largest priority. How large an error is does not matter, only how many are larger: outliers do no harm.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.draw.base import Bound, Drawn, Seed
from ringfence.draw.importance import Beta, Importance, Normalise, number
from ringfence.draw.mass import Mass, price, rows
from ringfence.draw.prioritized import checked, unevenness
from ringfence.store import Cost
from ringfence.timeline import Anchors, Ints, Look, Timeline, Window

LEAST = sys.float_info.min  # the mass of the last of very many ranks: still not 0, which would be no mass at all

Floats = NDArray[np.float64]


class Ranked:
    """Draw with replacement, each legal anchor by the rank of its priority.

    The rank of a step is 1 and the number of steps with a larger priority; steps that were never given one have rank 1.
    All ranks are worked out anew by sorting, after every so many updates. In between a step takes, when it is updated,
    the rank that its priority has in the order of the last sort; probabilities and weights always are those by which
    steps are drawn. Costs 24.6 bytes a row of the ring, and 64 bytes more while it sorts.

    Args:
        alpha: How much ranks matter: 0 is uniform.
        beta: How much of the bias the weights correct, or a schedule; see :class:`Prioritized`.
        resort: Sort after more updates than this share of the steps that were there at the last sort. A million steps
            are sorted in 0.15 s, which by default comes every half a million updates.
        stratified: Draw one step from each of so many equal parts of the whole mass; see :class:`Prioritized`.
        normalise: Divide weights by the largest of the batch, or by the largest of any legal anchor.
        seed: Of a generator of its own; the replay's unless given.

    Raises:
        ValueError: A number is negative, NaN or infinite.
    """

    def __init__(
        self,
        alpha: float = 0.7,
        beta: Beta = 0.5,
        *,
        resort: float = 0.5,
        stratified: bool = True,
        normalise: Normalise = "batch",
        seed: Seed = None,
    ) -> None:
        self._alpha, self._resort = number("alpha", alpha), number("resort", resort)
        self._importance = Importance(beta, normalise)
        self._stratified = stratified
        self._bound = Bound(seed)
        self._mass: Mass | None = None
        self._updates, self._sorted = 0, 0

    def start(self, timeline: Timeline, window: Window, generator: np.random.Generator) -> None:
        """Serve a view, and take the memory; ValueError if one is served already."""
        self._bound.start(timeline, window, generator)
        # infinite where a step has none yet: it then ranks first
        self._priorities: Floats = np.full(rows(timeline), np.inf)
        self._order: Floats = np.full(rows(timeline), np.inf)
        self._mass = Mass(timeline, window, minimum=self._importance.memory, beside=self._priorities)

    def draw(self, look: Look, count: int) -> Drawn:
        """Choose ``count`` anchors.

        Raises:
            NotEnoughData: No held step is the anchor of a legal window.
            ValueError: The schedule of beta gave no number of 0 or more.
        """
        mass = self._serving()
        mass.follow(look, 1.0)
        anchors, leaves = mass.draw(look, self._bound.random.random(count), stratified=self._stratified)
        weights = self._importance.weights(mass.tree, leaves, look)
        return Drawn(anchors, leaves / mass.tree.total, weights)

    def chances(self, look: Look, anchors: Anchors) -> Floats:
        """Give the probability of each of these legal anchors."""
        mass = self._serving()
        mass.follow(look, 1.0)
        return mass.chances(anchors)

    def update(self, anchors: Anchors, priorities: Floats) -> int:
        """Take new priorities, the last one where a step is named twice; give how many were applied.

        Raises:
            ValueError: A priority is negative, NaN or infinite; none was taken.
        """
        mass = self._serving()
        checked(priorities)
        look = self._bound.timeline.look()
        mass.follow(look, 1.0)
        held = mass.held(look, anchors)
        if held.places is not None:
            priorities = priorities[held.places]
        if not len(priorities):
            return 0
        self._priorities[held.rows] = priorities
        self._updates += len(priorities)
        if self._updates > self._resort * self._sorted:
            self._sort(mass)
        else:
            mass.tree.set(held.rows, self._leaves(self._priorities[held.rows]))
        return len(priorities)

    def _sort(self, mass: Mass) -> None:
        """Rank every legal anchor anew."""
        known = mass.known()
        known = known[mass.tree.leaves[known] > 0]
        priorities = self._priorities[known]
        places = priorities.argsort()
        self._sorted, self._updates = len(known), 0
        order = self._order[: len(known)]
        np.take(priorities, places, out=order, mode="clip")
        # in a sorted list the members of a run of equals have the same number of larger ones: those behind the run
        ends = np.flatnonzero(np.append(order[1:] != order[:-1], [True])) + 1
        leaves = np.empty(len(known))
        leaves[places] = np.repeat(self._mass_of(len(known) - ends), np.diff(ends, prepend=0))
        mass.replace(known, leaves)

    def _leaves(self, priorities: Floats) -> Floats:
        """Give the mass of priorities by their rank in the order of the last sort."""
        return self._mass_of(self._sorted - self._order[: self._sorted].searchsorted(priorities, "right"))

    def _mass_of(self, larger: Ints) -> Floats:
        """Turn the number of larger priorities into mass: the one place where alpha is applied."""
        return np.maximum((larger + 1.0) ** -self._alpha, LEAST)

    def _serving(self) -> Mass:
        if self._mass is None:
            raise ValueError("this draw serves no view yet; pass it as draw= to one")
        return self._mass

    @property
    def nbytes(self) -> int:
        """Bytes taken; none before a view is served."""
        return 0 if self._mass is None else self._mass.nbytes + self._priorities.nbytes + self._order.nbytes

    def stats(self) -> dict[str, Any]:
        """Give figures for a log: the size of the draw's tree, its mass, and how uneven it is."""
        mass, timeline = self._serving(), self._bound.timeline
        look = timeline.look()
        mass.follow(look, 1.0)
        return unevenness(mass, timeline.count(look, self._bound.window)) | {
            "updates_since_sort": self._updates,
            "beta": self._importance.beta(look),
            "nbytes": self.nbytes,
        }

    def state(self) -> dict[str, Any]:
        """Give the generator's state, the leaves and priorities of the steps held, and the order of the last sort."""
        mass = self._serving()
        own = {
            "priorities": self._priorities[mass.known()],
            "order": self._order[: self._sorted].copy(),
            "updates": self._updates,
        }
        return self._bound.state() | mass.state() | own

    def load(self, state: dict[str, Any]) -> None:
        """Take back what :meth:`state` gave.

        Raises:
            ValueError: It is of a ring of another shape, or of one that has gone further. Nothing was changed.
        """
        priorities, order = (np.asarray(state[name], np.float64) for name in ("priorities", "order"))
        if len(priorities) != len(state["leaves"]) or len(order) > len(priorities):
            raise ValueError(f"ranks: {len(priorities)} priorities and {len(order)} ranks are not of one state")
        mass = self._serving()
        held = mass.load(state)
        self._bound.load(state)
        self._priorities[:] = np.inf
        self._priorities[mass.known()] = priorities[held]
        if len(order) > len(self._order):  # of a larger ring
            self._sort(mass)
            return
        self._sorted, self._updates = len(order), int(state["updates"])
        self._order[: self._sorted] = order


def cost(rows: int, streams: int = 1, *, normalise: Normalise = "batch") -> list[Cost]:
    """Price the ranks of a ring of so many rows in all."""
    return [
        Cost("priorities", 8 * rows, "float64"),
        Cost("order of priorities", 8 * rows, "float64, as of the last sort"),
        Cost("ranks", price(rows, streams, minimum=normalise == "memory"), "a sum tree of float64"),
    ]
