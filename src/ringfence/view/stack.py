"""Stacks of frames, put together when a batch is drawn from frames that are kept once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.schema.field import Field
from ringfence.store import Ram
from ringfence.timeline import Anchors, Ints, Timeline

Array = NDArray[Any]


class Stacker:
    """Gather the frames of one observation around steps."""

    def __init__(self, store: Ram, timeline: Timeline, column: int, field: Field) -> None:
        self._store, self._timeline, self._column = store, timeline, column
        self._zero = field.pad == "zero"
        self._back = (field.stack or 1) - 1

    def both(self, anchors: Anchors, ages: Array, successors: Ints) -> tuple[Array, Array]:
        """Give the stacks at steps and those one step later: two windows onto the same frames, gathered once."""
        frames = self._gather(anchors, ages, successors)
        return frames[:, :-1], frames[:, 1:]

    def later(self, anchors: Anchors, ages: Array, successors: Ints) -> Array:
        """Give the stacks one step after these steps."""
        return self._gather(anchors, ages, successors)[:, 1:]

    def at(self, anchors: Anchors, ages: Array) -> Array:
        """Give the stacks at steps."""
        return self._gather(anchors, ages, None)

    def _gather(self, anchors: Anchors, ages: Array, successors: Ints | None) -> Array:
        """Gather frames from ``back`` steps before, oldest first; the episode's first stands in for older ones."""
        offsets = np.arange(-self._back, 1)
        clipped = np.maximum(offsets, -ages[:, None])
        times = anchors.times[:, None] + clipped
        streams = None if anchors.streams is None else anchors.streams[:, None]
        rows = self._timeline.rows(Anchors(streams, times))
        if successors is not None:
            rows = np.concatenate((rows, successors[:, None]), axis=1)
        frames = self._store.frames(self._column, rows)
        if self._zero:
            missing = offsets < -ages[:, None]
            if missing.any():
                frames[:, : len(offsets)][missing] = 0
        return frames
