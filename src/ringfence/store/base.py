"""Where bytes live: the shape of the rings, and what every store does.

A *row* is the physical place of one step of one stream: ``stream * rows_per_stream + time % slots``. A store knows rows
and bytes; which step a row holds, and whether it still counts, is the timeline's matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from ringfence.schema import Layout

MIRROR = (
    8  # rows at each ring's end that repeat its first ones, so that a step and what follows it are one run of bytes
)
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


class Store(Protocol):
    """Keep rows of steps. One writer; any number of readers at the same time, in this process or in forked ones.

    Nothing is checked here and nothing is refused: callers pass rows that exist and bytes of the right length.
    """

    layout: Layout
    shape: RingShape
    marks: NDArray[Any]
    """(3, streams) int64: head, floor and number of final observations of each stream; see ``timeline``."""
    ages: NDArray[Any]
    """(streams * rows,) int32: steps since the episode's first."""
    final_times: NDArray[Any]
    """(streams, finals) int64: the time of the last step of each ended episode."""
    runs: NDArray[Any]
    """(streams,) int32: steps so far of the episode that each stream is in."""
    numbers: NDArray[Any]
    """(3, streams) int64, for the writer of many streams."""
    staging: NDArray[Any]
    """(streams,) pairs of records, likewise."""

    @property
    def nbytes(self) -> int:
        """Bytes that the process pays."""
        ...

    def put(self, row: int, record: bytes) -> None:
        """Write a record, and what follows it: the successor's small observation."""
        ...

    def obs(self, row: int) -> bytes:
        """Read the small observation of a row."""
        ...

    def gather(self, rows: NDArray[Any], spans: NDArray[Any], outs: tuple[NDArray[Any], ...], skip: int = 0) -> None:
        """Copy parts of the records of these rows, and of those that follow them, ``skip`` bytes into each."""
        ...

    def frames(self, column: int, rows: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Copy big fields, to ``out`` where it is given; rows may have any shape."""
        ...
