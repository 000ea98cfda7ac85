"""Where bytes live: the shape of the rings, and what every store does.

A *row* is the physical place of one step of one stream: ``stream * rows_per_stream + time % slots``. A store knows rows
and bytes; which step a row holds, and whether it still counts, is the timeline's matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ringfence.schema import Layout
from ringfence.schema.layout import Place

MIRROR = (
    8  # rows at each ring's end that repeat its first ones, so that a step and what follows it are one run of bytes
)
BLOCK = 1024  # rows whose later changes are counted together, for whoever saves only what changed
SPARE = 2  # slots beyond the capacity: the newest step's successor, and the one that an add in progress is writing


@dataclass(frozen=True, slots=True)
class RingShape:
    """How many steps of how many streams, and the rows that this takes."""

    streams: int
    capacity: int
    """Transitions a stream."""
    finals: int
    """Final observations a stream: how many ended episodes it can hold."""

    @classmethod
    def of(cls, capacity: int, streams: int, episode_length: int) -> RingShape:
        """Share ``capacity`` transitions evenly among streams, rounded down.

        Final observations are kept for episodes of ``episode_length`` steps on average; small rings have room for
        one-step episodes. One more lets an add in progress write while a reader reads.
        """
        share = capacity // streams
        finals = min(share, max(64, -(-share // episode_length))) + 1
        return cls(streams, share, finals)

    @property
    def slots(self) -> int:
        """Places in one stream's ring."""
        return max(self.capacity + SPARE, MIRROR)

    @property
    def rows(self) -> int:
        """Rows of one stream, the mirror included."""
        return self.slots + MIRROR


@dataclass(frozen=True, slots=True)
class Cost:
    """One line of what memory is spent on."""

    name: str
    nbytes: int
    note: str = ""


Ints = NDArray[np.int64]
Array = NDArray[Any]


class Store(Protocol):
    """Keep rows of steps. One writer; any number of readers at the same time, in this process or in forked ones.

    Nothing is checked here and nothing is refused: callers pass rows that exist and bytes of the right length. A place
    of a final observation is ``stream * finals + number``.
    """

    layout: Layout
    shape: RingShape
    marks: Array
    """(3, streams) int64: head, floor and number of final observations of each stream; see ``timeline``."""
    ages: Array
    """(streams * rows,) int32: steps since the episode's first."""
    ages_by_stream: Array
    """The same, (streams, rows)."""
    final_times: Array
    """(streams, finals) int64: the time of the last step of each ended episode."""
    runs: Array
    """(streams,) int32: steps so far of the episode that each stream is in."""
    numbers: Array
    """(3, streams) int64, for the writer of many streams."""
    staging: Array
    """(streams,) pairs of records, likewise."""

    touched: Array
    """(ceil(rows / BLOCK),) uint32: how often steps of each so many rows were changed after they were added."""

    @property
    def nbytes(self) -> int:
        """Bytes that the process pays."""
        ...

    # -- one step

    def put(self, row: int, record: bytes) -> None:
        """Write a record, and what follows it: the successor's small observation."""
        ...

    def obs(self, row: int) -> bytes:
        """Read the small observation of a row."""
        ...

    def put_frame(self, column: int, row: int, frame: bytes) -> None:
        """Write a big field."""
        ...

    def frame(self, column: int, row: int) -> bytes:
        """Read a big field."""
        ...

    def put_final(self, stream: int, number: int, obs: bytes) -> None:
        """Write a small final observation; big ones go to the column's row :meth:`final_row`."""
        ...

    def final_row(self, stream: int, number: int) -> int:
        """Give the row of a column that holds a final observation; those of all places follow each other."""
        ...

    def mark_final(self, row: int, number: int) -> None:
        """Note in a record that its successor is this final observation."""
        ...

    def mirror(self, stream: int) -> None:
        """Make the rows behind a ring's end repeat its first ones."""
        ...

    def unmirror(self, stream: int) -> None:
        """Bring a successor that was written behind a ring's end to the ring's first row."""
        ...

    # -- many steps

    def put_many(self, rows: Ints, block: Array) -> None:
        """Write pairs of records: each step's, and its successor's with the observation alone."""
        ...

    def put_level(self, slot: int, block: Array) -> None:
        """Write pairs of records to the same slot of every stream."""
        ...

    def put_frames(self, column: int, rows: Ints, frames: Array) -> None:
        """Write big fields; where a row is named twice, the last value counts."""
        ...

    def put_small(self, place: Place, rows: Ints, values: Array) -> None:
        """Write one small field of these rows."""
        ...

    def records_at(self, rows: Ints) -> Array:
        """Copy whole records, as void items."""
        ...

    def put_records(self, rows: Ints, records: Array) -> None:
        """Write whole records; the mirror is the caller's matter."""
        ...

    def put_finals(self, places: Ints, obs: Array) -> None:
        """Write small final observations."""
        ...

    def waiting(self, rows: Ints) -> bytes:
        """Read the small observations of these rows."""
        ...

    def waiting_level(self, slot: int) -> bytes:
        """Read the small observations at the same slot of every stream."""
        ...

    def gather(self, rows: Ints, spans: Ints, outs: tuple[Array, ...], skip: int = 0) -> None:
        """Copy parts of the records of these rows, and of those that follow them, ``skip`` bytes into each."""
        ...

    def nstep(self, rows: Ints, room: Ints, gammas: NDArray[np.float64]) -> tuple[Array, Ints, Ints]:
        """Sum discounted rewards from these rows on; give returns, steps used, and the rows of the last of them."""
        ...

    def final_obs(self, places: Ints) -> Array:
        """Copy small final observations."""
        ...

    def frames(self, column: int, rows: Ints, out: Array | None = None) -> Array:
        """Copy big fields, to ``out`` where it is given; rows may have any shape."""
        ...
