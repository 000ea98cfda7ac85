"""Read what a save writes out of a ring, a block at a time, and tell what was overwritten meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.saving.log import COUNT, FIRST, STREAM, Segment
from ringfence.saving.moment import Moment
from ringfence.saving.parts import shapes
from ringfence.saving.ring import Ring
from ringfence.store import Store
from ringfence.timeline import Ints

BLOCK_BYTES = 1 << 20  # read at once: all the memory that a save takes
Array = NDArray[Any]
Blocks = Iterator[Array]


class Source:
    """Give what the files of a segment shall hold."""

    def __init__(self, ring: Ring) -> None:
        self._store, self._timeline, self._layout = ring.store, ring.timeline, ring.store.layout

    def parts(self, segment: Segment) -> Iterator[tuple[str, np.dtype[Any], tuple[int, ...], Blocks]]:
        """Give name, dtype, shape and blocks of each part that has anything in it."""
        for part, dtype, shape in shapes(segment, self._layout):
            yield part, dtype, shape, self._part(segment, part, dtype)

    def _part(self, segment: Segment, part: str, dtype: np.dtype[Any]) -> Blocks:
        store, (name, _, column) = self._store, part.partition(" ")
        if column:
            rows = self._final_rows if name == "finals" else self._rows
            nbytes = self._layout.columns[int(column)].field.nbytes
            read = _frames(store, int(column))
        else:
            rows, nbytes = (self._places if name == "finals" else self._rows), dtype.itemsize
            read = store.final_obs if name == "finals" else store.records_at
        pieces = segment.finals if name == "finals" else segment.steps
        return (block if column else block.view(dtype) for block in self._blocks(pieces, nbytes, rows, read))

    def overtaken(self, segment: Segment, moment: Moment) -> Ints:
        """Give, by stream, the oldest step whose bytes in a segment just read are surely those it was added with."""
        now = np.minimum(self._timeline.look().tails, moment.heads)
        tails = moment.tails.copy()
        torn = (segment.steps[:, FIRST] < now[segment.steps[:, STREAM]]) & (
            segment.steps[:, FIRST] + segment.steps[:, COUNT] > tails[segment.steps[:, STREAM]]
        )
        streams = segment.steps[torn, STREAM]
        ends = (segment.steps[torn, FIRST] + segment.steps[torn, COUNT]).clip(max=now[streams])
        np.maximum.at(tails, streams, ends)
        for stream in segment.finals[:, STREAM]:
            times = moment.finals[stream]
            if len(times) and int(times[0]) < now[stream]:
                tails[stream] = max(tails[stream], int(now[stream]))
        return tails

    def _rows(self, streams: int, numbers: Ints) -> Ints:
        return streams * self._timeline.rows_each + numbers % self._timeline.slots

    def _places(self, stream: int, numbers: Ints) -> Ints:
        finals = self._store.shape.finals
        return stream * finals + numbers % finals

    def _final_rows(self, stream: int, numbers: Ints) -> Ints:
        return self._store.final_row(0, 0) + self._places(stream, numbers)

    @staticmethod
    def _blocks(pieces: Ints, nbytes: int, rows: Callable[[int, Ints], Ints], read: Callable[[Ints], Array]) -> Blocks:
        """Read run by run, at most so many bytes at once."""
        most = max(1, BLOCK_BYTES // max(nbytes, 1))
        waiting: list[Ints] = []
        room = most
        for stream, first, count in pieces.tolist():
            done = 0
            while done < count:
                some = min(room, count - done)
                waiting.append(rows(stream, np.arange(first + done, first + done + some)))
                done, room = done + some, room - some
                if not room:
                    yield read(np.concatenate(waiting))
                    waiting, room = [], most
        if waiting:
            yield read(np.concatenate(waiting))


def _frames(store: Store, column: int) -> Callable[[Ints], Array]:
    return lambda rows: store.frames(column, rows)
