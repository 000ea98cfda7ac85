"""Shares of a batch: how many rows each of several parts gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.draw.base import Drawn
from ringfence.timeline import Anchors, Ints

HAIR = 1e-9  # of a row: what sums of shares may be off by


class Split:
    """Split numbers of rows by shares, so that each part gets its share exactly in the long run.

    What a part was given too little or too much is carried over to the splits that follow.

    Args:
        shares: Numbers of 0 or more, in any unit; a part without a share never gives a row.

    Raises:
        ValueError: A share is negative or not finite, or none is above 0.
    """

    def __init__(self, shares: Sequence[float]) -> None:
        self.shares = normalised(shares)
        self.carry = np.zeros(len(self.shares))
        """Rows that each part is owed."""

    def of(self, count: int) -> list[int]:
        """Split ``count`` rows, without counting them as given."""
        due = np.where(self.shares > 0, self.carry + self.shares * count, -np.inf)
        counts: Ints = np.floor(np.maximum(due, 0) + HAIR).astype(np.int64)
        while missing := count - int(counts.sum()):
            if missing > 0:
                counts[(due - counts).argmax()] += 1
            else:
                counts[np.where(counts > 0, due - counts, np.inf).argmin()] -= 1
        rows: list[int] = counts.tolist()
        return rows

    def give(self, counts: Sequence[int]) -> None:
        """Count these rows as given."""
        self.carry = self.carry + self.shares * sum(counts) - counts

    def load(self, carry: Any) -> None:
        """Take back what was owed at another time."""
        owed = np.array(carry, np.float64)
        if owed.shape != self.shares.shape:
            raise ValueError(f"state: is of {owed.size} parts, and there are {self.shares.size}")
        self.carry = owed


def normalised(shares: Sequence[float]) -> NDArray[np.float64]:
    """Give shares of one whole.

    Raises:
        ValueError: A share is negative or not finite, or none is above 0.
    """
    given = np.asarray(shares, np.float64)
    if given.ndim != 1 or not (np.isfinite(given) & (given >= 0)).all() or not given.any():
        raise ValueError(f"shares: expected numbers of 0 or more and at least one above 0, got {shares!r}")
    return given / given.sum()


def joined(parts: Sequence[Anchors]) -> Anchors:
    """Lay anchors one after the other."""
    streams = [part.streams for part in parts if part.streams is not None]
    return Anchors(np.concatenate(streams) if streams else None, np.concatenate([part.times for part in parts]))


def joined_weights(parts: Sequence[Drawn]) -> NDArray[np.float32] | None:
    """Lay importance weights one after the other, 1 where a part has none."""
    if all(part.weights is None for part in parts):
        return None
    ones = [np.ones(len(part.anchors.times), np.float32) for part in parts]
    return np.concatenate(
        [one if part.weights is None else part.weights for one, part in zip(ones, parts, strict=True)]
    )
