"""What every store must keep, as tests to inherit.

Give the class a name that pytest collects, and say how the store is made::

    class TestMine(StoreContract):
        def make_store(self, layout, shape):
            return Mine(layout, shape)

A store is tried beside a dict of bytes: the same random writes go to both, and all that can be read is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.schema import Field, Layout, Schema
from ringfence.schema.layout import FINAL
from ringfence.store import RingShape, Store
from ringfence.store.base import MIRROR

SMALL = Schema(obs=Field((3,), np.int16), action=Field((2,), np.float32), extras={"flag": Field((), np.bool_)})
FRAMED = Schema(
    obs={"image": Field((24, 24), np.uint8, stack=2), "state": Field((2,), np.float32), "map": Field((70,), np.int64)},
    action=Field((), np.int64),
    extras={"hidden": Field((200,), np.float32)},
)
BARE = Schema(obs=Field((24, 24), np.uint8), action=Field((), np.int8))
LAYOUTS = tuple(Layout.of(schema) for schema in (SMALL, FRAMED, BARE))
SHAPES = (RingShape(1, 1, 2), RingShape(1, 20, 5), RingShape(3, 7, 4), RingShape(5, 30, 31))


class Model:
    """A dict of bytes for each part of a store: what was last written there."""

    def __init__(self, layout: Layout, shape: RingShape) -> None:
        self.layout, self.shape = layout, shape
        self.records = {row: bytearray(layout.itemsize) for row in range(shape.streams * shape.rows)}
        self.frames: dict[tuple[int, int], bytes] = {}
        self.finals: dict[tuple[int, int], bytes] = {}

    def put(self, row: int, record: bytes) -> None:
        """Write a record, and perhaps the beginning of the next one."""
        size = self.layout.itemsize
        self.records[row][: len(record)] = record[:size]
        if len(record) > size:
            self.records[row + 1][: len(record) - size] = record[size:]

    def span(self, row: int, offset: int, nbytes: int) -> bytes:
        """Read bytes from a record on into the next one."""
        following = self.records.get(row + 1, bytearray())
        return bytes(self.records[row] + following)[offset : offset + nbytes]


class Twins:
    """A store and the model beside it, and random writes that go to both."""

    def __init__(self, store: Any, seed: int = 0) -> None:
        self.store, self.model = store, Model(store.layout, store.shape)
        self.layout, self.shape = store.layout, store.shape
        self.random = np.random.default_rng(seed)
        for row in range(self.shape.streams * self.shape.rows):  # what a new store holds is anyone's guess
            self._put(row, self.layout.itemsize)

    def rows(self) -> list[int]:
        """List the rows where steps lie, stream by stream."""
        return [stream * self.shape.rows + slot for stream in range(self.shape.streams) for slot in self._slots()]

    def _slots(self) -> range:
        return range(self.shape.slots)

    def _put(self, row: int, nbytes: int) -> None:
        record = self.random.bytes(nbytes)
        self.store.put(row, record)
        self.model.put(row, record)

    def write(self, times: int) -> None:
        """Write records, frames and final observations, here and there."""
        layout, shape = self.layout, self.shape
        for _ in range(times):
            row = int(self.random.choice(self.rows()))
            self._put(row, layout.itemsize + layout.obs_nbytes * int(self.random.integers(2)))
            for column, leaf in enumerate(layout.columns):
                frame = self.random.bytes(leaf.field.nbytes)
                self.store.put_frame(column, row, frame)
                self.model.frames[column, row] = frame
            stream, number = (int(self.random.integers(size)) for size in (shape.streams, shape.finals))
            self._end(row, stream, number)

    def _end(self, row: int, stream: int, number: int) -> None:
        layout = self.layout
        obs = self.random.bytes(layout.obs_nbytes)
        self.store.put_final(stream, number, obs)
        self.model.finals[stream, number] = obs
        for column, leaf in enumerate(layout.columns):
            if leaf.role == "obs":
                frame, place = self.random.bytes(leaf.field.nbytes), self.store.final_row(stream, number)
                self.store.put_frame(column, place, frame)
                self.model.frames[column, place] = frame
        self.store.mark_final(row, number)
        start = layout.final_offset
        self.model.records[row][start : start + FINAL.itemsize] = FINAL.type(number).tobytes()

    def mirror(self, stream: int) -> None:
        """Repeat the first rows of a ring behind its end."""
        self.store.mirror(stream)
        first, end = stream * self.shape.rows, stream * self.shape.rows + self.shape.slots
        for at in range(MIRROR):
            self.model.records[end + at] = bytearray(self.model.records[first + at])

    def unmirror(self, stream: int) -> None:
        """Bring what was written behind a ring's end to its first row."""
        self.store.unmirror(stream)
        first = stream * self.shape.rows
        self.model.records[first] = bytearray(self.model.records[first + self.shape.slots])


class StoreContract:
    """Prove that a store gives back the bytes that were put, where they were put, and costs what it says."""

    def make_store(self, layout: Layout, shape: RingShape) -> Store:
        """Make the store under test."""
        raise NotImplementedError

    def twins(self) -> Iterator[tuple[str, Twins]]:
        """Make a store of every layout and shape, with random bytes in all its rows."""
        for at, layout in enumerate(LAYOUTS):
            for shape in SHAPES:
                yield f"in layout {at} of {shape}", Twins(self.make_store(layout, shape), seed=at)

    def written(self, times: int = 40) -> Iterator[tuple[str, Twins]]:
        """Go through stores that were written to."""
        for where, twins in self.twins():
            twins.write(times)
            yield where, twins

    # -- what is there from the start

    def test_a_new_store_holds_no_steps(self) -> None:
        """Have marks of zero, no open episode, and arrays of the declared shapes."""
        for layout in LAYOUTS:
            for shape in SHAPES:
                store = self.make_store(layout, shape)
                rows = shape.streams * shape.rows
                expected: dict[str, tuple[tuple[int, ...], Any]] = {
                    "marks": ((3, shape.streams), np.int64),
                    "ages": ((rows,), np.int32),
                    "final_times": ((shape.streams, shape.finals), np.int64),
                    "runs": ((shape.streams,), np.int32),
                }
                for name, (dims, dtype) in expected.items():
                    array = getattr(store, name)
                    assert array.shape == dims, f"{name} has shape {array.shape}, not {dims}"
                    assert array.dtype == dtype, f"{name} is {array.dtype}, not {dtype}"
                assert not store.marks.any(), f"marks of a new store are {store.marks}"
                assert not store.runs.any(), f"runs of a new store are {store.runs}"

    def test_bytes_are_counted(self) -> None:
        """Say at least the bytes of all steps and of the index in ``nbytes``, and not much more."""
        for layout in LAYOUTS:
            shape = RingShape(2, 5000, 100)
            store = self.make_store(layout, shape)
            frames = sum(leaf.field.nbytes for leaf in layout.columns)
            index = sum(getattr(store, name).nbytes for name in ("marks", "ages", "final_times", "runs"))
            least = shape.streams * shape.capacity * (layout.itemsize + frames) + index
            assert least <= store.nbytes <= 1.25 * least + 65536, f"nbytes is {store.nbytes} for {least} bytes of steps"

    # -- what is read

    def test_observations_are_read_back(self) -> None:
        """Read the small observation of each row, and those of many at once."""
        for where, twins in self.written():
            layout, rows = twins.layout, twins.rows()
            expected = [bytes(twins.model.records[row][: layout.obs_nbytes]) for row in rows]
            assert [twins.store.obs(row) for row in rows] == expected, f"obs() gives other bytes {where}"
            if layout.obs_nbytes:
                got = twins.store.waiting(np.array(rows))
                assert got == b"".join(expected), f"waiting() gives other bytes {where}"

    def test_records_are_gathered(self) -> None:
        """Copy any parts of the records of any rows, and of those that follow them."""
        for where, twins in self.written():
            size = twins.layout.itemsize
            rows = twins.random.permutation(np.array(twins.rows() * 2))[:50]
            for _ in range(6):
                spans = [self._span(twins.random, 2 * size) for _ in range(3)]
                got = gathered(twins.store, rows, spans)
                expected = [b"".join(twins.model.span(row, *span) for row in rows.tolist()) for span in spans]
                assert got == expected, f"gather() of {spans} gives other bytes {where}"

    @staticmethod
    def _span(random: np.random.Generator, size: int) -> tuple[int, int]:
        start, end = sorted(random.choice(size + 1, 2, replace=False).tolist())
        return start, end - start

    def test_frames_are_read_back(self) -> None:
        """Copy big fields of one row or of rows in any shape, into memory of the caller's or its own."""
        for where, twins in self.written():
            for column, leaf in enumerate(twins.layout.columns):
                held = {row: frame for (at, row), frame in twins.model.frames.items() if at == column}
                for row, frame in held.items():
                    if row < twins.shape.streams * twins.shape.rows:
                        assert twins.store.frame(column, row) == frame, f"frame() gives other bytes {where}"
                rows = np.array([*held, *held]).reshape(2, -1)
                expected = b"".join(held[row] for row in rows.ravel().tolist())
                dims = (*rows.shape, *leaf.field.shape)
                lent = np.empty(dims, leaf.field.kept)
                for got in (twins.store.frames(column, rows), twins.store.frames(column, rows, lent)):
                    assert (got.shape, got.dtype) == (dims, leaf.field.kept), f"frames are {got.dtype}{got.shape}"
                    assert got.tobytes() == expected, f"frames() gives other bytes {where}"
                assert lent.tobytes() == expected, f"frames() left the lent array as it was {where}"

    def test_final_observations_are_read_back(self) -> None:
        """Read small final observations by place; the big ones lie in rows of their own."""
        for where, twins in self.written():
            shape = twins.shape
            if twins.layout.obs_nbytes:
                places = np.array([stream * shape.finals + number for stream, number in twins.model.finals])
                got = twins.store.final_obs(places).tobytes()
                assert got == b"".join(twins.model.finals.values()), f"final_obs() gives other bytes {where}"
            rows = {twins.store.final_row(s, n) for s in range(shape.streams) for n in range(shape.finals)}
            assert len(rows) == shape.streams * shape.finals, f"two final observations share a row {where}"
            assert not rows & set(twins.rows()), f"a final observation shares the row of a step {where}"

    # -- what is next to each other

    def test_a_mirror_repeats_the_first_rows(self) -> None:
        """Repeat a ring's first rows behind its end, and touch no other ring."""
        for where, twins in self.written():
            for stream in reversed(range(twins.shape.streams)):
                twins.mirror(stream)
                self._same_records(twins, f"after mirror({stream}) {where}")

    def test_a_successor_behind_the_end_is_brought_to_the_front(self) -> None:
        """Copy the row behind a ring's end to its first one, and touch no other."""
        for where, twins in self.written():
            for stream in range(twins.shape.streams):
                twins.unmirror(stream)
                self._same_records(twins, f"after unmirror({stream}) {where}")

    def test_many_streams_are_written_at_once(self) -> None:
        """Write pairs of records, to rows anywhere or to one slot of every stream, as single writes would."""
        for where, twins in self.written():
            store, model, size = twins.store, twins.model, twins.layout.itemsize
            streams, rows = twins.shape.streams, twins.shape.rows
            for slot in (0, twins.shape.slots - 1):
                for put, at in ((store.put_many, np.arange(streams) * rows + slot), (store.put_level, slot)):
                    records = [twins.random.bytes(2 * size) for _ in range(streams)]
                    put(at, np.frombuffer(b"".join(records), np.dtype((np.void, 2 * size))))
                    for stream, record in enumerate(records):
                        model.put(stream * rows + slot, record)
                    self._same_records(twins, f"after {put.__name__} {where}")

    @staticmethod
    def _same_records(twins: Twins, where: str) -> None:
        rows = np.arange(twins.shape.streams * twins.shape.rows - 1)
        got = gathered(twins.store, rows, [(0, twins.layout.itemsize)])[0]
        expected = b"".join(bytes(twins.model.records[row]) for row in rows.tolist())
        assert got == expected, f"records differ {where}"

    def test_what_was_read_is_the_callers_own(self) -> None:
        """Share no memory with what is given out: later writes do not change it."""
        for where, twins in self.written():
            rows = np.array(twins.rows()[:4])
            read = [twins.store.frames(column, rows) for column in range(len(twins.layout.columns))]
            if twins.layout.obs_nbytes:
                read.append(twins.store.final_obs(np.arange(2)))
            before = [array.tobytes() for array in read]
            twins.write(60)
            assert [array.tobytes() for array in read] == before, f"what was read changed with later writes {where}"


def gathered(store: Any, rows: NDArray[np.int64], spans: list[tuple[int, int]]) -> list[bytes]:
    """Copy spans of records out of a store."""
    outs = tuple(np.empty((len(rows), nbytes), np.uint8) for _, nbytes in spans)
    store.gather(rows, np.array(spans, np.int64), outs)
    return [out.tobytes() for out in outs]
