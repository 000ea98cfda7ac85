"""How many streams grow by one step each, in one call: what a vector environment needs.

The steps of all streams are laid side by side in a staging block, packed as memory packs them, and written at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringfence.schema.layout import FINAL
from ringfence.schema.rows import Arrays, Rows
from ringfence.store import Ram
from ringfence.store.base import MIRROR
from ringfence.timeline.timeline import TIME_BITS, Ints
from ringfence.timeline.writer import LONGEST, Writer


class WideWriter:
    """Append one step to each of several streams. Costs two records a stream."""

    def __init__(self, store: Ram, writer: Writer) -> None:
        layout, shape = store.layout, store.shape
        self._store, self._writer, self._layout = store, writer, layout
        self._slots, self._rows = shape.slots, shape.rows
        self._everyone = np.arange(shape.streams)
        self._first_rows = self._everyone * shape.rows
        self._id_bits = self._everyone << TIME_BITS
        pair = 2 * layout.itemsize
        self._stage = np.zeros(shape.streams, (np.void, pair))
        self._fields = {
            place.leaf.name: self._view(place.leaf.field.kept, place.offset, place.leaf.field.shape)
            for place in layout.packed
        }
        self._next = {
            place.leaf.name: self._view(place.leaf.field.kept, place.offset + layout.itemsize, place.leaf.field.shape)
            for place in layout.packed
            if place.leaf.role == "obs"
        }
        self._final = self._view(FINAL, layout.final_offset, ())
        self._obs = self._view(np.dtype((np.void, max(layout.obs_nbytes, 1))), 0, ())
        self._next_obs = self._view(self._obs.dtype, layout.itemsize, ())
        self._columns = [(at, leaf.name, leaf.role == "obs") for at, leaf in enumerate(layout.columns)]

    def append(self, streams: Ints | None, steps: Rows) -> Ints:
        """Add a checked step to each stream; give the ids. ``None`` means every stream."""
        store, count = self._store, len(steps.values["terminated"])
        who = self._everyone if streams is None else streams
        heads = store.marks[0].copy() if streams is None else store.marks[0][who]
        slots = heads % self._slots
        rows = slots + (self._first_rows if streams is None else self._first_rows[who])
        self._fill(count, steps)
        runs = self._writer.runs(streams)
        self._seal(who, heads, rows, runs, steps)
        self._put_columns(rows, slots, runs, steps)
        ended = self._close(who, heads, steps, count)
        store.put_many(rows, self._stage[:count])
        self._mirror(who, slots)
        store.ages[rows] = runs
        runs += 1
        runs[ended] = 0
        self._writer.advance(streams, runs, heads + 1)
        return heads | (self._id_bits if streams is None else self._id_bits[who])

    def _fill(self, count: int, steps: Rows) -> None:
        for name, view in self._fields.items():
            view[:count] = steps.values[name]
        for name, view in self._next.items():
            view[:count] = steps.successors[name]
        self._final[:count] = -1

    def _seal(self, who: Ints, heads: Ints, rows: Ints, runs: NDArray[np.int32], steps: Rows) -> None:
        """Cut the episodes whose waiting successor is not the observation that came; their runs become 0."""
        differs = self._differs(rows, steps)
        if differs is None and runs.max(initial=0) < LONGEST:
            return
        cut = (runs > 0) & ((runs >= LONGEST) if differs is None else differs | (runs >= LONGEST))
        for at in np.flatnonzero(cut):
            self._writer.seal(int(who[at]), int(heads[at]), int(rows[at]))
        runs[cut] = 0

    def _differs(self, rows: Ints, steps: Rows) -> NDArray[np.bool_] | None:
        """Tell where the observations are not those that wait in these rows; None where all are."""
        store, layout, count = self._store, self._layout, len(rows)
        differs: NDArray[np.bool_] | None = None
        if layout.obs_nbytes:
            records = store.windows(rows, 1)
            waiting = np.ndarray((count,), self._obs.dtype, records, 0, (layout.itemsize,)).tobytes()
            came = self._obs[:count].tobytes()
            if waiting != came:
                pair = np.frombuffer(waiting + came, np.uint8).reshape(2, count, -1)
                differs = (pair[0] != pair[1]).any(axis=1)
        for column, name, is_obs in self._columns:
            if is_obs:
                waits, frames = store.frames(column, rows), steps.values[name]
                same = waits.reshape(count, -1).view(np.uint8) == np.ascontiguousarray(frames).reshape(count, -1).view(np.uint8)
                if not same.all():
                    unlike = ~same.all(axis=1)
                    differs = unlike if differs is None else differs | unlike
        return differs

    def _put_columns(self, rows: Ints, slots: Ints, runs: NDArray[np.int32], steps: Rows) -> None:
        if not self._columns:
            return
        after = rows + np.where(slots + 1 < self._slots, 1, 1 - self._slots)
        for column, name, is_obs in self._columns:
            target = self._store.columns[column]
            if is_obs:
                first = runs == 0  # inside an episode the observation is there already, as the last step's successor
                target[rows[first]] = steps.values[name][first]
                target[after] = steps.successors[name]
            else:
                target[rows] = steps.values[name]

    def _close(self, who: Ints, heads: Ints, steps: Rows, count: int) -> Ints:
        """Keep the final observations of the episodes that ended; give which did."""
        terminated, truncated = steps.values["terminated"], steps.values["truncated"]
        if b"\1" not in terminated.tobytes() and b"\1" not in truncated.tobytes():
            return NOBODY
        ended: Ints = np.flatnonzero(terminated | truncated)
        for at in ended:
            obs = self._next_obs[at].tobytes() if self._layout.obs_nbytes else b""
            frames = tuple(_bytes(steps.successors, name, at) for _, name, is_obs in self._columns if is_obs)
            self._final[at] = self._writer.close(int(who[at]), int(heads[at]), obs, frames)
        return ended

    def _mirror(self, who: Ints, slots: Ints) -> None:
        if slots.min() >= MIRROR and slots.max() + 1 < self._slots:
            return
        for at in np.flatnonzero((slots < MIRROR) | (slots + 1 == self._slots)):
            self._writer.mirror(int(who[at]), int(slots[at]))

    def _view(self, dtype: np.dtype[np.generic], offset: int, shape: tuple[int, ...]) -> NDArray[np.generic]:
        """Give a field of every staged pair, without a copy."""
        pair = self._stage.dtype.itemsize
        inner = np.empty(shape, dtype).strides
        return np.ndarray((len(self._stage), *shape), dtype, self._stage, offset, (pair, *inner))


NOBODY: Ints = np.zeros(0, np.int64)


def _bytes(arrays: Arrays, name: str, at: int) -> bytes:
    return bytes(arrays[name][at].tobytes())
