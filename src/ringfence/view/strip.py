"""Stacks of frames for every step of a window, from a strip in which each frame lies once.

Neighbouring steps share all frames of their stacks but one. A window of T steps is read as a strip of T + k - 1 frames,
and the stacks are copied out of the strip when they are asked for: k times fewer bytes leave the ring, and k times
fewer lie in a batch until then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.schema.field import Field
from ringfence.store import Store
from ringfence.timeline import Anchors, Ints, Timeline
from ringfence.view.grid import Grid
from ringfence.view.pool import Pool

Array = NDArray[Any]


class Strip:
    """Gather the frames of one stacked observation along windows, of as many steps as a grid has."""

    def __init__(self, store: Store, timeline: Timeline, column: int, field: Field, grid: Grid) -> None:
        self._store, self._timeline, self._column, self._field = store, timeline, column, field
        self._back = (field.stack or 1) - 1
        self._grid = Grid(grid.steps + self._back, time_major=grid.time_major)
        self._earlier = self._grid.along(np.arange(-self._back, 0))
        self._pool = Pool(field.shape, field.kept)

    def take(self, anchors: Anchors, rows: Ints) -> Array:
        """Copy the frames before the anchors, and those of the steps of the windows, in these rows.

        Where an episode has fewer frames before an anchor, others are copied in their place, which no stack shows.
        """
        earlier = self._grid.anchors(anchors, self._earlier)
        rows = np.concatenate([self._timeline.rows(earlier), rows], self._grid.axis).reshape(-1)
        return self._store.frames(self._column, rows, self._pool.take(len(rows)))


class Stacks:
    """Make stacks of strips; it knows nothing of the ring."""

    def __init__(self, field: Field, grid: Grid) -> None:
        self._field, self._back = field, (field.stack or 1) - 1
        self._grid = Grid(grid.steps + self._back, time_major=grid.time_major)
        self._steps = grid.along(np.arange(grid.steps))[..., None]

    def take(self, strip: Array, ages: Array, windows: int) -> Array:
        """Copy the stack of each step out of a strip, where ``ages`` are those of the steps, laid out.

        An episode's first frame, or zeros, stands in for those before it.
        """
        order = np.arange(self._back + 1)
        lacking = order < self._back - ages[..., None]
        frames = self._steps + np.where(lacking, self._back - ages[..., None], order)
        numbers = self._grid.across(np.arange(windows))[..., None]
        stacks = strip.take(self._grid.places(frames, numbers, windows), axis=0, mode="clip")
        if self._field.pad == "zero":
            stacks[lacking] = 0
        return stacks

    def present(self, stacks: Array) -> Array:
        """Give stacks in the declared dtype, with the frames on the declared axis."""
        stacks = stacks if self._field.stored is None else stacks.astype(self._field.dtype)
        return stacks if self._field.stack_axis == 0 else np.moveaxis(stacks, 2, -1)
