"""One priority for a whole window, from the TD errors of its steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ETA = 0.9  # of the paper below


def fold(errors: Floats, learning: NDArray[np.bool_], axis: int, eta: float) -> Floats:
    """Give ``eta * max + (1 - eta) * mean`` of the absolute errors of the steps to learn from; NaN where there is none.

    Kapturowski et al. 2019, "Recurrent Experience Replay in Distributed Reinforcement Learning".
    """
    sizes = np.where(learning, np.abs(errors), 0.0)
    counts = learning.sum(axis=axis)
    with np.errstate(invalid="ignore"):
        folded: Floats = eta * sizes.max(axis=axis) + (1 - eta) * (sizes.sum(axis=axis) / counts)
    return folded


def weight(eta: Any) -> float:
    """Give the weight of the largest error; ValueError if it is none."""
    if isinstance(eta, bool) or not 0 <= eta <= 1:
        raise ValueError(f"eta: expected a number from 0 to 1, got {eta!r}")
    return float(eta)
