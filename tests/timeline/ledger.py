"""Plain lists beside real streams: what is held, where episodes end, and what lies at each step, by brute force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ringfence.schema import Field, Layout, Schema
from ringfence.schema.check import step_check
from ringfence.schema.rows import RowsCheck
from ringfence.store import Ram, RingShape
from ringfence.testing.strategies import End, Move, moves
from ringfence.timeline import Anchors, Timeline, WideWriter, Window, Writer
from ringfence.timeline.writer import LONGEST

# one observation inside the record and one beside it, and one column that is no observation
SCHEMA = Schema(
    obs={"small": Field((2,), np.int64), "big": Field((70,), np.int64)},
    action=Field((), np.int64),
    extras={"hidden": Field((70,), np.int64)},
)
LAYOUT = Layout.of(SCHEMA)
SMALL = np.dtype((np.int64, 2))
CHECK, ROWS_CHECK = step_check(LAYOUT), RowsCheck(LAYOUT)

Op = Move | tuple[Move, ...] | str
"""One add, one extend (of all streams where it names all in order), ``"cut <stream>"`` or ``"clear"``."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A step as it was added."""

    time: int
    episode: int
    age: int
    obs: int
    next_obs: int


class Ledger:
    """Feed real streams, and note each step beside them."""

    def __init__(self, shape: RingShape, store: Ram | None = None, longest: int = LONGEST) -> None:
        self.shape, self.longest = shape, longest
        self.store = Ram(LAYOUT, shape) if store is None else store
        self.timeline, self.writer = Timeline(self.store), Writer(self.store)
        self.wide = WideWriter(self.store, self.writer)
        self.steps: list[list[Entry]] = [[] for _ in range(shape.streams)]
        self.ends: list[list[int]] = [[] for _ in range(shape.streams)]
        self.floors = [0] * shape.streams
        self.early = self.breaks = 0
        self._ids: list[int] = []
        self._open = [0] * shape.streams
        self._waiting = [0] * shape.streams
        self._numbers = 0

    # -- doing

    def do(self, op: Op) -> None:
        """Do one thing to both."""
        if op == "clear":
            self.writer.clear()
            self.floors = [len(line) for line in self.steps]
            self._open = [0] * self.shape.streams
        elif isinstance(op, str):
            stream = int(op.split()[1])
            self.writer.cut(stream)
            # the step whose turn comes with the next add does not count as early
            self._cut(stream, len(self.steps[stream]) + 1 - self.shape.capacity)
        elif isinstance(op, Move):
            entry = self._note(op)
            end = (op.end in ("terminated", "both"), op.end in ("truncated", "both"))
            step = CHECK(look(entry.obs), entry.time, 0.0, look(entry.next_obs), *end, {"hidden": full(entry.obs)})
            self._ids.append(self.writer.append(op.stream, step))
        else:
            self._extend(op)

    def _extend(self, row: Sequence[Move]) -> None:
        entries = [self._note(move) for move in row]
        everyone = [move.stream for move in row] == list(range(self.shape.streams))
        stacked = {name: np.array([look(entry.obs)[name] for entry in entries]) for name in SCHEMA.obs}
        later = {name: np.array([look(entry.next_obs)[name] for entry in entries]) for name in SCHEMA.obs}
        terminated = np.array([move.end in ("terminated", "both") for move in row])
        truncated = np.array([move.end in ("truncated", "both") for move in row])
        times, rewards = np.array([entry.time for entry in entries]), np.zeros(len(row), np.float32)
        hidden = {"hidden": np.array([full(entry.obs) for entry in entries])}
        rows = ROWS_CHECK.rows(len(row), (stacked, times, rewards, later, terminated, truncated), hidden)
        streams = None if everyone else np.array([move.stream for move in row])
        ids = self.wide.append(streams, rows)
        assert ids.dtype == np.int64
        self._ids += ids.tolist()

    def _note(self, move: Move) -> Entry:
        """Note a step, and what it drops."""
        stream, line = move.stream, self.steps[move.stream]
        turn = len(line) + 1 - self.shape.capacity
        run = self._open[stream]
        if run and (move.jump or run >= self.longest):
            self._cut(stream, turn)
        run = self._open[stream]
        obs = self._waiting[stream] if run or (line and not move.jump) else self._number()
        episode = line[-1].episode + (not run) if line else 0
        entry = Entry(len(line), episode, run, obs, self._number())
        line.append(entry)
        self._waiting[stream] = entry.next_obs
        self._open[stream] = run + 1
        if move.end:
            self._end(stream, entry.time, turn)
        return entry

    def _cut(self, stream: int, turn: int) -> None:
        if self._open[stream]:
            self.breaks += 1
            self._end(stream, len(self.steps[stream]) - 1, turn)

    def _end(self, stream: int, time: int, turn: int) -> None:
        """Note the end of an episode; the oldest steps go where more of them ended than final observations are kept."""
        self._open[stream] = 0
        ends = self.ends[stream]
        ends.append(time)
        if len(ends) > self.shape.finals:
            gone = ends[-self.shape.finals - 1] + 1
            self.early += max(0, gone - max(turn, self.floors[stream]))
            self.floors[stream] = max(self.floors[stream], gone)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    # -- asking

    @property
    def ids(self) -> list[int]:
        """Every id ever given, in the order in which they were given."""
        return self._ids

    def tail(self, stream: int) -> int:
        """Give the time of the oldest step held."""
        return max(len(self.steps[stream]) - self.shape.capacity, self.floors[stream])

    def held(self, stream: int) -> list[Entry]:
        """List the steps held."""
        return self.steps[stream][self.tail(stream) :]

    def everything(self) -> list[tuple[int, Entry]]:
        """List all that is held, stream by stream, oldest first."""
        return [(stream, entry) for stream in range(self.shape.streams) for entry in self.held(stream)]

    def legal(self, stream: int, entry: Entry, window: Window) -> bool:
        """Tell whether a held step is the anchor of a legal window, by looking at each step of it."""
        before = min(window.before, entry.age) if window.short_start else window.before
        held = self.held(stream)
        mates = {other.time for other in held if other.episode == entry.episode}
        later = {"stop": mates, "cross": {other.time for other in held}, "pad": range(entry.time, 2**62)}
        reached = [entry.time + ahead in later[window.boundary] for ahead in range(window.after + 1)]
        earlier = [entry.time - back in mates for back in range(before + 1)]
        return all(reached) and all(earlier) and entry.age % window.stride == 0

    def check_content(self, *, but_newest: Sequence[int] = ()) -> None:
        """Require the content, age and successor of every step held by the marks as they are now.

        The successor of the newest step of the streams ``but_newest`` is left out.
        """
        marks = self.store.marks
        for stream, line in enumerate(self.steps):
            head = int(marks[0, stream])
            tail = max(head - self.shape.capacity, int(marks[1, stream]))
            for entry in line[tail:head]:
                row = self._row(stream, entry.time)
                where = f"stream {stream}, {entry}"
                assert self.store.ages[row] == entry.age, where
                assert self._content(row) == (entry.obs, entry.obs, entry.obs), where
                if stream not in but_newest or entry.time < head - 1:
                    assert self._successor(stream, row) == (entry.next_obs,) * 3, where

    def _row(self, stream: int, time: int) -> int:
        row = self.timeline.rows(Anchors(np.array([stream]), np.array([time])))
        return int(row[0])

    def _content(self, row: int) -> tuple[int, int, int]:
        small = np.frombuffer(self.store.obs(row), SMALL)[0]
        big, hidden = (self.store.frame(column, row) for column in (0, 1))
        return number(small), number(np.frombuffer(big, np.int64)), number(np.frombuffer(hidden, np.int64))

    def _successor(self, stream: int, row: int) -> tuple[int, int, int]:
        """Read the next observation: small, small again by way of the mirror, and big."""
        record = pair(self.store, row)
        final = int(np.frombuffer(record, np.int32, 1, LAYOUT.final_offset)[0])
        if final >= 0:
            small = number(
                np.frombuffer(self.store.final_obs(np.array([stream * self.shape.finals + final])), np.int64)
            )
            mirrored, after = small, self.store.final_row(stream, final)
        else:
            first = stream * self.shape.rows
            after = first + (row - first + 1) % self.shape.slots
            small = number(np.frombuffer(self.store.obs(after), np.int64))
            mirrored = number(np.frombuffer(record, np.int64, 2, LAYOUT.itemsize))
        return small, mirrored, number(self.store.frames(0, np.array([after]))[0])


def pair(store: Ram, row: int) -> bytes:
    """Read a record and the one that follows it in memory."""
    out = np.empty((1, 2 * LAYOUT.itemsize), np.uint8)
    store.gather(np.array([row]), np.array([[0, 2 * LAYOUT.itemsize]]), (out,))
    return out.tobytes()


def look(number: int) -> dict[str, Any]:
    """Make the observation of this number."""
    return {"small": np.full(2, number), "big": full(number)}


def full(number: int) -> np.ndarray:
    """Make a big field of this number."""
    return np.full(70, number)


def number(values: np.ndarray) -> int:
    """Give the number that a field is made of; -1 where it is not whole."""
    return int(values.flat[0]) if (values == values.flat[0]).all() else -1


def level(streams: int, end: End = "") -> tuple[Move, ...]:
    """Give one plain step for each stream."""
    return tuple(Move(stream, end) for stream in range(streams))


def shapes(max_capacity: int = 12) -> st.SearchStrategy[RingShape]:
    """Draw small rings, some with far too few final observations."""
    return st.integers(1, max_capacity).flatmap(
        lambda capacity: st.builds(RingShape, st.integers(1, 3), st.just(capacity), st.integers(1, capacity + 1))
    )


def programs(streams: int, max_size: int = 40) -> st.SearchStrategy[list[Op]]:
    """Draw what is done to streams: mostly adds and extends, now and then a cut, seldom a clear."""
    row = st.lists(moves(streams), min_size=1, max_size=4)
    some = row.map(lambda row: tuple({move.stream: move for move in row}.values()))
    each = st.lists(moves(1), min_size=streams, max_size=streams)
    everyone = each.map(lambda row: tuple(Move(stream, move.end, move.jump) for stream, move in enumerate(row)))
    cut = st.integers(0, streams - 1).map(lambda stream: f"cut {stream}")
    kinds = {"add": moves(streams), "some": some, "all": everyone, "cut": cut, "clear": st.just("clear")}
    often = ["add"] * 6 + ["some"] * 3 + ["all"] * 6 + ["cut"] * 2 + ["clear"]
    op = st.sampled_from(often).flatmap(kinds.__getitem__)
    return st.integers(0, max_size).flatmap(lambda size: st.lists(op, min_size=size, max_size=size))


@st.composite
def begun(draw: st.DrawFn, shape: RingShape, max_size: int = 25) -> list[Op]:
    """Draw a program that begins with some turns of the rings, by episodes of one length: few are that by chance."""
    count = draw(st.integers(0, 3 * shape.slots))
    length = draw(st.sampled_from([100, 1, 2, 5, shape.capacity]))
    turns: list[Op] = [level(shape.streams, "" if at % length < length - 1 else "terminated") for at in range(count)]
    return turns + draw(programs(shape.streams, max_size))


@st.composite
def ledgers(draw: st.DrawFn, max_capacity: int = 12) -> Ledger:
    """Draw streams to which something was done."""
    shape = draw(shapes(max_capacity))
    ledger = Ledger(shape)
    for op in draw(begun(shape)):
        ledger.do(op)
    return ledger
