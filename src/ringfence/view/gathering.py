"""Which parts of records a view copies, and the fresh arrays it copies them to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.schema.field import Field
from ringfence.store import Ram
from ringfence.view.pool import Pool

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A field of the record, or of the one that follows it."""

    name: str
    field: Field
    offset: int


class Gathering:
    """Copy the same parts of many records at once, each into a contiguous array of its own."""

    def __init__(self, store: Ram, parts: list[Part]) -> None:
        self._store = store
        self._names = [part.name for part in parts]
        self._pools = [Pool(part.field.shape, part.field.kept) for part in parts]
        spans = np.array([(part.offset, part.field.nbytes) for part in parts], np.int64).reshape(-1, 2)
        self._skip = int(spans[:, 0].min())  # what lies before the first part is not fetched
        self._spans = spans - (self._skip, 0)

    def take(self, rows: NDArray[np.int64]) -> dict[str, Array]:
        """Copy the parts of these rows, in the dtypes that memory keeps."""
        count = len(rows)
        outs = tuple([pool.take(count) for pool in self._pools])
        self._store.gather(rows, self._spans, outs, self._skip)
        return dict(zip(self._names, outs, strict=True))
