"""Rings in memory: one shared mapping without a file, paid for when it is made.

Shared, so that a forked worker reads the same pages: a private mapping would be copied page by page as the ring turns.
On Linux it has a file descriptor, so that a spawned worker can map the same pages too.
Committed, so that a run that cannot fit dies at step 0 and not at step 1.5 million.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ringfence.kernels import Ring, gather, nstep
from ringfence.schema import Layout
from ringfence.schema.layout import FINAL, Place
from ringfence.store.base import BLOCK, MIRROR, Cost, RingShape

if TYPE_CHECKING:
    from typing_extensions import Self

ALIGN = 64  # bytes; a cache line
POPULATE_WRITE = 23  # MADV_POPULATE_WRITE (Linux 5.14), which Python's mmap does not name yet
COLUMN = "column "  # before the caller's names, which may be any, also those of the other parts
Part = tuple[str, np.dtype[Any], tuple[int, ...]]


class Shared(mmap.mmap):
    """Memory that another process can map too. Costs a file descriptor beside its bytes."""

    fd: int

    def __new__(cls, size: int, fd: int | None = None) -> Self:
        """Map new memory, or that of a descriptor, which then belongs to this mapping."""
        if fd is None:
            fd = os.memfd_create("ringfence")
            os.ftruncate(fd, size)
        try:
            mapping = super().__new__(cls, fd, size)
        except BaseException:
            os.close(fd)
            raise
        mapping.fd = fd
        return mapping

    def __del__(self) -> None:
        """Give the descriptor back."""
        os.close(self.fd)


class Ram:
    """Keep rings in memory. Costs what :func:`cost` says, all of it from the start."""

    def __init__(self, layout: Layout, shape: RingShape, mapping: Shared | None = None) -> None:
        """Take new memory, or read the ring of another process in what it shared."""
        self.layout, self.shape = layout, shape
        parts = _parts(layout, shape)
        offsets, size = _offsets(parts)
        self._map = _committed(size) if mapping is None else mapping
        arrays = {
            name: np.ndarray(dims, dtype, self._map, offset)
            for (name, dtype, dims), offset in zip(parts, offsets, strict=True)
        }
        self.marks, self.ages, self.final_times = arrays["marks"], arrays["ages"], arrays["final times"]
        self.runs, self.numbers, self.staging = arrays["runs"], arrays["numbers"], arrays["staging"]
        self.touched = arrays["touched"]
        self.records = arrays["records"]
        self._final_obs = arrays.get("final observations")
        self.columns = [arrays[COLUMN + leaf.name] for leaf in layout.columns]
        starts = dict(zip((name for name, _, _ in parts), offsets, strict=True))
        self._records_at = starts["records"]
        self._columns_at = [starts[COLUMN + leaf.name] for leaf in layout.columns]
        self._strides = [leaf.field.nbytes for leaf in layout.columns]
        self._itemsize, self._obs_nbytes = layout.itemsize, layout.obs_nbytes
        self.ages_by_stream = self.ages.reshape(shape.streams, shape.rows)
        self._bytes = memoryview(self._map)[self._records_at : self._records_at + self.records.nbytes]
        reward = layout.place("reward")
        self._ring = Ring(
            layout.itemsize,
            shape.slots,
            shape.rows,
            layout.final_offset,
            reward.offset,
            reward.leaf.field.kept,
            reward.leaf.field.shape,
        )
        self._pairs = self._lattice(2 * self._itemsize, (len(self.records) - 1,), (self._itemsize,))
        by_slot = (shape.streams, shape.rows - 1), (shape.rows * self._itemsize, self._itemsize)
        self._pairs_by_stream = self._lattice(2 * self._itemsize, *by_slot)
        self._obs_by_stream = self._lattice(max(self._obs_nbytes, 1), *by_slot)

    @property
    def nbytes(self) -> int:
        """Bytes that the process pays: the whole mapping."""
        return len(self._map)

    def final_row(self, stream: int, number: int) -> int:
        """Give the row of a column that holds a final observation: they follow the rings."""
        return self.shape.streams * self.shape.rows + stream * self.shape.finals + number

    @property
    def shared(self) -> Shared | None:
        """The memory, for a process that is spawned; None where it can be had by forked ones alone."""
        return self._map if isinstance(self._map, Shared) else None

    # -- one step

    def put(self, row: int, record: bytes) -> None:
        """Write a record, and what follows it: the successor's small observation."""
        start = self._records_at + row * self._itemsize
        self._map[start : start + len(record)] = record

    def obs(self, row: int) -> bytes:
        """Read the small observation of a row."""
        start = self._records_at + row * self._itemsize
        return self._map[start : start + self._obs_nbytes]

    def put_frame(self, column: int, row: int, frame: bytes) -> None:
        """Write a big field."""
        start = self._columns_at[column] + row * self._strides[column]
        self._map[start : start + len(frame)] = frame

    def frame(self, column: int, row: int) -> bytes:
        """Read a big field."""
        start = self._columns_at[column] + row * self._strides[column]
        return self._map[start : start + self._strides[column]]

    def put_final(self, stream: int, number: int, obs: bytes) -> None:
        """Write a small final observation."""
        if self._final_obs is not None:
            self._final_obs[stream * self.shape.finals + number] = np.frombuffer(obs, self._final_obs.dtype)[0]

    def mark_final(self, row: int, number: int) -> None:
        """Note in a record that its successor is this final observation."""
        start = self._records_at + row * self._itemsize + self.layout.final_offset
        self._map[start : start + FINAL.itemsize] = FINAL.type(number).tobytes()

    def mirror(self, stream: int) -> None:
        """Make the rows behind a ring's end repeat its first ones, after a write at either place."""
        first = stream * self.shape.rows
        end = first + self.shape.slots
        self.records[end : end + MIRROR] = self.records[first : first + MIRROR]

    def unmirror(self, stream: int) -> None:
        """Bring a successor that was written behind a ring's end to the ring's first row."""
        first = stream * self.shape.rows
        self.records[first] = self.records[first + self.shape.slots]

    # -- many steps

    def put_many(self, rows: NDArray[np.int64], block: NDArray[Any]) -> None:
        """Write pairs of records: each step's, and its successor's with the observation alone."""
        self._pairs[rows] = block

    def put_frames(self, column: int, rows: NDArray[np.int64], frames: NDArray[Any]) -> None:
        """Write big fields; where a row is named twice, the last value counts."""
        self.columns[column][rows] = frames

    def records_at(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Copy whole records, as void items."""
        return self.records.take(rows, mode="clip")

    def put_records(self, rows: NDArray[np.int64], records: NDArray[Any]) -> None:
        """Write whole records; the mirror is the caller's matter."""
        self.records[rows] = records

    def put_finals(self, places: NDArray[np.int64], obs: NDArray[Any]) -> None:
        """Write small final observations."""
        if self._final_obs is not None:
            self._final_obs[places] = obs

    def put_small(self, place: Place, rows: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Write one small field of these rows, and of those that repeat them."""
        field = place.leaf.field
        strides = (self._itemsize, *np.empty(field.shape, field.kept).strides)
        shape = (len(self.records), *field.shape)
        target = np.ndarray(shape, field.kept, self._map, self._records_at + place.offset, strides)
        target[rows] = values
        first = np.flatnonzero(rows % self.shape.rows < MIRROR)
        target[rows[first] + self.shape.slots] = values[first]

    def put_level(self, slot: int, block: NDArray[Any]) -> None:
        """Write pairs of records to the same slot of every stream."""
        self._pairs_by_stream[:, slot] = block

    def waiting_level(self, slot: int) -> bytes:
        """Read the small observations at the same slot of every stream."""
        return self._obs_by_stream[:, slot].tobytes()

    def waiting(self, rows: NDArray[np.int64]) -> bytes:
        """Read the small observations of these rows."""
        return np.ndarray(
            (len(rows),), self._obs_by_stream.dtype, self.records_at(rows), 0, (self._itemsize,)
        ).tobytes()

    def gather(
        self, rows: NDArray[np.int64], spans: NDArray[np.int64], outs: tuple[NDArray[Any], ...], skip: int = 0
    ) -> None:
        """Copy parts of the records of these rows, and of those that follow them; see ``kernels.gather``.

        Offsets count from ``skip`` bytes into a record; less memory is touched than from its start.
        """
        gather(self._bytes[skip:] if skip else self._bytes, self._itemsize, rows, spans, outs)

    def nstep(
        self, rows: NDArray[np.int64], room: NDArray[np.int64], gammas: NDArray[np.float64]
    ) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
        """Sum discounted rewards from these rows on, over at most ``room`` steps; see ``kernels.nstep``."""
        return nstep(self._bytes, self._ring, rows, room, gammas)

    def final_obs(self, places: NDArray[np.int64]) -> NDArray[Any]:
        """Copy small final observations; a place is ``stream * finals + number``."""
        assert self._final_obs is not None
        return self._final_obs.take(places)

    def frames(self, column: int, rows: NDArray[np.int64], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Copy big fields; rows may have any shape."""
        # "clip" skips a second pass over the indices, which always exist, and writes straight to ``out``
        return self.columns[column].take(rows, axis=0, mode="clip", out=out)

    def _lattice(self, nbytes: int, dims: tuple[int, ...], strides: tuple[int, ...]) -> NDArray[Any]:
        """View the records as items of ``nbytes`` bytes, which may overlap."""
        return np.ndarray(dims, np.dtype((np.void, nbytes)), self._map, self._records_at, strides)


def cost(layout: Layout, shape: RingShape) -> list[Cost]:
    """Price rings before they exist, line by line; the sum is ``nbytes`` to the byte."""
    parts = _parts(layout, shape)
    _, size = _offsets(parts)
    lines = []
    held = shape.capacity * shape.streams
    for name, dtype, dims in parts:
        nbytes = _nbytes(dtype, dims)
        if name == "records":
            names = ", ".join(place.leaf.name for place in layout.packed)
            lines.append(Cost("records", held * dtype.itemsize, f"{names}: {dtype.itemsize} B a step"))
            lines.append(Cost("records, spare rows", nbytes - held * dtype.itemsize, "successors and mirror"))
        elif name.startswith(COLUMN):
            item, column = nbytes // dims[0], name.removeprefix(COLUMN)
            lines.append(Cost(column, held * item, f"{item} B a step"))
            lines.append(Cost(f"{column}, spare rows", nbytes - held * item, "successors and final observations"))
        else:
            lines.append(Cost(name, nbytes, NOTES[name]))
    lines.append(Cost("rounding", size - sum(line.nbytes for line in lines), "to cache lines and pages"))
    return lines


NOTES = {
    "marks": "index: head of each stream",
    "final times": "index: when episodes ended",
    "runs": "index: steps of the open episode of each stream",
    "numbers": "index: numbers of the streams, for extend",
    "staging": "one step of each stream, for extend",
    "touched": "index: changes after the fact, for incremental saves",
    "ages": "index: steps since the episode's first",
    "final observations": "one for each ended episode",
}


def _parts(layout: Layout, shape: RingShape) -> list[Part]:
    rows, finals = shape.streams * shape.rows, shape.streams * shape.finals
    parts: list[Part] = [
        ("marks", np.dtype(np.int64), (3, shape.streams)),
        ("final times", np.dtype(np.int64), (shape.streams, shape.finals)),
        ("runs", np.dtype(np.int32), (shape.streams,)),
        ("numbers", np.dtype(np.int64), (3, shape.streams)),
        ("staging", np.dtype((np.void, 2 * layout.itemsize)), (shape.streams,)),
        ("touched", np.dtype(np.uint32), (-(-rows // BLOCK),)),
        ("ages", np.dtype(np.int32), (rows,)),
        ("records", np.dtype((np.void, layout.itemsize)), (rows,)),
    ]
    if layout.obs_nbytes:
        parts.append(("final observations", np.dtype((np.void, layout.obs_nbytes)), (finals,)))
    for leaf in layout.columns:
        count = rows + finals if leaf.role == "obs" else rows
        parts.append((COLUMN + leaf.name, leaf.field.kept, (count, *leaf.field.shape)))
    return parts


def _offsets(parts: list[Part]) -> tuple[list[int], int]:
    offsets, end = [], 0
    for _, dtype, dims in parts:
        offsets.append(end)
        end += -(-_nbytes(dtype, dims) // ALIGN) * ALIGN
    return offsets, -(-end // mmap.PAGESIZE) * mmap.PAGESIZE


def _nbytes(dtype: np.dtype[Any], dims: tuple[int, ...]) -> int:
    nbytes = dtype.itemsize
    for size in dims:
        nbytes *= size
    return nbytes


def _committed(size: int) -> mmap.mmap:
    """Map ``size`` bytes and make the kernel hand over every page now."""
    mapping = Shared(size) if hasattr(os, "memfd_create") else mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without huge pages
            mapping.madvise(mmap.MADV_HUGEPAGE)
    try:
        mapping.madvise(POPULATE_WRITE)
    except (AttributeError, OSError):  # not Linux, or older than 5.14: write to each page
        np.frombuffer(mapping, np.uint8)[:: mmap.PAGESIZE] = 0
    return mapping
