"""Which steps a save writes again, which it keeps, and how many files that makes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.saving.log import LEAST, PARTS, TARGET, Segment, clipped, plan, steps_a_segment


class Ring:
    """Streams that grow, drop and are cut, and the log of their saves beside them."""

    def __init__(self, streams: int, capacity: int, step_bytes: int = LEAST // 50) -> None:
        self.heads = np.zeros(streams, np.int64)
        self.tails = np.zeros(streams, np.int64)
        self.ended = np.zeros(streams, np.int64)
        self.firsts = np.zeros(streams, np.int64)
        self.capacity = capacity
        self.log: list[Segment] = []
        self.target = steps_a_segment(capacity * streams, step_bytes)

    def grow(self, stream: int, steps: int, ended: int) -> None:
        """Add steps, of which some ended an episode."""
        self.heads[stream] += steps
        self.ended[stream] += min(ended, steps)
        self.tails[stream] = max(self.tails[stream], self.heads[stream] - self.capacity)
        self.firsts[stream] = max(self.firsts[stream], self.ended[stream] - 5)

    def save(self, changed: list[bool] | None = None) -> list[Segment]:
        """Save, and give what was written."""
        flags = np.array(changed or [False] * len(self.log), np.bool_)
        work = plan(self.log, flags, (self.tails, self.heads, self.firsts, self.ended), self.target)
        self.log = work.kept + work.new
        return work.new

    def held(self, part: str) -> list[tuple[int, int]]:
        """List what the log holds of what is held, in order."""
        lows = self.tails if part == "steps" else self.firsts
        found = []
        for segment in self.log:
            for stream, first, count in clipped(getattr(segment, part), lows).tolist():
                found += [(stream, number) for number in range(first, first + count)]
        return sorted(found)

    def expected(self, part: str) -> list[tuple[int, int]]:
        """List what is held."""
        lows, ends = (self.tails, self.heads) if part == "steps" else (self.firsts, self.ended)
        return [(stream, n) for stream in range(len(lows)) for n in range(lows[stream], ends[stream])]


MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), st.integers(0, 2), st.integers(0, 700), st.integers(0, 4)),
        st.tuples(st.just("save"), st.integers(0, 6), st.just(0), st.just(0)),
    ),
    max_size=30,
)


@settings(deadline=None, max_examples=150)
@given(moves=MOVES, streams=st.integers(1, 3), capacity=st.sampled_from([1, 7, 60, 400, 3000]))
def test_every_save_holds_each_step_once(moves, streams, capacity):
    """Whatever grew, was dropped or was changed, what is held lies in the log once, and files stay few and full."""
    ring = Ring(streams, capacity)
    for move, number, steps, ended in moves:
        if move == "grow":
            ring.grow(number % streams, steps, ended)
            continue
        ring.save([at == number for at in range(len(ring.log))])

        assert ring.held("steps") == ring.expected("steps")
        assert ring.held("finals") == ring.expected("finals")
        held = len(ring.expected("steps"))
        assert sum(segment.count for segment in ring.log) <= 2 * held + ring.target
        assert len(ring.log) <= 2 * PARTS + 8


def test_a_second_save_writes_what_is_new():
    """After half a per cent of new steps as much is written, and nothing of what was there."""
    ring = Ring(1, 200_000, 100)
    ring.grow(0, 200_000, 4)
    ring.save()
    ring.grow(0, 1000, 0)

    assert [segment.steps.tolist() for segment in ring.save()] == [[[0, 200_000, 1000]]]


def test_many_small_saves_rewrite_each_step_a_few_times():
    """A thousand saves of a hundred steps each write every step at most log2 times, and leave few files."""
    ring = Ring(1, 100_000, 1000)
    written = 0
    for _ in range(1000):
        ring.grow(0, 100, 0)
        written += sum(segment.count for segment in ring.save())

    assert written <= 8 * 100_000
    assert len(ring.log) < 2 * PARTS


def test_streams_of_one_segment_grow_old_together():
    """A ring of many streams drops its oldest files whole as all streams turn."""
    ring = Ring(8, 10_000, 1000)
    for stream in range(8):
        ring.grow(stream, 10_000, 0)
    ring.save()
    for stream in range(8):
        ring.grow(stream, 5_000, 0)
    ring.save()

    assert sum(segment.count for segment in ring.log) <= 1.1 * 80_000


def test_a_changed_segment_is_written_again():
    """Steps changed after the fact are written anew, those of other segments are not."""
    ring = Ring(1, 1000)
    ring.grow(0, 1000, 0)
    first = ring.save()
    assert len(first) > 1

    assert [one.steps.tolist() for one in ring.save([True] + [False] * (len(first) - 1))] == [first[0].steps.tolist()]


@pytest.mark.parametrize("streams", [1, 3])
def test_nothing_to_save_is_no_file(streams):
    """A ring without steps writes no segment, and a save without news writes none either."""
    ring = Ring(streams, 100)
    assert ring.save() == []
    ring.grow(0, 30, 1)
    ring.save()
    assert ring.save() == []


@pytest.mark.parametrize(("capacity", "step_bytes"), [(1, 1), (10**6, 100), (10**7, 30_000), (100, 10**9)])
def test_a_segment_is_a_part_of_the_ring_within_bounds(capacity, step_bytes):
    """It is a sixty-fourth of the ring, neither tiny nor huge, and a step at least."""
    steps = steps_a_segment(capacity, step_bytes)

    assert steps == 1 or LEAST - step_bytes <= steps * step_bytes <= TARGET
