"""What a manifest says of a ring, and the checks that make it worth believing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ringfence.errors import CheckpointError, ForeignCheckpoint, SchemaError
from ringfence.saving.log import Segment
from ringfence.saving.moment import Moment, check_newest
from ringfence.schema import Layout, Leaf, Schema
from ringfence.schema.described import describe, described
from ringfence.timeline import Ints

KIND = "replay"
FAR = 1 << 44  # steps of a stream; what an id has room for
MOST_STREAMS = 1 << 19


class Shape(NamedTuple):
    """What a ring was made with."""

    capacity: int
    """Transitions in all."""
    streams: int
    episode_length: int


@dataclass(slots=True)
class Body:
    """All that a save says, beside the steps themselves."""

    schema: Schema
    shape: Shape
    moment: Moment
    segments: list[Segment]
    draws: dict[str, Any]
    """The replay's generator, and the states of its views."""
    notes: Any

    def plain(self) -> dict[str, Any]:
        """Give it as plain data, with arrays in it."""
        return {
            "kind": KIND,
            "schema": describe(self.schema),
            **self.shape._asdict(),
            **self.moment.plain(),
            "segments": [segment.plain() for segment in self.segments],
            "draws": self.draws,
            "notes": self.notes,
        }

    @classmethod
    def of(cls, plain: Any) -> Body:
        """Read it.

        Raises:
            CheckpointError: A part is missing, or is not what it should be. The text names it.
        """
        content = Content(plain)
        content.is_kind(KIND)
        try:
            schema = described(content["schema"])
        except SchemaError as error:
            raise CheckpointError(f"schema: {error}") from error
        streams = content.number("streams", 1, MOST_STREAMS)
        shape = Shape(
            content.number("capacity", streams, 1 << 62), streams, content.number("episode_length", 1, 1 << 62)
        )
        moment = _moment(content, schema, streams)
        segments = content["segments"]
        if not isinstance(segments, list):
            raise CheckpointError(f"segments: expected a list, got {type(segments).__name__}")
        return cls(
            schema,
            shape,
            moment,
            [_segment(Content(one), streams) for one in segments],
            _dict("draws", content["draws"]),
            content["notes"],
        )


class Content:
    """Plain data of unknown origin, read with checks."""

    def __init__(self, plain: Any) -> None:
        self._plain = _dict("content", plain)

    def is_kind(self, kind: str) -> None:
        """Refuse what was saved by something else."""
        found = self._plain.get("kind")
        if found != kind:
            raise CheckpointError(f"kind: expected {kind!r}, got {found!r}: something else was saved here")

    def __getitem__(self, name: str) -> Any:
        """Give a part; CheckpointError if it is missing."""
        if name not in self._plain:
            raise CheckpointError(f"{name}: is missing")
        return self._plain[name]

    def number(self, name: str, low: int, high: int) -> int:
        """Give a whole number within bounds."""
        value = self[name]
        if value.__class__ is not int or not low <= value <= high:
            raise CheckpointError(f"{name}: expected a whole number from {low} to {high}, got {value!r}")
        return int(value)

    def ints(self, name: str, shape: tuple[int | None, ...], low: int = 0, high: int = FAR) -> Ints:
        """Give an array of whole numbers within bounds; None in the shape is any size."""
        value = self[name]
        fits = isinstance(value, np.ndarray) and value.dtype == np.int64 and value.ndim == len(shape)
        if not fits or any(size not in (None, found) for size, found in zip(shape, value.shape, strict=True)):
            raise CheckpointError(f"{name}: expected an int64 array of shape {shape}")
        if value.size and (value.min() < low or value.max() > high):
            raise CheckpointError(f"{name}: expected numbers from {low} to {high}")
        return value.copy()


def _dict(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise CheckpointError(f"{name}: expected names and values, got {type(value).__name__}")
    return value


def _moment(content: Content, schema: Schema, streams: int) -> Moment:
    each = (streams,)
    heads, tails = content.ints("heads", each), content.ints("tails", each)
    ended, ages = content.ints("ended", each), content.ints("ages", each, high=2**31)
    runs, counts = content.ints("runs", each, high=2**31), content.ints("final_counts", each)
    times = content.ints("final_times", (int(counts.sum()),))
    finals = np.split(times, counts.cumsum()[:-1])
    newest = check_newest(content["newest"], Layout.of(schema), streams)
    moment = Moment(
        heads,
        tails,
        ended,
        ages,
        runs,
        finals,
        newest,
        content.number("breaks", 0, 1 << 62),
        content.number("early", 0, 1 << 62),
    )
    if (ages > tails).any():
        raise CheckpointError(f"ages: expected no step older than its stream, got {ages.tolist()}")
    if (tails > heads).any() or (counts > ended).any():
        raise CheckpointError("tails: expected them not to be beyond heads, nor more final observations than ended")
    for stream, ends in enumerate(finals):
        _check_ends(moment, stream, ends)
    return moment


def _check_ends(moment: Moment, stream: int, ends: Ints) -> None:
    """Refuse ends of episodes that are out of order or outside of what is held, and an open episode that is not."""
    tail, head = int(moment.tails[stream]), int(moment.heads[stream])
    if len(ends) and (ends[0] < tail or ends[-1] >= head or (np.diff(ends) <= 0).any()):
        raise CheckpointError(f"final_times: stream {stream}: expected rising times from {tail} to {head - 1}")
    if tail == head:
        return
    over = len(ends) > 0 and int(ends[-1]) == head - 1
    first = int(ends[-1]) + 1 if len(ends) else tail - int(moment.ages[stream])
    run = 0 if over else head - first
    if moment.runs[stream] != run:
        raise CheckpointError(f"runs: stream {stream}: expected {run} by its final times, got {moment.runs[stream]}")


def _segment(content: Content, streams: int) -> Segment:
    pieces = []
    for part in ("steps", "finals"):
        found = content.ints(part, (None, 3))
        if len(found) and found[:, 0].max() >= streams:
            raise CheckpointError(f"{part}: expected streams up to {streams - 1}, got {found[:, 0].max()}")
        if len(found) and found[:, 2].min() < 1:
            raise CheckpointError(f"{part}: a run without steps")
        pieces.append(found)
    files = _dict("files", content["files"])
    if not all(isinstance(name, str) for name in (*files, *files.values())):
        raise CheckpointError("files: expected names")
    return Segment(pieces[0], pieces[1], dict(files))


def same_schema(saved: Schema, expected: Schema) -> None:
    """Refuse a save whose steps are others than expected.

    Raises:
        ForeignCheckpoint: They are; the text names the field.
    """
    mine, theirs = ({leaf.name: leaf for leaf in schema.leaves()} for schema in (expected, saved))
    for name in (*mine, *theirs):
        if mine.get(name) != theirs.get(name):
            raise ForeignCheckpoint(
                f"{name}: expected {_field(mine.get(name))}, the save has {_field(theirs.get(name))}"
            )
    if describe(saved) != describe(expected):
        raise ForeignCheckpoint(f"schema: expected {expected}, the save has {saved}")


def _field(leaf: Leaf | None) -> str:
    return "no such field" if leaf is None else str(leaf.field)
