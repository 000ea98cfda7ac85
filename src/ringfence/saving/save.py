"""Save a ring to a directory, only what changed since the last time, at once or while adds go on."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.checkpoint import Directory, Draft, Entry, Manifest, encode
from ringfence.errors import CheckpointError
from ringfence.saving.body import Body
from ringfence.saving.log import COUNT, FIRST, STREAM, Segment, plan, steps_a_segment
from ringfence.saving.moment import Moment
from ringfence.saving.ring import Ring
from ringfence.saving.source import Source
from ringfence.store.base import BLOCK
from ringfence.timeline import Ints
from ringfence.version import VERSION

log = logging.getLogger("ringfence")
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Saved:
    """What became of a save."""

    path: str
    number: int
    """Of the save in its directory."""
    steps: int
    """Transitions in it."""
    lost: int
    """The oldest transitions that were overwritten by adds before they could be written, and are not in it."""
    nbytes: int
    """Bytes written for it."""
    files: int
    """Files written for it."""
    seconds: float
    """From the call until it was on the disk."""


class Saving:
    """A save that goes on in the background."""

    def __init__(self, work: Callable[[], Saved]) -> None:
        self._work = work
        self._result: Saved | None = None
        self._error: BaseException | None = None
        # no daemon: a program that ends waits for its last save
        self._thread = threading.Thread(target=self._run, name="ringfence save")
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:  # noqa: BLE001, whoever waits is told
            self._error = error
            log.error("a save in the background failed: %s", error)  # noqa: TRY400, perhaps nobody waits

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return not self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> Saved:
        """Wait for the end, and give what became of it.

        Raises:
            CheckpointError: The save failed. The one before it is untouched.
            TimeoutError: It has not ended after so many seconds; it goes on.
        """
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"the save has not ended after {timeout} seconds; it goes on")
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result


@dataclass(slots=True)
class Last:
    """The save that a ring was written to, or read from, last."""

    path: str
    crc32: int
    """Of its manifest: whether it is still the newest there."""
    files: dict[str, Entry]
    segments: list[Segment]
    touched: Array
    """The counts of later changes when its moment was taken."""


class Saver:
    """Save one ring, one save at a time."""

    def __init__(self, ring: Ring) -> None:
        self._store, self._timeline = ring.store, ring.timeline
        self._source = Source(ring)
        self._last: Last | None = None
        self._lock = threading.Lock()
        layout = ring.store.layout
        self._step_bytes = layout.itemsize + sum(leaf.field.nbytes for leaf in layout.columns)

    def remember(self, directory: Directory, found: Manifest, segments: list[Segment]) -> None:
        """Note that the ring was read from a save, so that the next one there writes only what came since."""
        self._last = Last(_same(directory.path), found.crc32, found.files, segments, self._store.touched.copy())

    def forget(self) -> None:
        """Note that the ring is another one now, so that the next save writes all of it."""
        self._last = None

    def touched(self) -> Array:
        """Copy the counts of changes; before the moment, so that one in between is written twice rather than never."""
        return self._store.touched.copy()

    def save(self, directory: Directory, body: Body, touched: Array, *, keep: int, compress: bool) -> Saved:
        """Write the moment of a body, and make it the newest save.

        Raises:
            CheckpointError: The directory or the disk refuses. The saves that were there are untouched.
        """
        begun = time.perf_counter()
        with self._lock, directory.draft(compress=compress) as draft:
            last = self._newest(directory)
            saved = [] if last is None else last.segments
            moment, shape = body.moment, self._store.shape
            changed = np.array([self._changed(last, segment, touched) for segment in saved], np.bool_)
            ranges = moment.tails, moment.ends, moment.firsts, moment.ended
            target = steps_a_segment(shape.capacity * shape.streams, self._step_bytes)
            work = plan(saved, changed, ranges, target)
            lost = sum(self._write(draft, segment, moment) for segment in work.new)
            body.segments = work.kept + work.new
            plain = encode(body.plain(), lambda array: draft.array("state", array.dtype, array.shape, _blocks(array)))
            old = [] if last is None else [last.files[name] for one in work.kept for name in one.files.values()]
            made = draft.commit(plain, old, VERSION, keep)
            self._last = Last(_same(directory.path), made.crc32, made.files, body.segments, touched)
        fresh = [entry for entry in made.files.values() if entry not in old]
        return Saved(
            str(directory.path),
            made.number,
            int((moment.heads - moment.tails).sum()),
            lost,
            sum(entry.nbytes for entry in fresh),
            len(fresh) + 1,
            time.perf_counter() - begun,
        )

    def _newest(self, directory: Directory) -> Last | None:
        """Give the last save, if it is the newest one there and whole: what a new one can build on."""
        last = self._last
        if last is None or last.path != _same(directory.path):
            return None
        try:
            found = directory.read()
        except CheckpointError:
            return None
        return last if found.crc32 == last.crc32 else None

    def _changed(self, last: Last | None, segment: Segment, touched: Array) -> bool:
        """Tell whether steps of a segment were changed since it was written."""
        if last is None or np.array_equal(last.touched, touched):
            return False
        dirty = np.flatnonzero(last.touched != touched)
        return any(self._meets(piece, dirty) for piece in segment.steps)

    def _meets(self, piece: Ints, dirty: Ints) -> bool:
        """Tell whether some steps that follow each other lie in one of these blocks of rows."""
        slots, first = self._timeline.slots, int(piece[STREAM]) * self._timeline.rows_each
        count = min(int(piece[COUNT]), slots)
        low = int(piece[FIRST]) % slots
        runs = [(low, min(low + count, slots)), (0, low + count - slots)]
        return any(
            bool(((dirty >= (first + begin) // BLOCK) & (dirty <= (first + end - 1) // BLOCK)).any())
            for begin, end in runs
            if end > begin
        )

    def _write(self, draft: Draft, segment: Segment, moment: Moment) -> int:
        """Write a segment; give the steps that were overwritten meanwhile."""
        for name, dtype, shape, blocks in self._source.parts(segment):
            segment.files[name] = draft.array(name.replace(" ", "-"), dtype, shape, blocks)
        return moment.forget(self._source.overtaken(segment, moment))


def _blocks(array: Array) -> list[Array]:
    """Give an array as one block that keeps its shape."""
    return [array]


def _same(path: os.PathLike[str]) -> str:
    return os.path.realpath(path)
