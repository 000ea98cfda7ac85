"""Final observations: the successors of steps that ended their episode, kept beside the ring."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.schema.layout import Place
from ringfence.store import Store
from ringfence.timeline import Anchors, Ints

Array = NDArray[Any]


class Finals:
    """Find final observations, and put them where their steps' successors belong."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._small = [place for place in store.layout.packed if place.leaf.role == "obs"]

    def places(self, steps: Anchors, numbers: Array) -> Ints:
        """Give where the final observations with these numbers lie, which steps' records name."""
        places = numbers.astype(np.int64)
        if steps.streams is not None:
            places += steps.streams * self._store.shape.finals
        return places

    def rows(self, places: Ints) -> Ints:
        """Give the rows of a column that hold them."""
        return self._store.final_row(0, 0) + places

    def put(self, arrays: dict[str, Array], places: Ints, at: Ints, prefix: str = "") -> None:
        """Write the small ones into arrays of observations, whose names begin with ``prefix``, at these positions."""
        if not self._small:
            return
        finals = self._store.final_obs(places)
        for place in self._small:
            arrays[prefix + place.leaf.name][at] = part(finals, place)


def part(finals: Array, place: Place) -> Array:
    """View one leaf of small observations."""
    field = place.leaf.field
    inner = np.empty(field.shape, field.kept).strides
    return np.ndarray((len(finals), *field.shape), field.kept, finals, place.offset, strides=(finals.itemsize, *inner))
