"""The replay as its user meets it: what it holds, what it counts, and what its ids mean."""

import contextlib
import itertools
import re
import sys
import threading

import numpy as np
import pytest

from ringfence import Field, NotEnoughData, Replay, Schema, SchemaError

NUMBER = Field((), np.int64)
SCHEMA = Schema(obs=NUMBER, action=NUMBER)
COLUMNS = Schema(obs={"now": NUMBER, "frame": Field((30, 30), np.uint8)}, action=NUMBER)


def ring(capacity=100, streams=1, schema=SCHEMA, **options):
    """Build an empty ring for observations that are single numbers."""
    return Replay(schema, capacity, streams=streams, seed=0, **options)


def play(replay, first, count, end=False, stream=0):
    """Add that many steps of one episode; its observations count on from ``first``. Give their ids."""
    steps = range(first, first + count)
    return [replay.add(now, now, now, now + 1, end and now == steps[-1], stream=stream) for now in steps]


def test_a_new_ring_is_empty_and_has_its_memory():
    """From the start it says what it takes; nothing is held, and nothing can be drawn."""
    replay = ring(100, 2)

    assert (len(replay), replay.capacity, replay.streams, replay.schema) == (0, 100, 2, SCHEMA)
    assert replay.nbytes == replay.plan.bytes > 0
    assert repr(replay) == f"Replay(0 of 100 transitions, 2 stream(s), {replay.nbytes:,} bytes)"
    with pytest.raises(NotEnoughData, match="0 transitions are held"):
        replay.sample(1)


@pytest.mark.parametrize(
    ("asked", "streams", "capacity"), [(100, 1, 100), (100, 3, 99), (7, 4, 4), (1, 1, 1), ("1e3", 7, 994), (8.0, 1, 8)]
)
def test_capacity_is_shared_evenly_and_rounded_down(asked, streams, capacity):
    """Every stream has the same share, never more than was asked for in all, and holds exactly that."""
    replay = ring(asked, streams)
    assert replay.capacity == capacity
    for stream in range(streams):
        play(replay, 0, 2 * capacity, stream=stream)

    assert len(replay) == capacity
    assert replay.stats()["held"] == [capacity // streams] * streams


@pytest.mark.parametrize("capacity", [1, 2, 3, 7, 8, 9, 20])
def test_the_newest_are_held(capacity):
    """A full ring gives up its oldest step for each new one, from a capacity of one up."""
    replay = ring(capacity)
    for now in range(60):
        play(replay, now, 1, end=now % 5 == 4)
        held = range(max(0, now + 1 - capacity), now + 1)
        assert len(replay) == len(held)
        assert {int(action) for action in replay.sample(8 * capacity + 40).action} <= set(held)
    assert replay.transitions().ids().tolist() == list(range(60 - capacity, 60))


def test_ids_grow_and_tell_when_they_are_stale():
    """Ids grow within a stream, name their stream, and are known to be held or gone."""
    replay = ring(8, 2)
    first, second = play(replay, 0, 10), play(replay, 0, 3, stream=1)

    assert first == sorted(first)
    assert len({*first, *second}) == 13
    assert replay.holds(first).tolist() == [False] * 6 + [True] * 4
    assert replay.holds(second).tolist() == [True] * 3
    assert replay.holds(np.array(first[-1:])).tolist() == [True]
    assert replay.holds(replay.sample(50).ids).all()
    assert replay.holds([]).tolist() == []


@pytest.mark.parametrize("strange", [-1, 3, 1 << 44 | 1, 5 << 44, -(2**63), 2**63 - 1])
def test_ids_that_were_never_given_are_not_held(strange):
    """A number that is no id of a held step is simply not held."""
    replay = ring(8, 2)
    play(replay, 0, 3)
    play(replay, 0, 1, stream=1)

    assert replay.holds([strange, 0]).tolist() == [False, True]


def test_clear_drops_everything_for_good():
    """After ``clear`` nothing is held, old ids stay stale for ever, and new steps never get an old id."""
    replay = ring(20, 2)
    old = play(replay, 0, 7) + play(replay, 0, 3, stream=1)
    taken = replay.nbytes
    replay.clear()

    assert len(replay) == 0
    assert replay.nbytes == taken
    assert replay.episode_lengths() == replay.episode_lengths(1) == []
    assert replay.transitions().ids().tolist() == []
    with pytest.raises(NotEnoughData, match="0 transitions are held"):
        replay.sample(1)

    new = play(replay, 100, 12)
    assert not set(old) & set(new)
    assert not replay.holds(old).any()
    assert set(replay.sample(200).action.tolist()) == set(range(102, 112))


def test_clear_ends_the_open_episode():
    """What is added after ``clear`` begins a new episode, also where it would have continued the old one."""
    replay = ring(20)
    play(replay, 0, 3)
    replay.clear()
    play(replay, 3, 2)

    assert replay.episode_lengths() == [2]
    assert replay.stats()["breaks"] == 0
    assert sorted(set(replay.transitions(5).sample(60).steps.tolist())) == [1, 2]


def test_cut_ends_an_episode_without_a_flag():
    """After ``cut`` an episode is over, though nothing flagged an end and the next one begins where it was left."""
    replay = ring()
    play(replay, 0, 3)
    replay.cut()
    play(replay, 3, 2)

    assert replay.episode_lengths() == [3, 2]
    batch = replay.transitions(4).sample(100)
    newest = batch.action == 2
    assert newest.any()
    assert set(batch.steps[newest].tolist()) == {1}
    assert set(batch.next_obs[newest].tolist()) == {3}
    assert not batch.terminated.any()
    assert not batch.truncated.any()


def test_cut_takes_one_stream_or_all():
    """Only the named stream is cut; without a name all are, and cutting twice or nothing at all does no harm."""
    replay = ring(100, 3)
    replay.cut()
    for stream in range(3):
        play(replay, 0, 2, stream=stream)
    replay.cut(1)
    replay.cut(1)
    for stream in range(3):
        play(replay, 2, 2, stream=stream)
    replay.cut()
    for stream in range(3):
        play(replay, 4, 1, stream=stream)

    assert [replay.episode_lengths(stream) for stream in range(3)] == [[4, 1], [2, 2, 1], [4, 1]]


def test_an_observation_that_does_not_follow_ends_the_episode():
    """A jump is taken for a new episode and counted; the step before keeps its own successor."""
    replay = ring()
    play(replay, 0, 3)
    play(replay, 50, 2)
    play(replay, 80, 2, end=True)
    play(replay, 90, 1)

    assert replay.episode_lengths() == [3, 2, 2, 1]
    assert replay.stats()["breaks"] == 2
    batch = replay.sample(200)
    assert (batch.next_obs == batch.obs + 1).all()


def test_episode_lengths_count_what_is_held():
    """Lengths are of held steps, oldest episode first, the open one last, each stream its own."""
    replay = ring(20, 2)
    play(replay, 0, 4, end=True)
    play(replay, 10, 6, end=True)
    play(replay, 20, 3)
    play(replay, 0, 2, end=True, stream=1)

    assert replay.episode_lengths() == replay.episode_lengths(stream=0) == [1, 6, 3]
    assert replay.episode_lengths(1) == [2]
    assert sum(replay.episode_lengths()) + sum(replay.episode_lengths(1)) == len(replay)


@pytest.mark.parametrize("stream", [-1, 2, 1.0, None, True, "0"])
def test_streams_that_do_not_exist_are_refused(stream):
    """Asking for the episodes of a stream that is not there is refused by number, and so is cutting it."""
    replay = ring(20, 2)
    words = re.escape(f"stream: expected a number from 0 to 1, got {stream!r}")
    with pytest.raises(SchemaError, match=words):
        replay.episode_lengths(stream)
    if stream is not None:
        with pytest.raises(SchemaError, match=words):
            replay.cut(stream)


def test_stats_are_plain_figures():
    """Everything that happened is counted, in numbers that a log can write down."""
    replay = ring(10, 2)
    play(replay, 0, 4, end=True)
    play(replay, 50, 5)
    play(replay, 90, 1)
    play(replay, 0, 2, stream=1)

    assert replay.stats() == {
        "size": 7,
        "capacity": 10,
        "nbytes": replay.nbytes,
        "added": 12,
        "episodes": 2,
        "breaks": 1,
        "early": 0,
        "held": [5, 2],
    }
    figures = [*replay.stats().values(), *replay.stats()["held"]]
    assert {type(figure) for figure in figures} == {int, list}


def test_many_short_episodes_are_counted_when_they_cost_room():
    """In a ring planned for long episodes, short ones let the oldest go early: that is counted, nothing is wrong."""
    replay = ring(1000, episode_length=100)
    for now in range(0, 6000, 2):
        play(replay, now, 2, end=True)
    stats = replay.stats()

    assert 0 < len(replay) < 1000
    assert stats["early"] > 0
    assert stats["size"] == len(replay) == sum(replay.episode_lengths())
    batch = replay.sample(2000)
    assert (batch.next_obs == batch.obs + 1).all()
    assert batch.action.min() >= 6000 - len(replay)


def test_a_ring_planned_for_short_episodes_holds_them_all():
    """Planned for one-step episodes, nothing goes early."""
    replay = ring(1000, episode_length=1)
    for now in range(3000):
        play(replay, now, 1, end=True)

    assert len(replay) == 1000
    assert replay.stats()["early"] == 0
    assert replay.episode_lengths() == [1] * 1000


@pytest.mark.parametrize("schema", [SCHEMA, COLUMNS], ids=["packed", "with a column"])
def test_extend_takes_any_streams_in_any_order(schema):
    """One call adds to all streams, or to those named in the order of the rows, or to none."""
    replay = ring(60, 3, schema)
    clocks = [0, 0, 0]
    for streams in (None, [2, 0], np.array([1]), [0, 1, 2], (1, 2), None, [], np.array([2, 1, 0], np.uint8)):
        who = range(3) if streams is None else [int(stream) for stream in streams]
        now = np.array([1000 * stream + clocks[stream] for stream in who], np.int64)
        flags = np.zeros(len(now), np.bool_)
        ids = replay.extend(seen(schema, now), now, now * 1.0, seen(schema, now + 1), flags, flags, streams=streams)
        assert ids.dtype == np.int64
        assert ids.tolist() == [stream << 44 | clocks[stream] for stream in who]
        for stream in who:
            clocks[stream] += 1

    assert clocks == [5, 6, 6]
    assert [replay.episode_lengths(stream) for stream in range(3)] == [[5], [6], [6]]
    batch = replay.transitions(3).sample(400)
    assert set(batch.action.tolist()) == {1000 * stream + now for stream in range(3) for now in range(clocks[stream])}
    obs, next_obs = (part if schema is SCHEMA else part["now"] for part in (batch.obs, batch.next_obs))
    assert (next_obs - obs == batch.steps).all()
    if schema is COLUMNS:
        assert (batch.next_obs["frame"][:, 3, 4] == next_obs % 256).all()


def seen(schema, numbers):
    """Give the observations that stand for these numbers."""
    if schema is SCHEMA:
        return numbers
    frames = (numbers % 256).astype(np.uint8)[:, None, None]
    return {"now": numbers, "frame": np.broadcast_to(frames, (len(numbers), 30, 30))}


def test_extend_with_nothing():
    """No streams, no rows: lists or arrays, nothing happens and no ids come back."""
    replay = ring(60, 3)
    nothing = np.zeros(0, np.int64)

    assert replay.extend([], [], [], [], [], [], streams=[]).tolist() == []
    assert replay.extend(nothing, nothing, nothing, nothing, nothing > 0, nothing > 0, streams=nothing).tolist() == []
    assert len(replay) == 0


def test_ends_in_one_stream_leave_the_others_alone():
    """Streams end their episodes each in its own time, whatever way their steps come in."""
    replay = ring(300, 3)
    for now in range(40):
        numbers = np.array([now, 100 + now, 200 + now])
        ended = np.array([now % 4 == 3, now % 7 == 6, False])
        replay.extend(numbers, numbers, numbers, numbers + 1, ended, np.zeros(3, np.bool_))

    assert [replay.episode_lengths(stream) for stream in range(3)] == [[4] * 10, [7] * 5 + [5], [40]]
    batch = replay.transitions(10).sample(800)
    assert (batch.next_obs - batch.obs == batch.steps).all()
    assert batch.steps[batch.action < 100].max() == 4
    assert batch.steps[batch.action >= 200].max() == 10


def test_single_steps_and_rows_may_take_turns():
    """``add`` and ``extend`` continue each other's episodes."""
    replay = ring(40, 2)
    for now in itertools.count(step=2):
        replay.add(now, now, now, now + 1, False)
        replay.add(now, now, now, now + 1, False, stream=1)
        flags = np.zeros(2, np.bool_)
        replay.extend([now + 1] * 2, [now + 1] * 2, [0.0] * 2, [now + 2] * 2, flags, flags)
        if now > 60:
            break

    assert replay.stats()["breaks"] == 0
    assert replay.episode_lengths() == replay.episode_lengths(1) == [20]
    assert (replay.transitions(4).sample(100).steps > 0).all()


def test_threads_may_extend_streams_of_their_own():
    """One thread a stream is enough: two that extend different streams at the same time do not meet."""
    schema = Schema(obs=Field((64,), np.int64), action=NUMBER)
    replay = Replay(schema, 4000, streams=4, seed=0)

    def record(*streams):
        going_on = np.zeros(2, np.bool_)
        for now in range(700):
            numbers = np.array([10_000 * stream + now for stream in streams])
            obs = np.repeat(numbers[:, None], 64, axis=1)
            replay.extend(obs, numbers, numbers, obs + 1, going_on, going_on, streams=streams)

    with often_switching():
        threads = [threading.Thread(target=record, args=streams) for streams in ((0, 1), (2, 3))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    batch = replay.sample(6000)
    assert (batch.obs == batch.action[:, None]).all()
    assert (batch.next_obs == batch.action[:, None] + 1).all()
    assert [replay.episode_lengths(stream) for stream in range(4)] == [[700]] * 4


@contextlib.contextmanager
def often_switching():
    """Let Python change threads as often as it can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


@pytest.mark.parametrize("make", [int, np.random.SeedSequence, np.random.default_rng])
def test_equal_seeds_give_equal_batches(make):
    """A ring that is filled and seeded alike draws alike."""
    drawn = []
    for _ in range(2):
        replay = Replay(SCHEMA, 50, seed=make(3))
        play(replay, 0, 80)
        drawn.append([replay.sample(16).ids.tolist(), replay.transitions(3).sample(16).ids.tolist()])

    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("store", ["disk", None, "RAM"])
def test_a_store_that_there_is_not_is_refused(store):
    """Where the bytes live is one of the known words."""
    with pytest.raises(ValueError, match=re.escape(f'store: expected "ram", got {store!r}')):
        ring(store=store)


def test_numbers_may_be_of_any_kind_that_counts():
    """Streams, sizes and steps may be NumPy's integers."""
    replay = ring(np.int64(20), np.int32(2))
    replay.add(1, 1, 1.0, 2, False, stream=np.int64(1))

    assert replay.episode_lengths(np.uint8(1)) == [1]
    assert len(replay.transitions(np.int64(2)).sample(np.int64(3)).ids) == 3
