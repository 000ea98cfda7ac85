"""Stacks of frames, put together when a batch is drawn from frames that are kept once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.schema.field import Field
from ringfence.store import Store
from ringfence.timeline import Anchors, Ints, Timeline
from ringfence.view.pool import Pool

Array = NDArray[Any]


class Stacker:
    """Gather the frames of one observation around steps."""

    def __init__(self, store: Store, timeline: Timeline, column: int, field: Field) -> None:
        self._store, self._timeline, self._column = store, timeline, column
        self._zero = field.pad == "zero"
        self._back = (field.stack or 1) - 1
        self._offsets = np.arange(-self._back, 1)
        self._pool = Pool((self._back + 1, *field.shape), field.kept)

    def rows(self, anchors: Anchors, ages: Array) -> Ints:
        """Give the rows of the frames up to each step, oldest first; the episode's first stands in for older ones."""
        times = anchors.times[:, None] + np.maximum(self._offsets, -ages[:, None])
        return self._timeline.rows(Anchors(None if anchors.streams is None else anchors.streams[:, None], times))

    def pair(self, rows: Ints, ages: Array, later: Array) -> tuple[Array, Array]:
        """Copy the frames of two stacks a step, in one go.

        Args:
            rows: (2, n, k) of the stacks at the steps and of those after them.
            ages: (n,) of the last step of the first stack.
            later: (n,) of the last step of the second.
        """
        both = self._pool.take(2 * len(ages))
        both = self._store.frames(self._column, rows, both.reshape(2, len(ages), *both.shape[1:]))
        for frames, age in zip(both, (ages, later), strict=True):
            if self._zero and age.min() < self._back:
                frames[self._offsets < -age[:, None]] = 0
        return both[0], both[1]
