"""The rate at which memory grows: a line that spikes and stairs do not bend, and how sure it is.

The slope is Theil's: the median of the slopes of all pairs of measurements. Its interval is Sen's ("Estimates of the
regression coefficient based on Kendall's tau", JASA 63, 1968): the pairs' slopes at the ranks between which Kendall's
statistic stays with 95 % probability if nothing but chance orders the residuals. Up to 29 % of the measurements may lie
anywhere without taking the median along, which least squares does not forgive.

Sen's measurements are independent, and those of resident memory are not: it goes up in stairs and stays there. Taken as
they are, their interval is several times too narrow, and one late stair in a flat run passes for growth. So ``n`` of
them are counted as ``n (1 - r) / (1 + r)`` independent ones, which is exact for a first-order autoregressive series
(Bayley and Hammersley 1946); ``r`` is the correlation of each residual's rank with the next one's, of ranks so that a
spike does not decide it, and never below zero. At least six are counted: with fewer no ranks make a 95 % interval,
and a run that accelerates, all of whose pairs rise, would go undecided.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
DEVIATIONS = 1.96  # of a normal distribution: 95 % lie within
LEAST = 6  # measurements; with five, the ranks would lie outside of what there is


@dataclass(frozen=True, slots=True)
class Slope:
    """The growth of memory in bytes a step, with a 95 % interval."""

    per_step: float
    low: float
    """Minus infinity where there are fewer than six measurements."""
    high: float
    """Infinity where there are fewer than six measurements."""


def slope(steps: ArrayLike, nbytes: ArrayLike) -> Slope:
    """Estimate how many bytes a step are added, whatever spikes and stairs the measurements hold.

    Costs 40 bytes for each pair of measurements while it runs: 20 MiB for 1,000 of them.

    Args:
        steps: When each measurement was taken, in order.
        nbytes: What was measured.

    Raises:
        ValueError: The arrays differ in length or are not flat, a value is not finite, the steps are not in order, or
            all are the same.
    """
    x, y = _flat("steps", steps), _flat("nbytes", nbytes)
    if len(x) != len(y):
        raise ValueError(f"nbytes: expected {len(x)} values, one for each of steps, got {len(y)}")
    if (np.diff(x) < 0).any():
        raise ValueError("steps: expected them in the order in which they were made")
    pairs = _pairs(x, y)
    if not len(pairs):
        raise ValueError(f"steps: expected measurements at two different steps or more, got {len(np.unique(x))}")
    middle = float(np.median(pairs))
    rank = math.floor(len(pairs) * (1 - _reach(_independent(y - middle * x))) / 2)
    if rank < 1:
        return Slope(middle, -math.inf, math.inf)
    return Slope(middle, float(pairs[rank - 1]), float(pairs[-rank]))


def _flat(name: str, values: ArrayLike) -> Floats:
    array = np.asarray(values, np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name}: expected a flat list of numbers, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: expected finite numbers, got {array[~np.isfinite(array)][0]}")
    return array


def _pairs(x: Floats, y: Floats) -> Floats:
    """Give the slopes of all pairs at different steps, sorted."""
    first, second = np.triu_indices(len(x), 1)
    run, rise = x[second] - x[first], y[second] - y[first]
    apart = run > 0
    return np.sort(rise[apart] / run[apart])


def _reach(count: float) -> float:
    """Give the share of pairs, rising less falling, that chance alone stays within: Kendall's tau at 95 %."""
    if count < LEAST:
        return 1
    return DEVIATIONS * math.sqrt(2 * (2 * count + 5) / (9 * count * (count - 1)))


def _independent(residuals: Floats) -> float:
    """Count how many independent measurements these, each like the one before, are worth."""
    count = len(residuals)
    if count <= LEAST:
        return count
    ranks = _ranks(residuals)
    before, after = ranks[:-1] - ranks[:-1].mean(), ranks[1:] - ranks[1:].mean()
    scale = math.sqrt(float(before @ before) * float(after @ after))
    likeness = max(0.0, float(before @ after) / scale) if scale else 0.0
    return max(LEAST, count * (1 - likeness) / (1 + likeness))


def _ranks(values: Floats) -> NDArray[Any]:
    """Rank values, equal ones alike: ranking those by time would make any flat line look like its own past."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]
