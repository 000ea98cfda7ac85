"""How a stream grows: the one place that changes what is held.

One writer a stream. The order of writes is what readers rely on: floor, then bytes, then head.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from ringfence.schema.check import Step
from ringfence.schema.layout import FINAL, INSIDE
from ringfence.store import Store
from ringfence.store.base import MIRROR
from ringfence.timeline.timeline import TIME_BITS, Ints

LONGEST = 2**31 - 2  # steps; a longer episode is cut, since ages are int32


class Writer:
    """Append steps to streams. What it remembers of them lies in the store."""

    def __init__(self, store: Store) -> None:
        shape = store.shape
        self._store, self._shape = store, shape
        self._slots, self._rows = shape.slots, shape.rows
        self._heads = store.marks[0].data
        self._ages = store.ages.data
        self._open = store.runs  # steps of the episode that each stream is in
        self._runs = self._open.data
        self._obs_columns = [at for at, leaf in enumerate(store.layout.columns) if leaf.role == "obs"]
        self._other_columns = [at for at, leaf in enumerate(store.layout.columns) if leaf.role != "obs"]
        self.lock = threading.RLock()
        """Held while streams are extended, and for the two counts; streams that are added to one by one need none."""
        self.breaks = 0
        """Episodes cut without an end flag, most often because an observation did not continue the step before."""
        self.early = 0
        """Steps dropped before their turn, because more episodes ended than finals are kept."""

    def append(self, stream: int, step: Step) -> int:
        """Add a checked step; give its id."""
        obs, body, successor, frames, successor_frames, others, ended = step
        store, heads = self._store, self._heads
        time = heads[stream]
        slot = time % self._slots
        row = stream * self._rows + slot
        run = self._runs[stream]
        if run and (store.obs(row) != obs or (frames and self._differs(row, frames)) or run >= LONGEST):
            self.seal(stream, time, row)
            run = 0
        if frames or others:
            self._put_frames(row, frames if not run else (), others)
        if ended:
            number = self.close(stream, time, successor, successor_frames)
            store.put(row, obs + body + FINAL.type(number).tobytes())
        else:
            store.put(row, obs + body + INSIDE + successor)
            if successor_frames:
                self._put_frames(row + 1 if slot + 1 < self._slots else stream * self._rows, successor_frames, ())
            self._runs[stream] = run + 1
        if slot < MIRROR or slot + 1 == self._slots:
            self.mirror(stream, slot)
        self._ages[row] = run
        heads[stream] = time + 1
        return stream << TIME_BITS | time

    def follow(self, stream: int, step: Step) -> int:
        """Add a checked step that continues the open episode, whatever successor waits there; give its id."""
        if self._runs[stream]:
            slot = self._heads[stream] % self._slots
            row = stream * self._rows + slot
            self._store.put(row, step[0])
            self._put_frames(row, step[3], ())
        return self.append(stream, step)

    def drop(self, stream: int, time: int) -> None:
        """Drop the steps before ``time``."""
        marks = self._store.marks
        marks[1, stream] = max(time, int(marks[1, stream]))

    def runs(self, streams: Ints | None) -> NDArray[np.int32]:
        """Give a copy of the steps so far of the episode that each stream is in."""
        return self._open.copy() if streams is None else self._open[streams]

    def advance(self, streams: Ints | None, runs: NDArray[np.int32], heads: Ints) -> None:
        """Publish one more step of each stream, after its bytes are written."""
        if streams is None:
            self._open[:] = runs
            self._store.marks[0] = heads
        else:
            self._open[streams] = runs
            self._store.marks[0, streams] = heads

    def cut(self, stream: int) -> None:
        """End the open episode of a stream at its newest step, if there is one."""
        if self._runs[stream]:
            time = self._heads[stream]
            self.seal(stream, time, stream * self._rows + time % self._slots)
            self._runs[stream] = 0

    def truncate(self, stream: int) -> None:
        """End the open episode of a stream as truncated, if there is one."""
        if self._runs[stream]:
            place = self._store.layout.place("truncated")
            row = stream * self._rows + (self._heads[stream] - 1) % self._slots
            self._store.put_small(place, np.array([row]), np.array([True]))
            self.cut(stream)
            with self.lock:
                self.breaks -= 1  # it has a flag now

    def clear(self) -> None:
        """Drop every step; time goes on, so that old ids stay stale."""
        self._store.marks[1] = self._store.marks[0]
        self._open[:] = 0

    # -- episode ends

    def close(self, stream: int, time: int, obs: bytes, frames: tuple[bytes, ...]) -> int:
        """Keep the final observation of the episode that ends with the step of this add; give its number.

        The step is not held yet, so nobody reads its record before the head is published.
        """
        number = self._keep(stream, time, obs, frames)
        self._store.marks[2, stream] += 1
        return number

    def _keep(self, stream: int, time: int, obs: bytes, frames: tuple[bytes, ...]) -> int:
        """Write a final observation of the episode whose last step is at ``time``; give its number."""
        store, finals = self._store, self._shape.finals
        ended = int(store.marks[2, stream])
        number = ended % finals
        if ended >= finals:
            self._drop_until(stream, int(store.final_times[stream, number]) + 1)
        store.final_times[stream, number] = time
        store.put_final(stream, number, obs)
        for column, frame in zip(self._obs_columns, frames, strict=True):
            store.put_frame(column, store.final_row(stream, number), frame)
        self._runs[stream] = 0
        return number

    def _drop_until(self, stream: int, time: int) -> None:
        """Drop steps before ``time``: their episode's final observation is about to go."""
        marks = self._store.marks
        oldest = int(marks[0, stream]) - self._shape.capacity
        tail = max(oldest, int(marks[1, stream]))
        if time > tail:
            # the step that comes with the add in progress pushes one out anyway: that one goes in its turn
            with self.lock:
                self.early += max(0, time - max(tail, oldest + 1))
            marks[1, stream] = time

    def seal(self, stream: int, time: int, row: int) -> None:
        """End the open episode at its newest step, whose successor waits in ``row``."""
        store = self._store
        frames = tuple(store.frame(column, row) for column in self._obs_columns)
        number = self._keep(stream, time - 1, store.obs(row), frames)
        slot = (time - 1) % self._slots
        store.mark_final(stream * self._rows + slot, number)
        if slot < MIRROR:
            store.mirror(stream)
        # last of all: a reader that saw the record before it was marked learns that it has to look again
        store.marks[2, stream] += 1
        with self.lock:
            self.breaks += 1

    def _differs(self, row: int, frames: tuple[bytes, ...]) -> bool:
        store = self._store
        return any(store.frame(column, row) != frame for column, frame in zip(self._obs_columns, frames, strict=True))

    def _put_frames(self, row: int, frames: tuple[bytes, ...], others: tuple[bytes, ...]) -> None:
        """Write big fields. An observation that continues the step before is there already."""
        put = self._store.put_frame
        if frames:
            for column, frame in zip(self._obs_columns, frames, strict=True):
                put(column, row, frame)
        if others:
            for column, frame in zip(self._other_columns, others, strict=True):
                put(column, row, frame)

    def mirror(self, stream: int, slot: int) -> None:
        """Keep the rows behind a ring's end equal to its first ones, after a write at a slot near either."""
        if slot + 1 == self._slots:
            self._store.unmirror(stream)
        self._store.mirror(stream)
