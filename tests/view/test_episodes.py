"""Where episodes end, found among the ends that memory keeps, while a writer may be at work."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence import Field, Replay, Schema
from ringfence.timeline import Anchors, Window
from ringfence.view.episodes import Episodes

NUMBER = Field((), np.int64)


def ring(capacity, streams=1):
    """Build an empty ring and the finder of its episodes."""
    replay = Replay(Schema(obs=NUMBER, action=NUMBER), capacity * streams, streams=streams)
    return replay, Episodes(replay._store, replay._timeline)


def play(replay, lengths, stream=0):
    """Add episodes of these lengths, the last one left open; give the first and last time of each step's episode."""
    bounds = []
    for length, is_open in zip(lengths, [*[False] * (len(lengths) - 1), True], strict=True):
        first, last = len(bounds), len(bounds) + length - 1
        for time in range(first, last + 1):
            replay.add(time, 0, 0.0, time + 1, time == last and not is_open, stream=stream)
        bounds += [(first, last)] * length
    return bounds


def found(replay, episodes, steps=None):
    """Ask for the episodes of steps, of all that are held unless given."""
    look = replay._timeline.look()
    steps = replay._timeline.every(look, Window()) if steps is None else steps
    return steps, episodes.first(look, steps), episodes.last(look, steps)


LENGTHS = st.lists(st.integers(1, 6), min_size=1, max_size=40)


@given(programs=st.lists(LENGTHS, min_size=1, max_size=3), capacity=st.integers(1, 40))
def test_the_bounds_are_those_of_the_episode_among_what_is_held(programs, capacity):
    """For each held step of each stream: its episode's first held step, and its last one."""
    replay, episodes = ring(capacity, len(programs))
    bounds = [play(replay, lengths, stream) for stream, lengths in enumerate(programs)]
    steps, first, last = found(replay, episodes)

    streams = np.zeros_like(steps.times) if steps.streams is None else steps.streams
    for stream, time, *got in zip(streams, steps.times, first, last, strict=True):
        start, end = bounds[stream][time]
        assert got == [max(start, len(bounds[stream]) - capacity), end]


@pytest.mark.parametrize("streams", [1, 2])
def test_more_episodes_than_are_kept(streams):
    """In a ring that has seen many times the ends it keeps, each held step still finds its own."""
    replay, episodes = ring(200, streams)
    lengths = [1 + number % 5 for number in range(500)]
    bounds = [play(replay, lengths[stream:], stream) for stream in range(streams)]
    steps, first, last = found(replay, episodes)

    assert replay.stats()["episodes"] > 4 * 65
    streams = np.zeros_like(steps.times) if steps.streams is None else steps.streams
    ends = [bounds[stream][time][1] for stream, time in zip(streams, steps.times, strict=True)]
    assert last.tolist() == ends
    assert (first <= steps.times).all()


@pytest.mark.parametrize("streams", [1, 2])
def test_an_end_that_was_overwritten_meanwhile_is_noticed(streams):
    """Whichever ends a writer replaces after the look, no step is given the end of another episode."""
    lengths = [3] * 9 + [2]
    for written in itertools.chain(range(1, 10), [14, 30]):
        replay, episodes = ring(6, streams)
        play(replay, lengths)
        look = replay._timeline.look()
        times = np.arange(int(np.asarray(look.tails)[0]), int(np.asarray(look.heads)[0]))
        steps = Anchors(None if streams == 1 else np.zeros_like(times), times)
        kept, ended = replay._store.shape.finals, int(replay._store.marks[2, 0])
        for number in range(ended, ended + written):
            replay._store.final_times[0, number % kept] = times[-1] + number - ended
        last = episodes.last(look, steps)

        right = [time // 3 * 3 + 2 if time < 27 else 28 for time in times.tolist()]
        assert last is None or last.tolist() == right
        assert written < kept or last is None


@pytest.mark.parametrize("streams", [1, 2])
@pytest.mark.parametrize(("obs", "ends"), [(3, True), (50, True), (50, False)], ids=["an end", "both", "a break"])
def test_an_add_that_stands_still_holds_nobody_up(obs, ends, streams):
    """All is found while an add has written everything but the head: a break before its step, and an end with it."""
    replay, episodes = ring(10, streams)
    play(replay, [2, 2])
    replay.add(obs + 1, 0, 0.0, obs + 2, ends)
    if obs == 3:
        replay.add(obs + 2, 0, 0.0, obs + 3, terminated=True)
    replay._store.marks[0, 0] -= 1
    steps, first, last = found(replay, episodes)

    assert steps.times.tolist() == list(range(4 + (obs == 3)))
    assert first.tolist() == [0, 0, *[2] * (len(first) - 2)]
    assert last.tolist() == [1, 1, *[len(last) - 1] * (len(last) - 2)]
