"""One ring, its generator and its views: saved together, and brought back together."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, Literal, NamedTuple

import numpy as np

from ringfence.checkpoint import Directory, Manifest, encode
from ringfence.errors import CheckpointError
from ringfence.saving.body import Body, Shape, same_schema
from ringfence.saving.generator import generator_of, state_of
from ringfence.saving.load import fill, read_body
from ringfence.saving.mapped import Mapped, Refusing
from ringfence.saving.moment import take
from ringfence.saving.ring import Ring
from ringfence.saving.save import Saved, Saver, Saving
from ringfence.saving.sink import Sink
from ringfence.saving.state import fill_from, read_state, to_state
from ringfence.saving.views import Views
from ringfence.schema import Layout, Schema
from ringfence.store import RingShape
from ringfence.timeline import Timeline

Ending = Literal["continue", "truncate"]


class Opened(NamedTuple):
    """A save whose manifest was read and found sound."""

    directory: Directory
    found: Manifest
    body: Body

    @classmethod
    def at(cls, path: str | PathLike[str], save: int | None, schema: Schema | None) -> Opened:
        """Read a save, all but its steps.

        Raises:
            CheckpointError: It is missing, damaged, or of another schema.
        """
        directory = Directory(path)
        found = directory.read(save)
        body = read_body(directory, found)
        if schema is not None:
            same_schema(body.schema, schema)
        return cls(directory, found, body)

    def generator(self) -> np.random.Generator:
        """Give the replay's generator; it has made no children yet."""
        return generator_of(self.body.draws.get("generator"))

    def mapped(self, shape: RingShape) -> tuple[Ring, Any]:
        """Give a ring that reads the files where they lie, and what refuses to add to it."""
        body = self.body
        store: Any = Mapped(Layout.of(body.schema), shape, body, self.directory, self.found)
        refusing: Any = Refusing(body.moment.breaks, body.moment.early)
        return Ring(store, Timeline(store), refusing), refusing


class Keeper:
    """Save a ring, and fill it from a save."""

    def __init__(self, ring: Ring, shape: Shape, generator: np.random.Generator) -> None:
        self._ring, self._shape, self._generator = ring, shape, generator
        self._saver, self.views = Saver(ring), Views()
        self.notes: Any = None

    def save(
        self, path: str | PathLike[str], *, background: bool, keep: int, compress: bool, notes: Any
    ) -> Saved | Saving:
        """Save the ring as it is now; see :meth:`ringfence.Replay.save`."""
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise ValueError(f"keep: expected a number of saves of at least 1, got {keep!r}")
        encode({"notes": notes}, lambda _: "")  # refused now rather than in a thread
        directory, touched, body = Directory(path), self._saver.touched(), self._body(notes)

        def work() -> Saved:
            return self._saver.save(directory, body, touched, keep=keep, compress=compress)

        return Saving(work) if background else work()

    def serve(self, opened: Opened) -> None:
        """Go on where the save was made whose files the ring reads."""
        Sink(self._ring, opened.body.moment).check(opened.body.segments)
        self._take_up(opened.body)

    def fill(self, opened: Opened, ending: Ending) -> None:
        """Fill the ring, which is new, from a save."""
        dropped = fill(opened.body, opened.directory, opened.found, self._ring)
        self._take_up(opened.body)
        if not dropped:
            self._saver.remember(opened.directory, opened.found, opened.body.segments)
        if ending == "truncate":
            for stream in range(self._shape.streams):
                self._ring.writer.truncate(stream)

    def state(self) -> dict[str, Any]:
        """Copy everything; see :meth:`ringfence.Replay.state_dict`."""
        return to_state(self._ring, self._body(self.notes))

    def load_state(self, schema: Schema, state: Mapping[str, Any]) -> None:
        """Take back what :meth:`state` gave; see :meth:`ringfence.Replay.load_state_dict`."""
        body = read_state(state)
        same_schema(body.schema, schema)
        mine, theirs = self._shape, body.shape
        if (mine.capacity, mine.streams) != (theirs.capacity, theirs.streams):
            raise CheckpointError(
                f"state: is of {theirs.capacity} transitions in {theirs.streams} stream(s), and this replay has room "
                f"for {mine.capacity} in {mine.streams}; make one of that size, or use Replay.load"
            )
        generator_of(body.draws.get("generator"))
        fill_from(state, body, self._ring)
        self._saver.forget()
        self._take_up(body)

    def _take_up(self, body: Body) -> None:
        """Go on where a save was made."""
        saved = generator_of(body.draws.get("generator"))
        self._generator.bit_generator.state = saved.bit_generator.state
        self.notes = body.notes
        self.views.load(body.draws.get("views"))

    def _body(self, notes: Any) -> Body:
        """Give all that a save holds beside the steps, as of this moment."""
        draws = {"generator": state_of(self._generator), "views": self.views.states()}
        moment = take(self._ring)
        return Body(self._ring.store.layout.schema, self._shape, moment, [], draws, notes)
