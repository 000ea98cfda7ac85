"""A saved ring read where it lies: the files are mapped, and only what batches touch is ever in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.checkpoint import Directory, Manifest
from ringfence.errors import CheckpointError
from ringfence.kernels import Ring, gather, nstep
from ringfence.saving.body import Body
from ringfence.saving.log import COUNT, FIRST, STREAM, Segment, clipped
from ringfence.saving.parts import shapes
from ringfence.schema import Layout
from ringfence.store import RingShape
from ringfence.timeline import Ints
from ringfence.timeline.timeline import TIME_BITS

Array = NDArray[Any]


class Refusing:
    """Stand in for what adds to a ring where nothing may be added."""

    def __init__(self, breaks: int, early: int) -> None:
        self.breaks, self.early, self.lock = breaks, early, threading.RLock()

    def append(self, *_: Any) -> Any:
        """Refuse; TypeError."""
        raise TypeError('this replay was loaded with store="mmap" and cannot be changed; load it with store="ram"')

    follow = cut = drop = clear = truncate = append


class Mapped:
    """Serve a save as a store that is only read. Costs 4 bytes a step; the files' pages are the kernel's to drop.

    A batch is read run by run of the files that it meets, so it takes longer than from memory.
    """

    def __init__(self, layout: Layout, shape: RingShape, body: Body, directory: Directory, found: Manifest) -> None:
        """Map the files of a save.

        Raises:
            CheckpointError: A file is missing, damaged at its head, or compressed.
        """
        self.layout, self.shape, self._moment = layout, shape, body.moment
        moment, streams = body.moment, shape.streams
        self._firsts, self._ends = moment.firsts, moment.ends
        self.marks = np.stack([moment.heads, moment.tails, moment.ended])
        self.runs = moment.runs.astype(np.int32)
        self.ages = np.zeros(streams * shape.rows, np.int32)
        self.ages_by_stream = self.ages.reshape(streams, shape.rows)
        self.final_times = np.full((streams, shape.finals), -1, np.int64)
        self.numbers, self.staging = np.zeros((3, streams), np.int64), np.zeros(0, np.dtype((np.void, 1)))
        self.touched = np.zeros(1, np.uint32)
        for stream, times in enumerate(moment.finals):
            numbers = int(self._firsts[stream]) + np.arange(len(times))
            self.final_times[stream, numbers % shape.finals] = times
            held = np.arange(moment.tails[stream], moment.heads[stream])
            self.ages_by_stream[stream, held % shape.slots] = moment.ages_of(stream, held)
        files = _files(body.segments, layout, directory, found)
        self._steps = _Runs(body.segments, "steps", moment.tails, files)
        self._finals = _Runs(body.segments, "finals", self._firsts, files)
        reward = layout.place("reward")
        self._reward = reward.offset, reward.leaf.field.kept, reward.leaf.field.shape
        self.put_small = self.put_frames = Refusing(0, 0).append

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the process pays, the files' pages not counted."""
        return self.marks.nbytes + self.ages.nbytes + self.final_times.nbytes

    def final_row(self, stream: int, number: int) -> int:
        """Give the row of a column that holds a final observation."""
        return self.shape.streams * self.shape.rows + stream * self.shape.finals + number

    def gather(self, rows: Ints, spans: Ints, outs: tuple[Array, ...], skip: int = 0) -> None:
        """Copy parts of the records of these rows, and of those that follow them."""
        both = self._after(rows, 2)
        item = self.layout.itemsize
        gather(both.reshape(-1).view(np.uint8).data[skip:], item, np.arange(0, 2 * len(rows), 2), spans, outs)

    def nstep(self, rows: Ints, room: Ints, gammas: NDArray[np.float64]) -> tuple[Array, Ints, Ints]:
        """Sum discounted rewards from these rows on."""
        n, count = len(gammas), len(rows)
        block = self._after(rows, n)
        ring = Ring(self.layout.itemsize, n * count, n * count, self.layout.final_offset, *self._reward)
        returns, steps, _ = nstep(block.reshape(-1).view(np.uint8).data, ring, np.arange(count) * n, room, gammas)
        first = rows - rows % self.shape.rows
        return returns, steps, first + (rows - first + steps - 1) % self.shape.slots

    def final_obs(self, places: Ints) -> Array:
        """Copy small final observations."""
        streams, numbers = np.divmod(places, self.shape.finals)
        item = np.dtype((np.void, self.layout.obs_nbytes))
        found = np.empty(len(places), item)
        newest = self._moment.ended[streams] - 1
        self._finals.read("finals", streams, newest - (newest - numbers) % self.shape.finals, found)
        return found

    def frames(self, column: int, rows: Ints, out: Array | None = None) -> Array:
        """Copy big fields; rows may have any shape."""
        field = self.layout.columns[column].field
        found = np.empty((*rows.shape, *field.shape), field.kept) if out is None else out
        flat, into = rows.reshape(-1), found.reshape(rows.size, *field.shape)
        finals = np.flatnonzero(flat >= self.final_row(0, 0))
        steps = np.flatnonzero(flat < self.final_row(0, 0))
        if len(finals):
            streams, numbers = np.divmod(flat[finals] - self.final_row(0, 0), self.shape.finals)
            newest = self._moment.ended[streams] - 1
            part = np.empty((len(finals), *field.shape), field.kept)
            self._finals.read(f"finals {column}", streams, newest - (newest - numbers) % self.shape.finals, part)
            into[finals] = part
        if len(steps):
            streams, times = self._named(flat[steps])
            part = np.empty((len(steps), *field.shape), field.kept)
            self._read(f"column {column}", f"successors {column}", streams, times, part)
            into[steps] = part
        return found

    def records_at(self, rows: Ints) -> Array:
        """Copy whole records, as void items; of a final observation the number is this ring's."""
        streams, times = self._named(rows)
        found = np.empty(len(rows), self.layout.record)
        self._read("records", "", streams, times, found)
        for at in np.flatnonzero((found["_final"] >= 0) & (times < self._moment.heads[streams])):
            stream = int(streams[at])
            place = int(self._moment.finals[stream].searchsorted(times[at]))
            found["_final"][at] = (int(self._firsts[stream]) + place) % self.shape.finals
        return found.view((np.void, self.layout.itemsize))

    def waiting(self, rows: Ints) -> bytes:
        """Read the small observations of these rows."""
        records = self.records_at(rows)
        shape = (len(rows),), np.dtype((np.void, max(self.layout.obs_nbytes, 1)))
        return np.ndarray(*shape, records, 0, (self.layout.itemsize,)).tobytes()

    def _after(self, rows: Ints, count: int) -> Array:
        """Copy each row's record and those that follow it, row by row."""
        first = rows - rows % self.shape.rows
        every = first[:, None] + (rows - first)[:, None] + np.arange(count)
        every = first[:, None] + (every - first[:, None]) % self.shape.slots
        return self.records_at(every.reshape(-1))

    def _named(self, rows: Ints) -> tuple[Ints, Ints]:
        """Give stream and time of rows; what is no step of a save is shown as the newest, or what follows it."""
        streams, places = np.divmod(rows, self.shape.rows)
        tails = self._moment.tails[streams]
        return streams, tails + (places - tails) % self.shape.slots

    def _read(self, part: str, after: str, streams: Ints, times: Ints, out: Array) -> None:
        """Copy steps from the files, and the newest ones and their successors from the manifest."""
        ends, newest = self._ends[streams], self._moment.newest
        older = np.flatnonzero(times < ends)
        if len(older):
            some = np.empty((len(older), *out.shape[1:]), out.dtype)
            self._steps.read(part, streams[older], times[older], some)
            out[older] = some
        last = np.flatnonzero(times == self._moment.heads[streams] - 1)
        out[last] = newest[part][streams[last]]
        beyond = np.flatnonzero(times >= self._moment.heads[streams])
        if part == "records":
            out[beyond] = np.zeros((), out.dtype)
            if self.layout.obs_nbytes:
                raw = out.view(np.uint8).reshape(len(out), -1)
                successors = newest["successors"].view(np.uint8).reshape(self.shape.streams, -1)
                raw[beyond, : self.layout.obs_nbytes] = successors[streams[beyond]]
        else:
            out[beyond] = newest.get(after, newest[part])[streams[beyond]]


class _Runs:
    """Find steps, or final observations, among the runs of a save's files."""

    def __init__(self, segments: list[Segment], kind: str, lows: Ints, files: Callable[[int, str], Array]) -> None:
        rows = []
        for number, segment in enumerate(segments):
            pieces = getattr(segment, kind)
            starts = pieces[:, COUNT].cumsum() - pieces[:, COUNT]
            for piece, start in zip(pieces, starts.tolist(), strict=True):
                if len(clipped(piece[None], lows)):
                    rows.append((int(piece[STREAM]) << TIME_BITS | int(piece[FIRST]), number, start))
        rows.sort()
        self._keys = np.array([row[0] for row in rows], np.int64)
        self._where = np.array([row[1:] for row in rows], np.int64).reshape(-1, 2)
        self._files = files

    def read(self, part: str, streams: Ints, numbers: Ints, out: Array) -> None:
        """Copy one part of some of them."""
        keys = streams << TIME_BITS | numbers
        runs = self._keys.searchsorted(keys, "right") - 1
        segments, starts = self._where[runs].T
        places = keys - self._keys[runs] + starts
        for segment in np.unique(segments):
            mine = segments == segment
            out[mine] = self._files(int(segment), part)[places[mine]].view(out.dtype)


def _files(
    segments: list[Segment], layout: Layout, directory: Directory, found: Manifest
) -> Callable[[int, str], Array]:
    """Map every file, and give a function that finds one."""
    maps: dict[tuple[int, str], Array] = {}
    for number, segment in enumerate(segments):
        for part, dtype, shape in shapes(segment, layout):
            entry = found.files[segment.files[part]]
            if entry.compressed:
                raise CheckpointError(f'{entry.name}: is compressed and cannot be mapped; load with store="ram"')
            maps[number, part] = directory.mapped(entry, dtype, shape)
    return lambda number, part: maps[number, part]
