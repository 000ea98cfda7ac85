"""Put saved steps into a new ring, of the same capacity or another, after checking that they make one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import CheckpointError
from ringfence.saving.log import COUNT, FIRST, STREAM, Segment, clipped, none
from ringfence.saving.moment import Moment
from ringfence.saving.ring import Ring
from ringfence.store.base import MIRROR
from ringfence.timeline import Ints
from ringfence.timeline.timeline import TIME_BITS

NOTHING = np.zeros(0, np.int64)
CHUNK = 1 << 16  # steps whose ages are written at once
Array = NDArray[Any]


class Sink:
    """Fill a ring that nobody else uses meanwhile."""

    def __init__(self, ring: Ring, moment: Moment) -> None:
        self._store, self._timeline, self._writer = ring
        self._moment, self._layout = moment, ring.store.layout
        self._where = "newest"
        """The file that is being read, for errors."""
        self._index()

    def _index(self) -> None:
        """Lay out the ends of all episodes as one list."""
        moment = self._moment
        counts = np.array([len(times) for times in moment.finals], np.int64)
        self._firsts, self._starts = moment.ended - counts, counts.cumsum() - counts
        self._ends = np.repeat(np.arange(len(counts)), counts) << TIME_BITS | np.concatenate([*moment.finals, NOTHING])

    def fit(self) -> int:
        """Leave out the oldest steps that this ring has no room for; give how many."""
        moment, shape = self._moment, self._store.shape
        tails = np.maximum(moment.tails, moment.heads - shape.capacity)
        for stream, times in enumerate(moment.finals):
            if len(times) > shape.finals:
                tails[stream] = max(tails[stream], int(times[-shape.finals - 1]) + 1)
        lost = moment.forget(tails)
        self._index()
        return lost

    def check(self, segments: list[Segment]) -> None:
        """Make sure that the segments hold every step, and every final observation, once.

        Raises:
            CheckpointError: They do not.
        """
        moment = self._moment
        for part, lows, ends in (("steps", moment.tails, moment.ends), ("finals", self._firsts, moment.ended)):
            runs = np.concatenate([none(), *(clipped(getattr(one, part), lows) for one in segments)])
            runs = runs[np.lexsort((runs[:, FIRST], runs[:, STREAM]))]
            borders = runs[:, STREAM].searchsorted(np.arange(len(lows) + 1))
            for stream, (begin, end) in enumerate(itertools.pairwise(borders.tolist())):
                mine = runs[begin:end]
                stops = np.append(mine[:, FIRST], ends[stream])
                reached = np.append(lows[stream], mine[:, FIRST] + mine[:, COUNT])
                if not np.array_equal(stops, reached):
                    raise CheckpointError(
                        f"stream {stream}: the {part} from {lows[stream]} to {ends[stream]} are not there once each"
                    )

    def rehearse(self, segment: Segment, records: Iterator[Array]) -> None:
        """Look through the records of a segment, and write nothing.

        Raises:
            CheckpointError: A record says otherwise than the marks where an episode ends.
        """
        for _, which, block in self._held(segment, "records", records):
            self._numbered(*which, block)

    def put(self, segment: Segment, part: str, blocks: Iterator[Array]) -> None:
        """Write one part of a segment.

        Raises:
            CheckpointError: A record says otherwise than the marks where an episode ends.
        """
        self._where = segment.files.get(part, part)
        for name, which, block in self._held(segment, part, blocks):
            self._write(name, which, block)

    def _held(
        self, segment: Segment, part: str, blocks: Iterator[Array]
    ) -> Iterator[tuple[str, tuple[Ints, Ints], Array]]:
        """Give what of each block is held, with its streams and times, or numbers of final observations."""
        finals = part.startswith("finals")
        pieces = segment.finals if finals else segment.steps
        lows = self._firsts if finals else self._moment.tails
        sums, done = pieces[:, COUNT].cumsum(), 0
        for block in blocks:
            at = np.arange(done, done + len(block))
            done += len(block)
            run = sums.searchsorted(at, "right")
            streams = pieces[run, STREAM]
            numbers = pieces[run, FIRST] + at - (sums[run] - pieces[run, COUNT])
            held = numbers >= lows[streams]
            if held.any():
                yield part, (streams[held], numbers[held]), block[held]

    def _write(self, part: str, which: tuple[Ints, Ints], block: Array) -> None:
        store, (streams, numbers) = self._store, which
        name, _, column = part.partition(" ")
        if name == "finals":
            places = streams * store.shape.finals + numbers % store.shape.finals
            if column:
                store.put_frames(int(column), store.final_row(0, 0) + places, block)
            else:
                store.put_finals(places, block.view((np.void, self._layout.obs_nbytes)))
            return
        rows = streams * self._timeline.rows_each + numbers % self._timeline.slots
        if column:
            store.put_frames(int(column), rows, block)
        else:
            store.put_records(rows, self._numbered(streams, numbers, block).view((np.void, self._layout.itemsize)))

    def _numbered(self, streams: Ints, times: Ints, records: Array) -> Array:
        """Give records the number under which this ring keeps their episode's final observation."""
        records = records.copy()
        keys = streams << TIME_BITS | times
        places = self._ends.searchsorted(keys)
        known = self._ends.take(places, mode="clip") == keys if len(self._ends) else np.zeros(len(keys), np.bool_)
        wrong = np.flatnonzero(known != (records["_final"] >= 0))
        if len(wrong):
            raise CheckpointError(
                f"{self._where}: is damaged: records of stream {streams[wrong[0]]} end other episodes than its marks"
            )
        numbers = (self._firsts[streams] + places - self._starts[streams]) % self._store.shape.finals
        records["_final"] = np.where(known, numbers, -1)
        return records

    def finish(self) -> None:
        """Write the newest steps and all that is kept beside the records, and publish the marks last."""
        moment, store = self._moment, self._store
        self._put_newest()
        store.final_times[:] = -1  # no step's time
        for stream in range(store.shape.streams):
            self._put_ages(stream)
            times = moment.finals[stream]
            numbers = int(self._firsts[stream]) + np.arange(len(times))
            store.final_times[stream, numbers % store.shape.finals] = times
            first = stream * self._timeline.rows_each
            store.put_records(
                first + store.shape.slots + np.arange(MIRROR), store.records_at(first + np.arange(MIRROR))
            )
        store.runs[:] = moment.runs
        store.marks[1], store.marks[2], store.marks[0] = moment.tails, moment.ended, moment.heads
        self._writer.breaks, self._writer.early = moment.breaks, moment.early

    def _put_newest(self) -> None:
        """Write the newest record of each stream, and the observation that follows it."""
        moment, store, layout = self._moment, self._store, self._layout
        streams = np.flatnonzero(moment.heads > 0)
        if not len(streams):
            return
        first, slots = streams * self._timeline.rows_each, self._timeline.slots
        times = moment.heads[streams] - 1
        rows, after = first + times % slots, first + (times + 1) % slots
        records = moment.newest["records"][streams]
        held = times >= moment.tails[streams]
        if held.any():
            records[held] = self._numbered(streams[held], times[held], records[held])
        store.put_records(rows, records.view((np.void, layout.itemsize)))
        if layout.obs_nbytes:
            waiting = np.zeros(len(streams), (np.void, layout.itemsize))
            raw = waiting.view(np.uint8).reshape(len(streams), -1)
            raw[:, : layout.obs_nbytes] = moment.newest["successors"][streams].view(np.uint8).reshape(len(streams), -1)
            store.put_records(after, waiting)
        for at, leaf in enumerate(layout.columns):
            store.put_frames(at, rows, moment.newest[f"column {at}"][streams])
            if leaf.role == "obs":
                store.put_frames(at, after, moment.newest[f"successors {at}"][streams])

    def _put_ages(self, stream: int) -> None:
        """Write the age of each step, which the ends of episodes and the oldest step's age determine."""
        moment = self._moment
        tail, head = int(moment.tails[stream]), int(moment.heads[stream])
        for begin in range(tail, head, CHUNK):
            times = np.arange(begin, min(begin + CHUNK, head))
            self._store.ages_by_stream[stream, times % self._timeline.slots] = moment.ages_of(stream, times)
