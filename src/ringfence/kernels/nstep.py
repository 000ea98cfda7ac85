"""Sum discounted rewards along rings of records."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringfence.kernels.load import native

Array = NDArray[Any]


class Ring(NamedTuple):
    """Where the parts of a record lie, and how rows follow each other."""

    itemsize: int
    slots: int
    rows_each: int
    final_offset: int
    reward_offset: int
    reward_dtype: np.dtype[Any]
    reward_shape: tuple[int, ...]


def nstep_numpy(records: Any, ring: Ring, rows: Array, room: Array, gammas: Array) -> tuple[Array, Array, Array]:
    """Sum with NumPy; see :func:`nstep`."""
    n, total = len(gammas), len(records) // ring.itemsize
    slots = rows % ring.rows_each
    steps = rows - slots + (slots + np.arange(n)[:, None]) % ring.slots
    finals = np.ndarray((total,), np.int32, records, ring.final_offset, (ring.itemsize,))[steps[:-1]]
    inner = np.empty(ring.reward_shape, ring.reward_dtype).strides
    shape = (total, *ring.reward_shape)
    rewards = np.ndarray(shape, ring.reward_dtype, records, ring.reward_offset, (ring.itemsize, *inner))[steps]
    rewards = rewards.astype(np.float64)
    used = np.full(len(rows), n, np.int64)
    if n > 1 and (finals.max() >= 0 or room.min() < n):
        ended = finals >= 0
        used = np.minimum(np.where(ended.any(axis=0), ended.argmax(axis=0) + 1, n), room)
        beyond = np.arange(n)[:, None] >= used
        rewards[beyond] = 0
    returns = np.zeros(rewards.shape[1:])
    for gamma, reward in zip(gammas, rewards, strict=True):  # in the order of the compiled loop, to the last bit
        if gamma:  # what is discounted to nothing does not count, not even infinity
            returns += gamma * reward
    dtype = ring.reward_dtype if _is_plain(ring) else np.float64
    with np.errstate(over="ignore"):  # a sum beyond the dtype is infinite
        returns = returns.astype(dtype, copy=False)
    return returns, used, rows - slots + (slots + used - 1) % ring.slots


def _is_plain(ring: Ring) -> bool:
    """Tell whether the compiled loop knows this kind of reward."""
    return not ring.reward_shape and ring.reward_dtype.kind == "f" and ring.reward_dtype.itemsize >= 4


def nstep(records: Any, ring: Ring, rows: Array, room: Array, gammas: Array) -> tuple[Array, Array, Array]:
    """Give the returns, the number of steps used, and the row of the last of them, one each for a row.

    Returns are of the rewards' dtype where that is float32 or float64, and otherwise float64.

    The sum over ``gammas[i] * reward`` stops after a step whose record names a final observation, and at ``room``.
    """
    if native is None or not _is_plain(ring):
        return nstep_numpy(records, ring, rows, room, gammas)
    count = len(rows)
    returns, steps, lasts = np.empty(count, ring.reward_dtype), np.empty(count, np.int64), np.empty(count, np.int64)
    native.nstep(
        records,
        ring.itemsize,
        rows,
        np.ascontiguousarray(room),
        (ring.slots, ring.rows_each),
        ring.final_offset,
        ring.reward_offset,
        ring.reward_dtype.itemsize,
        gammas,
        returns,
        steps,
        lasts,
    )
    return returns, steps, lasts
