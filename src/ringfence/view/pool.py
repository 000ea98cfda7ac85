"""Big output arrays that are used again once nobody holds them.

The allocator gives memory of such sizes back to the system and fetches it again for the next batch, page by page: 32
stacks of four frames then take 1.1 ms in place of 0.15. An array is used again only when the pool's is the one
reference to it that is left: whoever keeps a batch, a slice of it or a tensor made from it keeps its bytes.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALL = 1 << 17  # bytes; below, the allocator keeps what is freed
KEPT = 4  # arrays of one field: a batch in use, the next one, and two for a loader that works ahead
ALONE = 2  # references to an array that only this function's local name and getrefcount's argument hold


class Pool:
    """Give arrays of items of one shape. Costs up to four of them, as long as the batches drawn lately were big."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._shape, self._dtype = shape, dtype
        self._nbytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        self._idle: deque[NDArray[Any]] = deque()

    def take(self, count: int) -> NDArray[Any]:
        """Give an array of ``count`` items with any content."""
        if count * self._nbytes < SMALL:
            return np.empty((count, *self._shape), self._dtype)
        for _ in range(len(self._idle)):
            try:
                array = self._idle.popleft()  # atomic: what one thread took no other one can
            except IndexError:
                break
            if len(array) != count and sys.getrefcount(array) == ALONE:
                continue  # of another batch size, and nobody's: let it go
            self._idle.append(array)
            if len(array) == count and sys.getrefcount(array) == ALONE + 1:
                return array
        array = np.empty((count, *self._shape), self._dtype)
        if len(self._idle) < KEPT:
            self._idle.append(array)
        return array
