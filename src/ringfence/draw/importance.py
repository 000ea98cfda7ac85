"""Importance weights: how much less a step counts in the loss for being drawn more often."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.kernels.sumtree import SumTree
from ringfence.timeline import Look

Beta = float | Callable[[int], float]
Normalise = Literal["batch", "memory"]


def linear(start: float, end: float, steps: int) -> Callable[[int], float]:
    """Give a schedule that goes from ``start`` to ``end`` while ``steps`` steps are added, and then stays there.

    Raises:
        ValueError: ``steps`` is not at least 1.
    """
    if steps < 1:
        raise ValueError(f"steps: expected at least 1, got {steps!r}")
    return lambda added: start + (end - start) * min(1.0, added / steps)


def number(name: str, value: Any) -> float:
    """Give a finite number of 0 or more; ValueError, by name, for anything else."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not 0 <= found < math.inf:
        raise ValueError(f"{name}: expected a finite number of at least 0, got {value!r}")
    return found


class Importance:
    """Weigh drawn steps with ``(N * P) ** -beta``, divided by the largest such weight (Schaul et al. 2016, 3.4).

    N and the whole mass cancel: what stays is ``(smallest leaf / leaf) ** beta``, which is never NaN.
    """

    def __init__(self, beta: Beta, normalise: Normalise) -> None:
        if normalise not in ("batch", "memory"):
            raise ValueError(f'normalise: expected "batch" or "memory", got {normalise!r}')
        self._beta: Beta = beta if callable(beta) else number("beta", beta)
        self.memory = normalise == "memory"
        """Divide by the largest weight in all of memory, not in the batch."""

    def beta(self, look: Look) -> float:
        """Give beta as of a look; ValueError if a schedule gives no finite number of 0 or more."""
        if not callable(self._beta):
            return self._beta
        return number("beta", self._beta(int(np.sum(look.heads))))

    def weights(self, tree: SumTree, leaves: NDArray[np.float64], look: Look) -> NDArray[np.float32]:
        """Weigh steps that have these leaves of a tree."""
        smallest = tree.smallest if self.memory else leaves.min()
        weights: NDArray[np.float64] = (smallest / leaves) ** self.beta(look)
        return weights.astype(np.float32)
