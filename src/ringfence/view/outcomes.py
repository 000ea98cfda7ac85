"""What a reward function looks at: what steps achieved, and their extras."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.schema.layout import FINAL_FIELD
from ringfence.store import Store
from ringfence.timeline import Anchors, Ints, Timeline
from ringfence.view.finals import Finals, part
from ringfence.view.gathering import Gathering, Part
from ringfence.view.pool import Pool

Array = NDArray[Any]


class Outcomes:
    """Copy one field of the observations that steps led to, an episode's final one among them."""

    def __init__(self, store: Store, timeline: Timeline, name: str) -> None:
        """Read the observation's leaf of this name, which is not stacked."""
        layout = store.layout
        self._store, self._timeline, self._finals = store, timeline, Finals(store)
        parts = [Part("final", FINAL_FIELD, layout.final_offset)]
        self._column = next((at for at, leaf in enumerate(layout.columns) if leaf.name == name), None)
        if self._column is None:
            self._place = layout.place(name)
            parts.append(Part("outcome", self._place.leaf.field, self._place.offset + layout.itemsize))
        else:
            field = layout.columns[self._column].field
            self._pool = Pool(field.shape, field.kept)
        self._gathering = Gathering(store, parts)

    def take(self, steps: Anchors) -> Array:
        """Give (n, ...) in the dtype that memory keeps."""
        rows = self._timeline.rows(steps)
        taken = self._gathering.take(rows)
        ended = np.flatnonzero(taken["final"] >= 0)
        finals = self._finals.places(steps.at(ended), taken["final"][ended])
        if self._column is not None:
            rows = self._timeline.rows(steps._replace(times=steps.times + 1))
            rows[ended] = self._finals.rows(finals)
            return self._store.frames(self._column, rows, self._pool.take(len(rows)))
        outcomes = taken["outcome"]
        if len(ended):
            outcomes[ended] = part(self._store.final_obs(finals), self._place)
        return outcomes


class Extras:
    """Copy the declared extras of steps."""

    def __init__(self, store: Store, timeline: Timeline) -> None:
        layout = store.layout
        self._store, self._timeline = store, timeline
        self._fields = layout.schema.extras
        small = [place for place in layout.packed if place.leaf.name in self._fields]
        parts = [Part(place.leaf.name, place.leaf.field, place.offset) for place in small]
        self._gathering = Gathering(store, parts) if parts else None
        self._columns = [(at, leaf.name) for at, leaf in enumerate(layout.columns) if leaf.name in self._fields]

    def take(self, steps: Anchors) -> dict[str, Array]:
        """Give each by its name, (n, ...) in the declared dtype."""
        rows = self._timeline.rows(steps)
        taken = {} if self._gathering is None else self._gathering.take(rows)
        taken |= {name: self._store.frames(at, rows) for at, name in self._columns}
        return {name: taken[name].astype(field.dtype, copy=False) for name, field in self._fields.items()}

    def shown(self, taken: dict[str, Array], places: Ints) -> dict[str, Array]:
        """Give some rows of what was taken already, likewise."""
        return {name: taken[name][places].astype(field.dtype, copy=False) for name, field in self._fields.items()}
