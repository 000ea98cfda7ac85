"""How streams grow: what is written where, in which order, and what goes early."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.timeline.ledger import LAYOUT, Ledger, Op, begun, ledgers, level, programs, shapes

from ringfence.replay import Replay
from ringfence.schema import Field, Schema
from ringfence.store import Ram, RingShape
from ringfence.store.base import MIRROR
from ringfence.testing.strategies import Move
from ringfence.timeline import wide, writer
from ringfence.timeline.timeline import TIME_BITS

PLAIN = Schema(obs=Field((1,), np.int64), action=Field((), np.int64))
STACKED = Schema(obs=Field((1,), np.int64, stack=3), action=Field((), np.int64))


@contextmanager
def longest(steps: int) -> Iterator[None]:
    """Let no episode be longer than this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "LONGEST", steps)
        patch.setattr(wide, "LONGEST", steps)
        yield


# -- what is written


@settings(max_examples=100)
@given(ledger=ledgers())
def test_every_step_held_has_its_content_and_its_own_successor(ledger):
    """After any program each step held has its fields, its age, and the next observation that was given with it."""
    ledger.check_content()


@settings(max_examples=40)
@given(ledger=ledgers())
def test_ids_are_stream_and_time(ledger):
    """An id is the stream in its upper bits and the number of the stream's earlier steps in the lower 44."""
    counts = [0] * ledger.shape.streams
    for id in ledger.ids:
        stream, time = id >> TIME_BITS, id & ((1 << TIME_BITS) - 1)

        assert type(id) is int
        assert time == counts[stream]
        counts[stream] += 1
    assert counts == [len(line) for line in ledger.steps]


@settings(max_examples=40)
@given(shape=shapes(), data=st.data())
def test_one_by_one_and_together_leave_the_same_memory(shape, data):
    """Steps added stream by stream, or in one call, read the same for ever after."""
    rows = data.draw(begun(shape, max_size=15), "program")
    together, apart = Ledger(shape), Ledger(shape)
    for op in rows:
        together.do(op)
        for move in op if isinstance(op, tuple) else [op]:
            apart.do(move)

    assert together.steps == apart.steps
    assert (together.store.marks == apart.store.marks).all()
    assert sorted(together.ids) == sorted(apart.ids)
    assert (together.writer.breaks, together.writer.early) == (apart.writer.breaks, apart.writer.early)
    apart.check_content()


@settings(max_examples=60)
@given(ledger=ledgers())
def test_the_rows_behind_a_rings_end_repeat_its_first_ones(ledger):
    """Whatever was done, what is read past the end of a ring is what is read at its start."""
    shape, records = ledger.shape, np.frombuffer(ledger.store.records.tobytes(), np.uint8)
    rings = records.reshape(shape.streams, shape.rows, LAYOUT.itemsize)

    assert (rings[:, shape.slots :] == rings[:, :MIRROR]).all()


# -- in which order


class Watched(Ram):
    """Look at all that readers may read after each single write."""

    ledger: Ledger | None = None
    writes = 0

    def check(self) -> None:
        """Require every held step whole; the newest of a stream may be getting its final observation."""
        if self.ledger is not None:
            Watched.writes += 1
            self.ledger.check_content(but_newest=[int(at) for at in np.flatnonzero(self.marks[2] != self.ended)])

    def note(self) -> None:
        """Note what readers who looked before the next write have seen."""
        self.ended = self.marks[2].copy()

    def put(self, row: int, record: bytes) -> None:
        """Write, then look."""
        super().put(row, record)
        self.check()

    def put_frame(self, column: int, row: int, frame: bytes) -> None:
        """Write, then look."""
        super().put_frame(column, row, frame)
        self.check()

    def put_final(self, stream: int, number: int, obs: bytes) -> None:
        """Write, then look."""
        super().put_final(stream, number, obs)
        self.check()

    def mark_final(self, row: int, number: int) -> None:
        """Write, then look."""
        super().mark_final(row, number)
        self.check()

    def unmirror(self, stream: int) -> None:
        """Write, then look."""
        super().unmirror(stream)
        self.check()

    def put_many(self, rows: np.ndarray, block: np.ndarray) -> None:
        """Write, then look."""
        super().put_many(rows, block)
        self.check()

    def put_level(self, slot: int, block: np.ndarray) -> None:
        """Write, then look."""
        super().put_level(slot, block)
        self.check()


@settings(max_examples=60)
@given(shape=shapes(), data=st.data())
def test_no_single_write_touches_what_is_held(shape, data):
    """After each write inside an add, every step that the marks call held is whole, with its own successor."""
    store = Watched(LAYOUT, shape)
    ledger = store.ledger = Ledger(shape, store)
    for op in data.draw(begun(shape, max_size=15), "program"):
        store.note()
        ledger.do(op)
    store.note()
    store.check()


def test_a_write_to_a_held_row_is_noticed():
    """The check above sees one wrong byte in a step that is held."""
    store = Watched(LAYOUT, RingShape(1, 5, 6))
    ledger = store.ledger = Ledger(store.shape, store)
    store.note()
    ledger.do(Move(0))
    ledger.do(Move(0))

    with pytest.raises(AssertionError, match="stream 0"):
        store.put(0, b"\x07")


# -- what goes early


@settings(max_examples=60)
@given(ledger=ledgers())
def test_early_and_breaks_are_counted_step_by_step(ledger):
    """The counts are those of the lists: steps that went before their turn, and episodes cut without an end."""
    assert ledger.writer.early == ledger.early
    assert ledger.writer.breaks == ledger.breaks
    assert ledger.store.marks[2].tolist() == [len(ends) for ends in ledger.ends]


def episodes(replay: Replay, count: int, length: int, stream: int = 0) -> list[int]:
    """Add episodes of one length; give the ids."""
    return [
        replay.add([number], 0, 0.0, [number + 1], number % length == length - 1, stream=stream)
        for number in range(count * length)
    ]


@pytest.mark.parametrize(
    ("capacity", "length", "held"),
    [
        (64, 1, 64),
        (65, 1, 65),
        (66, 1, 65),
        (1000, 1, 65),
        (1000, 2, 130),
        (1000, 15, 975),
        (1000, 16, 1000),
        (6400, 63, 6363),
        (6400, 64, 6400),
    ],
)
def test_short_episodes_in_large_rings_go_early_and_are_counted(capacity, length, held):
    """A ring holds its capacity while episodes are long enough, else the newest whole episodes that have their ends."""
    replay = Replay(PLAIN, capacity=capacity, seed=0)
    ids = episodes(replay, 3 * capacity // length, length)

    assert len(replay) == held
    assert replay.transitions().ids().tolist() == ids[-held:]
    assert replay.holds(ids).tolist() == [False] * (len(ids) - held) + [True] * held
    assert (replay.stats()["early"] > 0) == (held < capacity)
    batch = replay.sample(2000)
    assert (batch.next_obs == batch.obs + 1).all()


def test_what_went_early_is_exactly_what_is_missing():
    """While nothing has had its turn yet, the steps held and those gone early are all that were added."""
    replay = Replay(PLAIN, capacity=2000, streams=2, seed=0)
    episodes(replay, 300, 3, stream=1)

    stats = replay.stats()

    assert stats["held"] == [0, 195]
    assert stats["early"] == 900 - 195


def test_a_told_episode_length_keeps_the_capacity():
    """Told that episodes are of one step, a ring keeps room for all their final observations."""
    replay = Replay(PLAIN, capacity=1000, episode_length=1, seed=0)
    episodes(replay, 3000, 1)

    assert len(replay) == 1000
    assert replay.stats()["early"] == 0


# -- episodes without an end


@settings(max_examples=40)
@given(shape=shapes(), data=st.data(), steps=st.integers(1, 9))
def test_an_episode_that_reaches_the_longest_is_cut_there(shape, data, steps):
    """Whichever way steps come, an episode is cut when its age can be counted no further, and nothing else changes."""
    program: list[Op] = data.draw(programs(shape.streams, max_size=15), "program")
    row = level(shape.streams)
    with longest(steps):
        ledger = Ledger(shape, longest=steps)
        for op in [*[row] * 12, *program, *row, *[row] * 12]:
            ledger.do(op)

    ledger.check_content()
    assert ledger.writer.breaks == ledger.breaks >= 11 // steps * shape.streams
    for stream in range(shape.streams):
        assert max(ledger.timeline.episode_lengths(stream)) <= steps


@pytest.mark.parametrize("together", [False, True], ids=["add", "extend"])
@pytest.mark.parametrize("schema", [PLAIN, STACKED], ids=["plain", "stacked"])
def test_nothing_drawn_reaches_across_the_longest(schema, together):
    """Of an episode cut at 7 steps, returns over 5 steps and stacks of 3 frames stay on their side of the cut."""
    with longest(7):
        replay = Replay(schema, capacity=40, seed=0)
        for number in range(100):
            if together:
                replay.extend([[number]], [number], [1.0], [[number + 1]], [False], [False])
            else:
                replay.add([number], number, 1.0, [number + 1], False)
    batch = replay.transitions(n_step=5, gamma=1.0).sample(500)

    start = batch.action
    first = start - start % 7
    steps = np.minimum.reduce([np.full(500, 5), first + 7 - start, 100 - start])
    frames = [2, 1, 0] if schema is STACKED else [0]
    assert (batch.steps == steps).all()
    assert (batch.reward == steps).all()
    assert not batch.terminated.any()
    assert (batch.discount == 1).all()
    assert (batch.obs.reshape(500, -1) == np.stack([np.maximum(start - back, first) for back in frames], 1)).all()
    last = start + steps
    older = [np.maximum(last - back, first) if back else last for back in frames]
    assert (batch.next_obs.reshape(500, -1) == np.stack(older, 1)).all()
    assert set(np.unique(start)) == set(range(60 + (2 if schema is STACKED and 60 % 7 else 0), 100))
