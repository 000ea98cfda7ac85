"""The single steps of transitions over several steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringfence.timeline import Anchors, Ints

Array = NDArray[Any]


class Path(NamedTuple):
    """Steps of several transitions, one transition after the other."""

    owners: Ints
    """(n,) which transition each step belongs to."""
    ahead: Ints
    """(n,) how many steps after the transition's first."""
    lengths: Ints
    """(transitions,) how many steps there are of each; 1 or more."""

    @classmethod
    def of(cls, lengths: Ints) -> Path:
        """List the steps of transitions of these lengths."""
        owners = np.repeat(np.arange(len(lengths)), lengths)
        starts = np.cumsum(lengths) - lengths
        return cls(owners, np.arange(len(owners)) - starts[owners], lengths)

    def steps(self, firsts: Anchors) -> Anchors:
        """Give the steps, where ``firsts`` are those that the transitions begin with."""
        steps = firsts.at(self.owners)
        return steps._replace(times=steps.times + self.ahead)

    def until(self, marked: NDArray[np.bool_]) -> Ints:
        """Give the lengths up to and with the first marked step of each transition, or the whole where none is."""
        lengths = self.lengths.copy()
        np.minimum.at(lengths, self.owners[marked], self.ahead[marked] + 1)
        return lengths

    def sums(self, values: Array, gammas: NDArray[np.float64]) -> Array:
        """Give the discounted sum of each transition's values, in float64 and in the order of time."""
        sums = np.zeros((len(self.lengths), *values.shape[1:]))
        with np.errstate(over="ignore", invalid="ignore"):  # infinite rewards sum as they would one by one
            for ahead, gamma in enumerate(gammas):
                if gamma:  # what is discounted to nothing does not count, not even infinity
                    now = self.ahead == ahead
                    sums[self.owners[now]] += gamma * values[now].astype(np.float64)
        return sums
