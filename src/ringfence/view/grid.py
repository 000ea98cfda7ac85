"""How windows lie in arrays: (B, T), or (T, B) with the time first.

The shape of an index array is the layout of what is taken with it, so that neither order costs a copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.timeline import Anchors, Ints

Array = NDArray[Any]


class Grid:
    """Lay out windows of one number of steps."""

    def __init__(self, steps: int, *, time_major: bool) -> None:
        self.steps, self.time_major = steps, time_major
        self.axis = 0 if time_major else 1
        """The axis of the time."""
        self.offsets: Ints = self.along(np.arange(steps))
        """Of each step from its window's first, spread over the windows."""

    def along(self, numbers: Array) -> Array:
        """Spread numbers of steps over the windows."""
        return numbers[:, None] if self.time_major else numbers[None, :]

    def across(self, numbers: Array) -> Array:
        """Spread numbers of windows over the steps."""
        return numbers[None, :] if self.time_major else numbers[:, None]

    def shape(self, windows: int) -> tuple[int, int]:
        """Give the shape of one number for each step of each window."""
        return (self.steps, windows) if self.time_major else (windows, self.steps)

    def places(self, steps: Array, windows: Array, count: int) -> Ints:
        """Give where steps of windows lie once the two axes of ``count`` windows are one."""
        places: Ints = steps * count + windows if self.time_major else windows * self.steps + steps
        return places

    def anchors(self, anchors: Anchors, offsets: Ints) -> Anchors:
        """Give the steps at these offsets, laid out, from the anchors."""
        streams = None if anchors.streams is None else self.across(anchors.streams)
        return Anchors(streams, self.across(anchors.times) + offsets)
