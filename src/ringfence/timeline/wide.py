"""How many streams grow by one step each, in one call: what a vector environment needs.

The steps of all streams are laid side by side in a staging block, packed as memory packs them, and written at once.
Streams that have run in lockstep, as those of a vector environment do, stand at the same slot: that is one strided copy
and no index arrays, and takes half the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import SchemaError
from ringfence.schema.layout import FINAL
from ringfence.schema.rows import Rows
from ringfence.store import Store
from ringfence.store.base import MIRROR
from ringfence.timeline.timeline import TIME_BITS, Ints
from ringfence.timeline.writer import LONGEST, Writer

Array = NDArray[Any]
Runs = NDArray[np.int32]


class WideWriter:
    """Append one step to each of several streams. Its staging block lies in the store."""

    def __init__(self, store: Store, writer: Writer) -> None:
        layout, shape = store.layout, store.shape
        self._store, self._writer, self._layout = store, writer, layout
        self._slots, self._streams = shape.slots, shape.streams
        self._everyone, self._first_rows, self._id_bits = store.numbers
        self._everyone[:] = np.arange(shape.streams)
        self._first_rows[:] = self._everyone * shape.rows
        self._id_bits[:] = self._everyone << TIME_BITS
        self._marks, self._heads = store.marks, store.marks[0]
        self._stage = store.staging
        inside = [place for place in layout.packed if place.leaf.name not in ("terminated", "truncated")]
        self._fields = [
            (place.leaf.name, self._view(place.leaf.field.kept, place.offset, place.leaf.field.shape))
            for place in inside
        ]
        self._next = [
            (place.leaf.name, self._view(place.leaf.field.kept, place.offset + layout.itemsize, place.leaf.field.shape))
            for place in layout.packed
            if place.leaf.role == "obs"
        ]
        self._terminated = self._view(np.dtype(np.bool_), layout.place("terminated").offset, ())
        self._truncated = self._view(np.dtype(np.bool_), layout.place("truncated").offset, ())
        self._final = self._view(FINAL, layout.final_offset, ())
        self._final[:] = -1
        self._obs = self._view(np.dtype((np.void, max(layout.obs_nbytes, 1))), 0, ())
        self._next_obs = self._view(self._obs.dtype, layout.itemsize, ())
        self._columns = [(at, leaf.name, leaf.role == "obs") for at, leaf in enumerate(layout.columns)]

    def append(self, streams: Ints | None, steps: Rows) -> Ints:
        """Add a checked step to each stream; give the ids. ``None`` means every stream."""
        if streams is None and not self._columns:
            ids = self._append_plain(steps)
            if ids is not None:
                return ids
        marks, writer = self._marks, self._writer
        heads = marks[0].copy() if streams is None else marks[0, streams]
        who = self._everyone if streams is None else streams
        count = len(who)
        bits = self._id_bits if streams is None else self._id_bits[streams]
        level = streams is None and heads.tobytes() == heads[:1].tobytes() * count
        # where the rows of these steps are: one slot of every stream, or row by row
        slots: Any = int(heads[0]) % self._slots if level else heads % self._slots
        runs = writer.runs(streams)
        self._fill(count, steps)
        self._seal(who, heads, slots, runs, steps)
        if self._columns:
            self._put_columns(who, slots, runs, steps)
        ended = self._close(who, heads, steps)
        if level:
            self._store.put_level(slots, self._stage)
            self._store.ages_by_stream[:, slots] = runs
        else:
            rows = self._first_rows[who] + slots
            self._store.put_many(rows, self._stage[:count])
            self._store.ages[rows] = runs
        self._mirror(who, slots, level=level)
        runs += 1
        if ended is not None:
            runs[ended] = 0
            self._terminated[:count], self._truncated[:count], self._final[:count] = False, False, -1
        ids = heads | bits
        heads += 1
        writer.advance(streams, runs, heads)
        return ids

    def _append_plain(self, steps: Rows) -> Ints | None:
        """Add where streams stand level and no episode begins, ends or is cut: nearly every call, in half the time.

        Give None, with nothing changed that counts, where it is not so.
        """
        values, successors = steps
        store, heads = self._store, self._heads
        bits = heads.tobytes()
        if b"\1" in values["terminated"].tobytes() + values["truncated"].tobytes() or bits != bits[:8] * len(heads):
            return None
        head = int(heads[0])
        slot = head % self._slots
        for name, view in self._fields:
            view[...] = values[name]
        for name, view in self._next:
            view[...] = successors[name]
        if store.waiting_level(slot) != self._obs.tobytes() or head >= LONGEST:
            return None
        store.put_level(slot, self._stage)
        store.ages_by_stream[:, slot] = store.runs
        self._mirror(self._everyone, slot, level=True)
        store.runs += 1
        heads[:] = head + 1
        return self._id_bits | head

    def _fill(self, count: int, steps: Rows) -> None:
        """Lay the steps into the staging block, whose end flags are kept clear from one call to the next."""
        values, successors = steps
        for name, view in self._fields:
            view[:count] = values[name]
        for name, view in self._next:
            view[:count] = successors[name]

    def _seal(self, who: Ints, heads: Ints, slots: Any, runs: Runs, steps: Rows) -> None:
        """Cut the episodes whose waiting successor is not the observation that came; their runs become 0."""
        differs = self._differs(who, slots, steps)
        # in lockstep: a run is never longer than its stream is old, and one number is cheaper to look at than all
        young = isinstance(slots, int) and int(heads[0]) < LONGEST
        if differs is None and (young or runs.max() < LONGEST):
            return
        cut = runs >= LONGEST if differs is None else (runs > 0) & (differs | (runs >= LONGEST))
        rows = self._first_rows[who] + slots
        for at in np.flatnonzero(cut):
            self._writer.seal(int(who[at]), int(heads[at]), int(rows[at]))
        runs[cut] = 0

    def _differs(self, who: Ints, slots: Any, steps: Rows) -> NDArray[np.bool_] | None:
        """Tell where the observations are not those that wait in these rows; None where all are."""
        count = len(who)
        differs: NDArray[np.bool_] | None = None
        level = isinstance(slots, int)
        rows = self._first_rows[who] + slots if self._columns or not level else None
        if self._layout.obs_nbytes:
            waiting = self._store.waiting_level(slots) if rows is None or level else self._store.waiting(rows)
            came = self._obs[:count].tobytes()
            if waiting != came:
                pair = np.frombuffer(waiting + came, np.uint8).reshape(2, count, -1)
                differs = (pair[0] != pair[1]).any(axis=1)
        for column, name, is_obs in self._columns:
            if is_obs and rows is not None:
                unlike = _unlike(self._store.frames(column, rows), steps[0][name])
                if unlike.any():
                    differs = unlike if differs is None else differs | unlike
        return differs

    def _put_columns(self, who: Ints, slots: Any, runs: Runs, steps: Rows) -> None:
        rows = self._first_rows[who] + slots
        after = rows + np.where(slots + 1 < self._slots, 1, 1 - self._slots)
        first = runs == 0  # inside an episode the observation is there already, as the last step's successor
        for column, name, is_obs in self._columns:
            if is_obs:
                if first.any():
                    self._store.put_frames(column, rows[first], steps[0][name][first])
                self._store.put_frames(column, after, steps[1][name])
            else:
                self._store.put_frames(column, rows, steps[0][name])

    def _close(self, who: Ints, heads: Ints, steps: Rows) -> Ints | None:
        """Keep the final observations of the episodes that ended; give which did."""
        terminated, truncated = steps[0]["terminated"], steps[0]["truncated"]
        if b"\1" not in terminated.tobytes() and b"\1" not in truncated.tobytes():
            return None
        count = len(who)
        self._terminated[:count], self._truncated[:count] = terminated, truncated
        ended: Ints = np.flatnonzero(terminated | truncated)
        for at in ended:
            obs = self._next_obs[at].tobytes() if self._layout.obs_nbytes else b""
            frames = tuple(steps[1][name][at].tobytes() for _, name, is_obs in self._columns if is_obs)
            self._final[at] = self._writer.close(int(who[at]), int(heads[at]), obs, frames)
        return ended

    def _mirror(self, who: Ints, slots: Any, *, level: bool) -> None:
        low, high = (slots, slots) if level else (slots.min(), slots.max())
        if low >= MIRROR and high + 1 < self._slots:
            return
        near = (slots < MIRROR) | (slots + 1 == self._slots)
        for at in np.flatnonzero(np.broadcast_to(near, len(who))):
            self._writer.mirror(int(who[at]), int(slots if level else slots[at]))

    def _view(self, dtype: np.dtype[Any], offset: int, shape: tuple[int, ...]) -> Array:
        """Give a field of every staged pair, without a copy."""
        inner = np.empty(shape, dtype).strides
        return np.ndarray((len(self._stage), *shape), dtype, self._stage, offset, (self._stage.dtype.itemsize, *inner))


def _unlike(waiting: Array, came: Array) -> NDArray[np.bool_]:
    """Tell which frames differ in a bit: values would call NaN unlike itself."""
    count = len(waiting)
    left, right = (np.ascontiguousarray(frames).reshape(count, -1).view(np.uint8) for frames in (waiting, came))
    unlike: NDArray[np.bool_] = (left != right).any(axis=1)
    return unlike


def chosen(streams: Any, count: int) -> Ints:
    """Give the numbers of streams that a caller chose among ``count``.

    Raises:
        SchemaError: They are none, or one is there twice.
    """
    try:
        who = np.asarray(streams)
    except ValueError as error:
        raise SchemaError(f"streams: expected a list of stream numbers, got {streams!r}") from error
    if who.ndim != 1 or (who.size and who.dtype.kind not in "iu"):
        raise SchemaError(f"streams: expected a list of stream numbers, got {streams!r}")
    if who.size and (who.min() < 0 or who.max() >= count):
        raise SchemaError(f"streams: expected numbers from 0 to {count - 1}, got {who.tolist()}")
    if len(np.unique(who)) != len(who):
        raise SchemaError(f"streams: expected each stream at most once, got {who.tolist()}")
    return who.astype(np.int64)
