"""Transitions: a step, its successor, and the return over n steps between them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.draw import Draw
from ringfence.errors import NotEnoughData
from ringfence.schema import tree
from ringfence.schema.field import Field
from ringfence.schema.layout import FINAL, INSIDE
from ringfence.store import Ram
from ringfence.timeline import Anchors, Ints, Look, Timeline, Window
from ringfence.view.batch import Batch, Recipe
from ringfence.view.cut import column_of, field_of
from ringfence.view.nstep import NStep
from ringfence.view.stack import Stacker

Array = NDArray[Any]
ATTEMPTS = 1000  # whole batches that a writer may overtake; one in a thousand is, on a ring of a few hundred steps


class Taken:
    """What was copied out of the ring for one batch."""

    __slots__ = ("anchors", "block", "frames", "legal", "returns", "steps")

    def __init__(self, block: Array, anchors: Anchors, legal: int) -> None:
        self.block, self.anchors = block, anchors
        self.legal = legal
        """Anchors that could have been drawn."""
        self.returns: Array | None = None
        self.steps: Array | None = None
        self.frames: dict[tuple[str, str], Array] = {}


class Transitions:
    """Sample transitions.

    Any number of threads or forked processes may sample, each through a view of its own, while one writer a stream
    adds: a batch that was overtaken is drawn again.
    """

    def __init__(self, store: Ram, timeline: Timeline, draw: Draw, *, n_step: int = 1, gamma: float = 0.99) -> None:
        layout = store.layout
        self._store, self._timeline, self._draw, self._layout = store, timeline, draw, layout
        self._n, self._gamma = n_step, gamma
        self._nstep = NStep(layout, n_step, gamma) if n_step > 1 else None
        self._window = Window(before=layout.schema.stack - 1, short_start=True)
        stride = (n_step + 1) * layout.itemsize
        last = (n_step - 1) * layout.itemsize
        self._final_offset, self._stride = last + layout.final_offset, stride
        self._next_offset = n_step * layout.itemsize
        self._small_obs = np.dtype((np.void, layout.obs_nbytes)) if layout.obs_nbytes else None
        self._stackers = {
            leaf.name: Stacker(store, timeline, at, leaf.field)
            for at, leaf in enumerate(layout.columns)
            if leaf.field.stack is not None
        }
        self._batch = Batch.kind(_Recipes(layout, n_step, gamma).all())

    def sample(self, count: int) -> Batch:
        """Draw ``count`` transitions, with replacement.

        Raises:
            NotEnoughData: Nothing can be drawn; the text holds the counts.
        """
        timeline, window = self._timeline, self._window
        if count < 1:
            raise ValueError(f"count: expected 1 or more transitions, got {count!r}")
        for _ in range(ATTEMPTS):
            look = timeline.look()
            anchors = self._draw.draw(timeline, look, window, count)
            taken = self._take(look, anchors)
            if timeline.untouched(look, anchors, window.before, self._n - 1):
                return self._batch(taken)
        raise NotEnoughData(
            f"the ring of {timeline.capacity} steps a stream was overtaken {ATTEMPTS} times while {count} transitions "
            "were being read; give it more capacity, or draw fewer at a time"
        )

    def can_sample(self, count: int = 1) -> bool:
        """Tell whether at least ``count`` different transitions can be drawn."""
        return self._timeline.count(self._timeline.look(), self._window) >= count

    def ids(self) -> Ints:
        """List the id of every transition that can be drawn, stream by stream, oldest first."""
        return self._timeline.ids(self._timeline.every(self._timeline.look(), self._window))

    def _take(self, look: Look, anchors: Anchors) -> Taken:
        """Copy all that a batch needs out of the ring."""
        rows = self._timeline.rows(anchors)
        block = self._store.windows(rows, self._n + 1)
        taken = Taken(block, anchors, self._timeline.count(look, self._window))
        if self._nstep is not None:
            taken.returns, taken.steps = self._nstep.fold(block, look.room(anchors))
        finals = np.ndarray((len(block),), FINAL, block, self._final_offset, (self._stride,))
        # comparing bytes takes a third of the time of a reduction over a hundred numbers
        if self._small_obs is not None and finals.tobytes() != INSIDE * len(block):
            self._put_finals(block, finals, anchors)
        if self._layout.columns:
            self._take_columns(taken, rows, finals)
        return taken

    def _put_finals(self, block: Array, finals: Array, anchors: Anchors) -> None:
        """Where the episode ended with the last step used, put its final observation in the successor's place."""
        ended = np.flatnonzero(finals >= 0)
        places = finals[ended].astype(np.int64)
        if anchors.streams is not None:
            places += anchors.streams[ended] * self._store.shape.finals
        successors = np.ndarray((len(block),), self._small_obs, block, self._next_offset, (self._stride,))
        successors[ended] = self._store.final_obs(places)

    def _take_columns(self, taken: Taken, rows: Ints, finals: Array) -> None:
        store, timeline, anchors = self._store, self._timeline, taken.anchors
        last = anchors if taken.steps is None else anchors._replace(times=anchors.times + taken.steps - 1)
        after = timeline.rows(last._replace(times=last.times + 1))
        streams = 0 if anchors.streams is None else anchors.streams
        successors = np.where(finals >= 0, store.final_row(0, 0) + streams * store.shape.finals + finals, after)
        ages = timeline.ages(rows) if self._stackers else None
        for at, leaf in enumerate(self._layout.columns):
            name, frames = leaf.name, taken.frames
            stacker = self._stackers.get(name)
            if leaf.role != "obs":
                frames["now", name] = store.frames(at, rows)
            elif stacker is None or ages is None:
                frames["now", name], frames["next", name] = store.frames(at, rows), store.frames(at, successors)
            elif taken.steps is None:
                frames["now", name], frames["next", name] = stacker.both(anchors, ages, successors)
            else:
                frames["now", name] = stacker.at(anchors, ages)
                frames["next", name] = stacker.later(last, ages + (taken.steps - 1).astype(np.int32), successors)


class _Recipes:
    """How each field of a batch of transitions is made."""

    def __init__(self, layout: Any, n_step: int, gamma: float) -> None:
        self._layout, self._n, self._gamma = layout, n_step, gamma
        self._offsets = {place.leaf.name: place for place in layout.packed}
        self._columns = {leaf.name: leaf for leaf in layout.columns}

    def all(self) -> dict[str, Recipe]:
        """Give them by name, in the order in which they are shown."""
        schema, last = self._layout.schema, (self._n - 1) * self._layout.itemsize
        recipes: dict[str, Recipe] = {
            "obs": self._tree(schema.obs, "obs", "now", 0),
            "action": self._tree(schema.action, "action", "now", 0),
            "reward": self._leaf("reward", "now", 0) if self._n == 1 else lambda taken: taken.returns,
            "next_obs": self._tree(schema.obs, "obs", "next", self._n * self._layout.itemsize),
            "terminated": self._leaf("terminated", "now", last),
            "truncated": self._leaf("truncated", "now", last),
        }
        for name in schema.extras:
            recipes[name] = self._leaf(name, "now", 0)
        recipes["discount"] = self._discount(recipes["terminated"])
        recipes["steps"] = _steps
        recipes["ids"] = lambda taken: Timeline.ids(taken.anchors)
        recipes["weights"] = lambda taken: np.ones(len(taken.block), np.float32)
        recipes["probabilities"] = lambda taken: np.full(len(taken.block), 1 / taken.legal)
        return recipes

    def _tree(self, spec: Any, name: str, kind: str, shift: int) -> Recipe:
        if isinstance(spec, Field):
            return self._leaf(name, kind, shift)
        parts = {leaf: self._leaf(leaf, kind, shift) for leaf, _ in tree.leaves(spec, name)}
        return lambda taken: tree.rebuild(spec, lambda leaf: parts[leaf](taken), name)

    def _leaf(self, name: str, kind: str, shift: int) -> Recipe:
        if name in self._columns:
            return column_of(kind, name, self._columns[name].field)
        place = self._offsets[name]
        return field_of(place.leaf.field, place.offset + shift, (self._n + 1) * self._layout.itemsize)

    def _discount(self, terminated: Recipe) -> Recipe:
        gamma = np.float32(self._gamma)

        def discount(taken: Taken) -> Array:
            goes_on: Array = ~terminated(taken)
            if taken.steps is None:
                return goes_on * gamma
            return (goes_on * np.float64(self._gamma) ** taken.steps).astype(np.float32)

        return discount


def _steps(taken: Taken) -> Array:
    return np.ones(len(taken.block), np.int64) if taken.steps is None else taken.steps
