"""Which steps exist and which windows are legal, against plain lists and loops."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.timeline.ledger import LAYOUT, Ledger, ledgers, pair, programs

from ringfence.store import RingShape
from ringfence.testing.strategies import Move
from ringfence.timeline import Anchors, Look, Window
from ringfence.timeline.timeline import TIME_BITS

LENGTHS = st.sampled_from([0, 0, 1, 2, 3, 4, 6])
WINDOWS = st.builds(
    Window,
    before=LENGTHS,
    after=LENGTHS,
    boundary=st.sampled_from(["stop", "cross", "pad"]),
    short_start=st.booleans(),
    stride=st.sampled_from([1, 1, 1, 2, 3]),
)


def anchors(ledger: Ledger, pairs: list[tuple[int, int]]) -> Anchors:
    """Give steps, as pairs of stream and time, in the form that the timeline uses."""
    streams, times = np.array(pairs, np.int64).reshape(-1, 2).T
    return Anchors(None if ledger.shape.streams == 1 else streams, times.copy())


def pairs_of(found: Anchors) -> list[tuple[int, int]]:
    """Give anchors as pairs of stream and time."""
    streams = np.zeros(len(found.times), np.int64) if found.streams is None else found.streams
    return list(zip(streams.tolist(), found.times.tolist(), strict=True))


# -- what is held


@settings(max_examples=40)
@given(ledger=ledgers())
def test_a_look_tells_what_each_stream_holds(ledger):
    """Tails, heads and the total are those of the lists."""
    look = ledger.timeline.look()

    assert list(look.heads) == [len(line) for line in ledger.steps]
    assert list(look.tails) == [ledger.tail(stream) for stream in range(ledger.shape.streams)]
    assert look.total == len(ledger.everything())


@settings(max_examples=40)
@given(ledger=ledgers())
def test_ids_tell_whether_their_step_is_still_held(ledger):
    """Of all ids ever given, and of some that were not, exactly those of held steps are held."""
    streams, capacity = ledger.shape.streams, ledger.shape.capacity
    held = {stream << TIME_BITS | entry.time for stream, entry in ledger.everything()}
    future = [
        stream << TIME_BITS | len(ledger.steps[stream]) + ahead for stream in range(streams) for ahead in (0, capacity)
    ]
    strange = [-1, -(2**63), 2**63 - 1, streams << TIME_BITS, -1 << TIME_BITS, (1 << TIME_BITS) - 1]
    ids = np.array([*ledger.ids, *future, *strange])

    found = ledger.timeline.holds(ids)

    assert found.tolist() == [int(id) in held for id in ids]
    assert ledger.timeline.holds(ids.reshape(1, -1)).shape == (1, len(ids))


@settings(max_examples=40)
@given(ledger=ledgers())
def test_ids_and_anchors_are_each_others_inverse(ledger):
    """An id is made of stream and time, and names the same step again."""
    pairs = [(stream, entry.time) for stream, entry in ledger.everything()]

    ids = ledger.timeline.ids(anchors(ledger, pairs))

    assert ids.tolist() == [stream << TIME_BITS | time for stream, time in pairs]
    assert pairs_of(ledger.timeline.anchors(ids)) == pairs
    assert set(ids.tolist()) <= set(ledger.ids)


@settings(max_examples=40)
@given(ledger=ledgers())
def test_held_steps_have_rows_of_their_own(ledger):
    """No two held steps lie in one row; no row is in a mirror; the room of each is what follows it."""
    everything = ledger.everything()
    steps = anchors(ledger, [(stream, entry.time) for stream, entry in everything])

    rows = ledger.timeline.rows(steps)

    assert len(set(rows.tolist())) == len(rows)
    assert (rows // ledger.shape.rows == [stream for stream, _ in everything]).all()
    assert (rows % ledger.shape.rows < ledger.shape.slots).all()
    room = [len(ledger.steps[stream]) - entry.time for stream, entry in everything]
    assert (ledger.timeline.look().room(steps) == room).all()
    assert ledger.timeline.ages(rows).tolist() == [entry.age for _, entry in everything]


@settings(max_examples=40)
@given(ledger=ledgers())
def test_episode_lengths_are_those_of_the_steps_held(ledger):
    """Each episode counts for the steps of it that are held, oldest first."""
    for stream in range(ledger.shape.streams):
        episodes = [entry.episode for entry in ledger.held(stream)]

        lengths = ledger.timeline.episode_lengths(stream)

        assert lengths == [episodes.count(episode) for episode in dict.fromkeys(episodes)]


# -- which windows are legal


@settings(max_examples=100)
@given(ledger=ledgers(), window=WINDOWS)
def test_legal_windows_are_those_of_which_every_step_is_there(ledger, window):
    """Asked one by one, listed or counted, the legal anchors are those that a look at each step of a window finds."""
    timeline, look = ledger.timeline, ledger.timeline.look()
    everything = ledger.everything()
    pairs = [(stream, entry.time) for stream, entry in everything]
    # transitions of stacked frames are counted in a way of their own
    for asked in (window, Window(before=window.before, short_start=True)):
        expected = [ledger.legal(stream, entry, asked) for stream, entry in everything]

        assert timeline.legal(look, anchors(ledger, pairs), asked).tolist() == expected
        listed = [pair for pair, good in zip(pairs, expected, strict=True) if good]
        assert pairs_of(timeline.every(look, asked)) == listed
        assert timeline.count(look, asked) == len(listed)
        if listed and timeline.surely_legal(look, anchors(ledger, pairs), asked):
            assert listed == pairs


@pytest.mark.parametrize("short_start", [False, True])
@pytest.mark.parametrize(("before", "after"), [(10, 0), (0, 10), (2**31 - 1, 0), (0, 2**31 - 1)])
def test_a_window_longer_than_the_ring_is_never_legal(before, after, short_start):
    """What no ring of this size can hold has no anchor, and is no error; but a padded start needs no steps before."""
    ledger = Ledger(RingShape(1, 8, 9))
    for _ in range(5):
        ledger.do(Move(0))
    window = Window(before=min(before, 1000), after=after, short_start=short_start)

    legal = pairs_of(ledger.timeline.every(ledger.timeline.look(), window))

    assert legal == ([(0, time) for time in range(5)] if short_start and not after else [])


def test_without_a_legal_window_the_error_holds_the_counts():
    """The refusal says how many steps are held, how long the longest run is, and what a window needs."""
    ledger = Ledger(RingShape(2, 8, 9))
    for end in ("", "truncated", "", "", "terminated"):
        ledger.do(Move(1, end))
    timeline = ledger.timeline

    text = str(timeline.refuse(timeline.look(), Window(before=4, after=2)))

    assert re.search(r"5 transitions are held by 2 stream.s., .* is 3, .* 4 step.s. before and 2 after", text)


# -- what was read whole


def read(ledger: Ledger, look: Look, steps: Anchors, before: int, reach: int) -> list[bytes]:
    """Copy all that a view reads for these anchors, as if the marks were still those of the look."""
    store, shape, copied = ledger.store, ledger.shape, []
    for stream, anchor in pairs_of(steps):
        last = min(anchor + reach, int(look.heads[stream]) - 1)
        for time in range(anchor - before, last + 1):
            row = stream * shape.rows + time % shape.slots
            record = pair(store, row)[: LAYOUT.itemsize]
            final = int(np.frombuffer(record, np.int32, 1, LAYOUT.final_offset)[0])
            after = stream * shape.rows + (time + 1) % shape.slots if final < 0 else store.final_row(stream, final)
            small = store.obs(after) if final < 0 else bytes(store.final_obs(np.array([stream * shape.finals + final])))
            own = store.frame(0, row) + store.frame(1, row)
            copied.append(record + own + small + store.frame(0, after) + store.ages[row].tobytes())
    return copied


@settings(max_examples=120)
@given(ledger=ledgers(), data=st.data(), before=st.integers(0, 3), reach=st.integers(0, 3))
def test_what_changed_since_the_look_is_noticed_and_what_did_not_is_not(ledger, data, before, reach):
    """If any byte read has changed the read is refused; if nothing read was dropped and no episode ended it stands."""
    look = ledger.timeline.look()
    tails = [ledger.tail(stream) for stream in range(ledger.shape.streams)]
    pairs = [(stream, entry.time) for stream, entry in ledger.everything() if entry.time - before >= tails[stream]]
    if not pairs:
        return
    # the newest steps are where a read can go wrong without anything being dropped
    newest = [pair for pair in pairs if pair[1] + reach + 1 >= len(ledger.steps[pair[0]])]
    pairs = data.draw(
        st.lists(st.sampled_from(pairs) | st.sampled_from(newest or pairs), min_size=1, max_size=3), "anchors"
    )
    steps = anchors(ledger, pairs)
    ends = [len(line) for line in ledger.ends]
    first = read(ledger, look, steps, before, reach)
    for op in data.draw(programs(ledger.shape.streams, max_size=3), "meanwhile"):
        ledger.do(op)

    stands = ledger.timeline.untouched(look, steps, before, reach)

    if read(ledger, look, steps, before, reach) != first:
        assert not stands
    held = all(time - before >= ledger.tail(stream) for stream, time in pairs)
    if held and ends == [len(line) for line in ledger.ends]:
        assert stands
    if not held:
        assert not stands


def test_a_cut_after_the_fact_is_noticed_by_whoever_read_the_newest_step():
    """An episode cut at its newest step gets its final observation late: those who read that step read again."""
    ledger = Ledger(RingShape(2, 8, 9))
    for _ in range(4):
        ledger.do((Move(0), Move(1)))
    look = ledger.timeline.look()
    ledger.do("cut 1")

    def stands(stream: int, time: int, reach: int) -> bool:
        return ledger.timeline.untouched(look, anchors(ledger, [(stream, time)]), 0, reach)

    assert not stands(1, 3, 0)
    assert not stands(1, 2, 1)
    assert stands(1, 2, 0)
    assert stands(0, 3, 0)
