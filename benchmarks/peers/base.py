"""What a peer must offer to take part; an adapter overrides what its library does in its own way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.data import Array, Frames, Steps

if TYPE_CHECKING:
    from benchmarks.screens import Screens

FIELDS = ("obs", "action", "reward", "next_obs", "terminated", "truncated")


class Ring:
    """A buffer of one library, fed with the raw values of an environment."""

    nbytes: int
    """What the buffer's own arrays take when full."""

    def add(self, obs: Array, action: Any, reward: float, next_obs: Array, terminated: bool, truncated: bool) -> object:
        """Add one step of a single environment."""
        raise NotImplementedError

    def extend(
        self, obs: Array, action: Array, reward: Array, next_obs: Array, terminated: Array, truncated: Array
    ) -> object:
        """Add one step of every environment, each array with a leading axis of environments."""
        raise NotImplementedError

    def fill(self, data: Steps | Frames) -> None:
        """Add all rows, by the quickest way the library has for it."""
        if isinstance(data, Steps) and data.streams > 1:
            for tick in data.ticks():
                self.extend(*tick)
        else:
            for row in data.rows():
                self.add(*row)

    def numpy(self, count: int) -> dict[str, Array]:
        """Draw a batch with every field a NumPy array of its own."""
        raise NotImplementedError

    def torch(self, count: int) -> dict[str, Any]:
        """Draw a batch with every field a CPU tensor of its own."""
        from torch import from_numpy

        return {name: from_numpy(array) for name, array in self.numpy(count).items()}


class PrioritizedRing(Ring):
    """A ring whose batches also have `at`, by which the library knows their steps, and `weights`."""

    def update(self, at: Array, priorities: Array) -> object:
        """Give the steps of a batch new priorities."""
        raise NotImplementedError

    def assign(self, priorities: Array) -> None:
        """Give each step of a ring filled once its priority, oldest first; the library counts them from 0."""
        self.update(np.arange(len(priorities)), priorities)


class WindowRing(Ring):
    """A ring of which windows of consecutive steps are drawn: `numpy` gives (batch, time, ...)."""

    def fill_screens(self, data: Screens) -> None:
        """Add all rows, by the quickest way the library has for it."""
        for row in data.rows():
            self.add(*row)
