"""Which parts of records a view copies, and the fresh arrays it copies them to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.schema.field import Field
from ringfence.store import Store
from ringfence.view.pool import SMALL, Pool

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A field of the record, or of the one that follows it."""

    name: str
    field: Field
    offset: int


class Gathering:
    """Copy the same parts of many records at once, each into a contiguous array of its own."""

    def __init__(self, store: Store, parts: list[Part]) -> None:
        self._store = store
        self._names = [part.name for part in parts]
        self._items = [(part.field.shape, part.field.kept) for part in parts]
        self._pools = [Pool(*item) for item in self._items]
        self._shapes: tuple[int, list[tuple[tuple[int, ...], np.dtype[Any]]]] = (-1, [])
        spans = np.array([(part.offset, part.field.nbytes) for part in parts], np.int64).reshape(-1, 2)
        self._skip = int(spans[:, 0].min())  # what lies before the first part is not fetched
        self._spans = spans - (self._skip, 0)
        self._widest = int(spans[:, 1].max())

    def take(self, rows: NDArray[np.int64]) -> dict[str, Array]:
        """Copy the parts of these rows, in the dtypes that memory keeps."""
        outs = self._outputs(len(rows))
        self._store.gather(rows, self._spans, outs, self._skip)
        return dict(zip(self._names, outs, strict=True))

    def _outputs(self, count: int) -> tuple[Array, ...]:
        """Give an array for each part."""
        if count * self._widest >= SMALL:
            return tuple([pool.take(count) for pool in self._pools])
        made_for, shapes = self._shapes
        if made_for != count:
            shapes = [((count, *shape), dtype) for shape, dtype in self._items]
            self._shapes = count, shapes
        empty = np.empty
        return tuple([empty(shape, dtype) for shape, dtype in shapes])
