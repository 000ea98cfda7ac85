"""Overwrite extras of steps that are held, such as a recurrent state that was computed anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import SchemaError
from ringfence.schema import cast
from ringfence.store import Store
from ringfence.store.base import BLOCK
from ringfence.timeline import Ints, Timeline

Array = NDArray[Any]


class Written(NamedTuple):
    """What became of values that were written."""

    applied: int
    stale: int
    """Of steps that are gone."""


class Writing:
    """Write to extras by id."""

    def __init__(self, store: Store, timeline: Timeline) -> None:
        self._store, self._timeline = store, timeline
        self._fields = store.layout.schema.extras
        self._columns = {leaf.name: at for at, leaf in enumerate(store.layout.columns)}

    def write(self, ids: Any, extras: Mapping[str, Any]) -> Written:
        """Overwrite these extras of the steps that are held, and count those that are gone; ids of -1 name no step.

        Raises:
            SchemaError: An extra is not declared, or values are not as the schema says. Nothing was changed.
            ValueError: The ids are no whole numbers.
        """
        names = np.asarray(ids)
        if names.size and names.dtype.kind not in "iu":
            raise ValueError(f"ids: expected whole numbers, got dtype {names.dtype}")
        values = {name: self._checked(name, value, names.shape) for name, value in extras.items()}
        if not values:
            raise SchemaError(f"write: name what to write: {', '.join(self._fields) or 'the schema has no extras'}")
        flat = names.astype(np.int64).ravel()
        held = self._timeline.holds(flat)
        rows = self._timeline.rows(self._timeline.anchors(flat[held]))
        for name, value in values.items():
            self._put(name, rows, value.reshape(len(flat), *self._fields[name].shape)[held])
        self._store.touched[rows // BLOCK] += 1
        applied = len(rows)
        return Written(applied, int(np.count_nonzero(flat != -1)) - applied)

    def _checked(self, name: str, value: Any, shape: tuple[int, ...]) -> Array:
        if name not in self._fields:
            raise SchemaError(f"{name}: is no declared extra; the schema has {', '.join(self._fields) or 'none'}")
        field = self._fields[name]
        return cast.fit(name, value, (*shape, *field.shape), field)

    def _put(self, name: str, rows: Ints, values: Array) -> None:
        """Write one extra of these rows; where a step has two, the last value counts."""
        column = self._columns.get(name)
        if column is not None:
            self._store.put_frames(column, rows, values)
        else:
            self._store.put_small(self._store.layout.place(name), rows, values)
