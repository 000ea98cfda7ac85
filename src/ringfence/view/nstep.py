"""n-step returns, computed when a batch is drawn (Sutton 1988; Hessel et al. 2018, equation 1).

The return sums ``gamma**i * reward`` over the steps used: n of them, or fewer where the episode ends, is cut, or has
not gone further yet. The next observation is the successor of the last step used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.schema import Layout

Array = NDArray[Any]


class NStep:
    """Fold windows of n records and a successor into one step each."""

    def __init__(self, layout: Layout, n_step: int, gamma: float) -> None:
        reward = layout.place("reward")
        self._n, self._itemsize, self._final_offset = n_step, layout.itemsize, layout.final_offset
        self._reward, self._reward_offset = reward.leaf.field, reward.offset
        self._gammas = gamma ** np.arange(n_step, dtype=np.float64)

    def fold(self, block: Array, room: Array) -> tuple[Array, Array]:
        """Give the returns, and the number of steps used, one each a window.

        In ``block``, record n-1 becomes the last step used and record n its successor.

        Args:
            block: (count,) items of n + 1 records.
            room: (count,) steps held from the anchor on; at least 1.
        """
        n, stride = self._n, block.itemsize
        count = len(block)
        finals = np.ndarray((count, n - 1), np.int32, block, self._final_offset, (stride, self._itemsize))
        rewards = self._rewards(block)
        if finals.max() < 0 and room.min() >= n:
            return self._sum(rewards), np.full(count, n, np.int64)
        ended = finals >= 0
        steps = np.where(ended.any(axis=1), ended.argmax(axis=1) + 1, n)
        steps = np.minimum(steps, room)
        used = np.arange(n) < steps[:, None]
        rewards = np.where(used.reshape(*used.shape, *[1] * (rewards.ndim - 2)), rewards, 0)
        short = np.flatnonzero(steps < n)
        records = np.ndarray((count, n + 1), (np.void, self._itemsize), block, 0, (stride, self._itemsize))
        records[short, n] = records[short, steps[short]]
        records[short, n - 1] = records[short, steps[short] - 1]
        return self._sum(rewards), steps

    def _rewards(self, block: Array) -> Array:
        field = self._reward
        inner = np.empty(field.shape, field.kept).strides
        shape = (len(block), self._n, *field.shape)
        return np.ndarray(shape, field.kept, block, self._reward_offset, (block.itemsize, self._itemsize, *inner))

    def _sum(self, rewards: Array) -> Array:
        dtype = self._reward.dtype if self._reward.dtype.kind == "f" else np.float32
        total: Array = (
            np.tensordot(self._gammas, rewards.astype(np.float64), (0, 1))
            if rewards.ndim > 2
            else rewards.astype(np.float64) @ self._gammas
        )
        return total.astype(dtype)
