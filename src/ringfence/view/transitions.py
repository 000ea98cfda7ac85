"""Transitions: a step, its successor, and the return over n steps between them.

The n-step return (Sutton 1988; Hessel et al. 2018, equation 1) sums ``gamma**i * reward`` over the steps used: n of
them, or fewer where the episode ends, is cut, or has not gone further yet. The next observation is the successor of the
last step used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.draw import Draw, Drawn
from ringfence.schema.field import Field
from ringfence.schema.layout import FINAL_FIELD, INSIDE, Layout
from ringfence.store import Store
from ringfence.timeline import Ints, Look, Timeline, Window
from ringfence.view.batch import Batch, Recipe
from ringfence.view.finals import Finals
from ringfence.view.gathering import Gathering, Part
from ringfence.view.leaves import present, tree_of
from ringfence.view.pool import Pool
from ringfence.view.sampler import Sampler, Updated, probabilities, weights
from ringfence.view.stack import Stacker

Array = NDArray[Any]
NEXT = "next_"


def window(layout: Layout) -> Window:
    """Say what a transition needs: the frames of its stack."""
    return Window(before=layout.schema.stack - 1, short_start=True)


class Taken:
    """What was copied out of the ring for one batch."""

    __slots__ = ("anchors", "arrays", "count", "drawn", "legal", "returns", "steps")

    def __init__(self, drawn: Drawn, legal: int) -> None:
        self.drawn, self.anchors, self.count = drawn, drawn.anchors, len(drawn.anchors.times)
        self.legal = legal
        """Anchors that could have been drawn."""
        self.arrays: dict[str, Array] = {}
        """By leaf; the successors' observations are ``next_obs``, as ``obs`` is of the anchors."""
        self.returns: Array | None = None
        self.steps: Array | None = None


class Transitions:
    """Sample transitions.

    Any number of threads or forked processes may sample, each through a view of its own, while one writer a stream
    adds: a batch that was overtaken is drawn again.
    """

    def __init__(self, store: Store, timeline: Timeline, draw: Draw, *, n_step: int = 1, gamma: float = 0.99) -> None:
        """Serve the ring of a store; the draw is started by the caller, with :func:`window`."""
        layout = store.layout
        self._store, self._timeline, self._layout = store, timeline, layout
        self._n, self._gammas = n_step, gamma ** np.arange(n_step, dtype=np.float64)
        self._window = window(layout)
        self._sampler = Sampler(timeline, draw, self._window, reach=n_step - 1)
        now, then = _anchor_parts(layout, n_step), _last_parts(layout)
        # over one step both are parts of the same records, and are copied in one go
        self._gatherings = [Gathering(store, now + then)] if n_step == 1 else [Gathering(store, p) for p in (now, then)]
        self._finals = Finals(store)
        self._stackers = {
            leaf.name: Stacker(store, timeline, at, leaf.field)
            for at, leaf in enumerate(layout.columns)
            if leaf.field.stack is not None
        }
        self._pools = {leaf.name: Pool(leaf.field.shape, leaf.field.kept) for leaf in layout.columns}
        self._batch = Batch.kind(recipes_of(layout, n_step, gamma))

    def sample(self, n: int) -> Batch:
        """Draw ``n`` transitions, with replacement.

        Raises:
            NotEnoughData: Nothing can be drawn; the text holds the counts.
        """
        return self._batch(self._sampler.sample(n, self.take))

    def can_sample(self, n: int = 1) -> bool:
        """Tell whether at least ``n`` different transitions can be drawn."""
        return self._sampler.can_sample(n)

    def ids(self) -> Ints:
        """List the id of every transition that can be drawn, stream by stream, oldest first."""
        return self._sampler.ids()

    def update_priorities(self, ids: Any, priorities: Any) -> Updated:
        """Give steps new priorities, most often the size of their TD error; tell how many were applied.

        Ids of steps that are gone are skipped and counted.

        Args:
            ids: (n,) of a batch.
            priorities: (n,) numbers of 0 or more.

        Raises:
            TypeError: The view's draw has no priorities.
            ValueError: A priority is negative, NaN or infinite, or their number is not that of the ids; none was taken.
        """
        return self._sampler.update(ids, priorities)

    def stats(self) -> dict[str, Any]:
        """Give the draw's figures for a log."""
        return self._sampler.stats()

    @property
    def kind(self) -> str:
        """What a saved state must be of to be taken back."""
        return f"transitions over {self._n} step(s), drawn by {self._sampler.kind}"

    def state(self) -> dict[str, Any]:
        """Give all that the next batches depend on beside the ring, as plain numbers and arrays."""
        return self._sampler.state()

    def load(self, state: dict[str, Any]) -> None:
        """Take back what :meth:`state` gave.

        Raises:
            ValueError: It is of another draw, or of another ring.
        """
        self._sampler.load(state)

    def take(self, look: Look, drawn: Drawn) -> Taken:
        """Copy all that a batch needs out of the ring."""
        timeline, anchors = self._timeline, drawn.anchors
        taken = Taken(drawn, timeline.count(look, self._window))
        rows = last_rows = timeline.rows(anchors)
        if self._n > 1:
            taken.returns, taken.steps, last_rows = self._store.nstep(rows, look.room(anchors), self._gammas)
        taken.arrays = self._gatherings[0].take(rows)
        if self._n > 1:
            taken.arrays |= self._gatherings[1].take(last_rows)
        finals = taken.arrays.pop("final")
        # comparing bytes takes a third of the time of a reduction over a hundred numbers
        ended = None if finals.tobytes() == INSIDE * taken.count else np.flatnonzero(finals >= 0)
        places = None if ended is None else self._finals.places(anchors.at(ended), finals[ended])
        if ended is not None and places is not None:
            self._finals.put(taken.arrays, places, ended, NEXT)
        if self._layout.columns:
            self._take_columns(taken, rows, ended, places)
        return taken

    def _take_columns(self, taken: Taken, rows: Ints, ended: Ints | None, places: Ints | None) -> None:
        store, timeline, last = self._store, self._timeline, taken.anchors
        anchors = last
        if taken.steps is not None:
            last = anchors._replace(times=anchors.times + (taken.steps - 1))
        successors = timeline.rows(last._replace(times=last.times + 1))
        if ended is not None and places is not None:
            successors[ended] = self._finals.rows(places)
        ages = timeline.ages(rows) if self._stackers else None
        for at, leaf in enumerate(self._layout.columns):
            stacker = self._stackers.get(leaf.name)
            if stacker is None or ages is None:
                pool = self._pools[leaf.name]
                taken.arrays[leaf.name] = store.frames(at, rows, pool.take(taken.count))
                if leaf.role == "obs":
                    taken.arrays[successor(leaf.name)] = store.frames(at, successors, pool.take(taken.count))
                continue
            both = np.empty((2, taken.count, leaf.field.stack or 1), np.int64)
            both[0] = stacks = stacker.rows(anchors, ages)
            later = ages
            if taken.steps is not None:
                later = ages + (taken.steps - 1).astype(np.int32)
                stacks = stacker.rows(last, later)
            # the stack one step later: the same frames but for the oldest, and the successor's
            both[1, :, :-1] = stacks[:, 1:]
            both[1, :, -1] = successors
            arrays = stacker.pair(both, ages, later + 1)
            taken.arrays[leaf.name], taken.arrays[successor(leaf.name)] = arrays


def _anchor_parts(layout: Layout, n_step: int) -> list[Part]:
    """List what is read of an anchor's record."""
    skipped = {"terminated", "truncated"} | ({"reward"} if n_step > 1 else set())
    return [
        Part(place.leaf.name, place.leaf.field, place.offset)
        for place in layout.packed
        if place.leaf.name not in skipped
    ]


def _last_parts(layout: Layout) -> list[Part]:
    """List what is read of the last step used, and of its successor."""
    flags = [layout.place("terminated"), layout.place("truncated")]
    parts = [Part(place.leaf.name, place.leaf.field, place.offset) for place in flags]
    parts.append(Part("final", FINAL_FIELD, layout.final_offset))
    obs = [place for place in layout.packed if place.leaf.role == "obs"]
    return parts + [Part(successor(place.leaf.name), place.leaf.field, place.offset + layout.itemsize) for place in obs]


def successor(name: str) -> str:
    """Name the leaf of the next observation that this one is in the observation."""
    return NEXT + name


def recipes_of(layout: Layout, n_step: int, gamma: float) -> dict[str, Recipe]:
    """Say how each field of a batch is made, in the order in which they are shown."""
    schema = layout.schema
    reward = present(schema.reward, "reward") if n_step == 1 else _returns(schema.reward)
    recipes: dict[str, Recipe] = {
        "obs": tree_of(schema.obs, "obs"),
        "action": tree_of(schema.action, "action"),
        "reward": reward,
        "next_obs": tree_of(schema.obs, "next_obs"),
        "terminated": lambda taken: taken.arrays["terminated"],
        "truncated": lambda taken: taken.arrays["truncated"],
    }
    recipes |= {name: present(field, name) for name, field in schema.extras.items()}
    recipes["discount"] = _discount(gamma, n_step)
    recipes["steps"] = lambda taken: np.ones(taken.count, np.int64) if taken.steps is None else taken.steps
    recipes["ids"] = lambda taken: Timeline.ids(taken.anchors)
    recipes["weights"] = lambda taken: weights(taken.drawn)
    recipes["probabilities"] = lambda taken: probabilities(taken.drawn, lambda: taken.legal)
    return recipes


def _returns(reward: Field) -> Recipe:
    dtype = reward.dtype if reward.dtype.kind == "f" else np.dtype(np.float32)

    def returns(taken: Any) -> Array:
        if taken.returns.dtype is dtype:
            return taken.returns
        with np.errstate(over="ignore"):  # a sum beyond the dtype is infinite, as the rewards' own sum would be
            return taken.returns.astype(dtype)

    return returns


def _discount(gamma: float, n_step: int) -> Recipe:
    # by the number of steps used; none stands for a step that terminated
    table = np.float64(gamma) ** np.arange(n_step + 1)
    table[0] = 0
    factors = table.astype(np.float32)

    def discount(taken: Taken) -> Array:
        goes_on = ~taken.arrays["terminated"]
        return factors.take(goes_on.view(np.int8) if taken.steps is None else goes_on * taken.steps)

    return discount


def steps(n_step: Any) -> int:
    """Give the steps of a transition; ValueError if they are none."""
    if isinstance(n_step, bool) or not isinstance(n_step, int | np.integer) or n_step < 1:
        raise ValueError(f"n_step: expected a whole number of at least 1, got {n_step!r}")
    return int(n_step)


def factor(gamma: Any) -> float:
    """Give the discount a step; ValueError if it is none."""
    if isinstance(gamma, bool) or not 0 <= gamma <= 1:
        raise ValueError(f"gamma: expected a number from 0 to 1, got {gamma!r}")
    return float(gamma)
