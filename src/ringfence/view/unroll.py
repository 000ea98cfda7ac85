"""What a batch of sequences shows, field by field, made from what was copied out of the ring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.draw import Drawn
from ringfence.schema import Schema, tree
from ringfence.schema.field import Field
from ringfence.timeline import Ints, Timeline
from ringfence.view.batch import Recipe
from ringfence.view.census import Census
from ringfence.view.grid import Grid
from ringfence.view.leaves import present
from ringfence.view.sampler import probabilities, weights
from ringfence.view.span import Span
from ringfence.view.strip import Stacks

Array = NDArray[Any]


class Taken:
    """What was copied out of the ring for one batch."""

    __slots__ = ("ages", "arrays", "census", "counts", "drawn", "first_ages", "windows")

    def __init__(self, drawn: Drawn, first_ages: Array) -> None:
        self.drawn, self.windows = drawn, len(drawn.anchors.times)
        self.first_ages = first_ages
        """Of the first step of each window."""
        self.ages: Array | None = None
        """Of each step, laid out; None where windows are of one episode each, and they follow from the first."""
        self.counts: Ints | None = None
        """Steps of each window; None where none is padded."""
        self.census: Census | None = None
        """What to count the legal windows from, where the draw was uniform."""
        self.arrays: dict[str, Array] = {}
        """By leaf, both axes of the windows as one; of a stacked leaf a strip of frames."""

    def legal(self) -> int:
        """Count the windows that could have been drawn."""
        assert self.census is not None
        return self.census.legal


class Unroll:
    """Make the fields of batches; it knows nothing of the ring, so that batches do not keep it."""

    def __init__(self, schema: Schema, span: Span) -> None:
        self._schema, self._span = schema, span
        self._grid = Grid(span.steps, time_major=span.time_major)
        self._obs_grid = Grid(span.steps + span.bootstrap, time_major=span.time_major)

    def recipes(self) -> dict[str, Recipe]:
        """Say how each field is made, in the order in which they are shown."""
        schema, flags = self._schema, Field((), np.bool_)
        recipes: dict[str, Recipe] = {
            "obs": self._nested(schema.obs, "obs", self._obs),
            "action": self._nested(schema.action, "action", self._step),
            "reward": self._step("reward", schema.reward),
            "terminated": self._step("terminated", flags),
            "truncated": self._step("truncated", flags),
        }
        for name, field in schema.extras.items():
            recipes[name] = present(field, name) if name in self._span.state else self._step(name, field)
        recipes |= {
            "is_first": lambda taken: self._ages(taken, self._grid) == 0,
            "mask": lambda taken: self._mask(taken).copy(),
            "learning": lambda taken: self._mask(taken) & (self._grid.offsets >= self._span.burn_in),
            "discount": self._discount,
            "ids": lambda taken: Timeline.ids(taken.drawn.anchors),
            "step_ids": self._step_ids,
            "weights": lambda taken: weights(taken.drawn),
            "probabilities": lambda taken: probabilities(taken.drawn, taken.legal),
        }
        return recipes

    def _nested(self, spec: Any, name: str, make: Callable[[str, Field], Recipe]) -> Recipe:
        parts = {leaf: make(leaf, field) for leaf, field in tree.leaves(spec, name)}
        return lambda taken: tree.rebuild(spec, lambda leaf: parts[leaf](taken), name)

    def _step(self, name: str, field: Field) -> Recipe:
        return _unfolded(present(field, name), self._grid)

    def _obs(self, name: str, field: Field) -> Recipe:
        if field.stack is None:
            return _unfolded(present(field, name), self._obs_grid)
        made = Stacks(field, self._obs_grid)

        def recipe(taken: Taken) -> Array:
            stacks = made.take(taken.arrays[name], self._ages(taken, self._obs_grid), taken.windows)
            if taken.counts is not None:
                last = self._obs_grid.across(taken.counts) - (not self._span.bootstrap)
                stacks[self._obs_grid.offsets > last] = 0
            return made.present(stacks)

        return recipe

    def _ages(self, taken: Taken, grid: Grid) -> Array:
        """Give the age of each step, or observation, laid out; a last step's successor is one step older than it."""
        ages = taken.ages
        if ages is None:
            return grid.across(taken.first_ages) + grid.offsets
        if grid.steps == self._grid.steps:
            return ages
        return np.concatenate([ages, ages.take([-1], grid.axis) + 1], grid.axis)

    def _mask(self, taken: Taken) -> NDArray[np.bool_]:
        shape = self._grid.shape(taken.windows)
        if taken.counts is None:
            return np.broadcast_to(np.True_, shape)
        mask: NDArray[np.bool_] = self._grid.offsets < self._grid.across(taken.counts)
        return mask

    def _discount(self, taken: Taken) -> NDArray[np.float32]:
        ended = taken.arrays["terminated"].reshape(self._grid.shape(taken.windows))
        return (~ended & self._mask(taken)) * np.float32(self._span.gamma)

    def _step_ids(self, taken: Taken) -> Ints:
        ids = self._grid.across(Timeline.ids(taken.drawn.anchors)) + self._grid.offsets
        return ids if taken.counts is None else np.where(self._mask(taken), ids, -1)


def _unfolded(recipe: Recipe, grid: Grid) -> Recipe:
    """Make two axes of the one that time and windows share."""

    def unfolded(taken: Taken) -> Array:
        array: Array = recipe(taken)
        return array.reshape(grid.shape(taken.windows) + array.shape[1:])

    return unfolded
