"""A field of all slots that looks like an array, and is copied out where it is read."""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]
BASIC = int | np.integer | slice | EllipsisType


class Column:
    """Show a field in the order of slots, without holding it. Costs nothing.

    Indexing gives copies, as large as what was asked for; ``numpy.asarray`` copies all. Writing is refused.
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], read: Callable[[Array], Array]) -> None:
        """Show what ``read`` gives for an array of slots."""
        self.shape, self.dtype, self._read = shape, dtype, read

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        return int(np.prod(self.shape))

    @property
    def nbytes(self) -> int:
        """Bytes of a copy of all."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        first, *rest = key if isinstance(key, tuple) else (key,)
        plain = isinstance(first, int | np.integer | slice | list | np.ndarray) and not isinstance(first, bool)
        if not plain or not all(isinstance(part, BASIC) and not isinstance(part, bool) for part in rest):
            return np.asarray(self)[key]
        slots = self._slots(first)
        rows = self._read(slots.reshape(-1)).reshape(*slots.shape, *self.shape[1:])
        return rows[(slice(None),) * slots.ndim + tuple(rest)] if rest else rows[()]

    def _slots(self, first: Any) -> Array:
        """Give the slots that an index of the first axis names, with its errors."""
        array = np.asarray(first) if not isinstance(first, slice) else None
        if array is None or array.dtype.kind not in "iu":
            return np.arange(len(self))[first]
        wrong = (array < -len(self)) | (array >= len(self))
        if wrong.any():
            raise IndexError(f"index {array[wrong].flat[0]} is out of bounds for {len(self)} slots")
        return np.where(array < 0, array + len(self), array).astype(np.int64)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("the slots of this buffer are read only: add() writes steps, and from_npz() reads files")

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("the slots of this buffer cannot be shown without a copy")
        array = self._read(np.arange(len(self)))
        return array if dtype is None else array.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f"Column({self.shape}, {self.dtype})"
