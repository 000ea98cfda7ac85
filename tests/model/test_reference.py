"""The reference against cases small enough to write out by hand."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from ringfence.schema import Field, Schema
from ringfence.testing.reference import ReferenceReplay

NUMBER = Schema(obs=Field((), np.float32), action=Field((), np.int64))


def with_stack(pad: str = "first", axis: int = -1) -> Schema:
    """Make a schema whose observation is two numbers, three frames of them."""
    return Schema(obs=Field((2,), np.int8, stack=3, stack_axis=axis, pad=pad), action=Field((), np.int64))


def walk(replay: ReferenceReplay, *numbers: float, end: str = "", stream: int = 0) -> None:
    """Add an episode that sees these numbers; each action is the number seen, each reward a tenth of the next."""
    for here, there in pairwise(numbers):
        last = there == numbers[-1]
        obs, next_obs = (np.broadcast_to(n, replay.schema.obs.shape) for n in (here, there))
        replay.add(obs, here, there / 10, next_obs, last and end == "terminated", last and end == "truncated", stream)


def times(replay: ReferenceReplay, stream: int = 0) -> list[int]:
    """List the times of a stream that can be drawn."""
    return [time for number, time in replay.anchors() if number == stream]


def frames(obs: Any) -> list[int]:
    """Read the numbers of a stack along its last axis."""
    return obs[0].tolist()


def test_a_step_comes_back_as_it_was_added() -> None:
    """A one-step transition holds exactly what was added, in the dtypes of the schema."""
    replay = ReferenceReplay(NUMBER, capacity=4)
    key = replay.add(1, 2, 0.5, 3, False)

    got = replay.transition(key)

    assert (got.obs, got.action, got.reward, got.next_obs) == (1, 2, 0.5, 3)
    assert (got.terminated, got.truncated, got.discount, got.steps) == (False, False, 0.99, 1)
    assert got.obs.dtype == np.float32
    assert got.action.dtype == np.int64


def test_only_the_newest_steps_are_held() -> None:
    """A stream of three holds times 2 to 4 of five, and the other stream's steps do not count against it."""
    replay = ReferenceReplay(NUMBER, capacity=7, streams=2)
    walk(replay, 1, 2, 3, 4, 5, 6)
    walk(replay, 9, 8, stream=1)

    assert replay.anchors() == [(0, 2), (0, 3), (0, 4), (1, 0)]
    assert len(replay) == 4


def test_episode_lengths_count_what_is_held_of_each_episode() -> None:
    """The oldest episode is counted by what is left of it and the open one comes last."""
    replay = ReferenceReplay(NUMBER, capacity=6)
    walk(replay, 1, 2, 3, 4, end="terminated")
    walk(replay, 5, 6, end="truncated")
    walk(replay, 7, 8, 9, 10)

    assert replay.episode_lengths() == [2, 1, 3]


def test_an_empty_stream_has_no_episodes() -> None:
    """Nothing added, or all of it cleared, is no episode rather than one of no steps."""
    replay = ReferenceReplay(NUMBER, capacity=4)

    before = replay.episode_lengths()
    walk(replay, 1, 2)
    replay.clear()

    assert before == replay.episode_lengths() == replay.anchors() == []
    assert len(replay) == 0


def test_n_step_adds_discounted_rewards_and_ends_on_the_true_successor() -> None:
    """Three steps from 1 give 0.2 + 0.5 * 0.3 + 0.25 * 0.4 and the observation 4."""
    replay = ReferenceReplay(NUMBER, capacity=9)
    walk(replay, 1, 2, 3, 4, 5)

    got = replay.transition((0, 0), n_step=3, gamma=0.5)

    assert got.reward == pytest.approx(0.45)
    assert (got.next_obs, got.steps, got.discount) == (4, 3, 0.125)


@pytest.mark.parametrize(("end", "discount"), [("terminated", 0.0), ("truncated", 0.25), ("", 0.25)])
def test_n_step_stops_at_an_end_a_break_and_the_newest_step(end: str, discount: float) -> None:
    """Of five steps asked for only the two of this episode are used; only termination takes the discount to 0."""
    replay = ReferenceReplay(NUMBER, capacity=9)
    walk(replay, 1, 2, 3, end=end)
    newest = replay.transition((0, 0), n_step=5, gamma=0.5)
    walk(replay, 7, 8)

    got = replay.transition((0, 0), n_step=5, gamma=0.5)

    assert got == newest
    assert (got.next_obs, got.steps, got.discount) == (3, 2, discount)
    assert (got.terminated, got.truncated) == (end == "terminated", end == "truncated")


def test_an_obs_that_does_not_follow_is_a_break() -> None:
    """A jump is counted and starts an episode; an end before it, or the same bits, are no break."""
    replay = ReferenceReplay(NUMBER, capacity=9)
    walk(replay, 1, 2)
    walk(replay, 2, 3)
    walk(replay, 5, 6, end="truncated")
    walk(replay, 1, 2)

    assert replay.breaks == 1
    assert replay.episode_lengths() == [2, 1, 1]


def test_nan_follows_nan() -> None:
    """Bits are compared, not values: NaN goes on after NaN, 0.0 does not after -0.0."""
    replay = ReferenceReplay(NUMBER, capacity=9)
    replay.add(1, 0, 0, np.nan, False)
    replay.add(np.nan, 0, 0, -0.0, False)
    replay.add(0.0, 0, 0, 1, False)

    assert replay.episode_lengths() == [2, 1]


def test_a_value_is_rounded_to_the_stored_dtype_before_it_is_compared_and_widened_after() -> None:
    """Two numbers that float16 can't tell apart follow each other, and come back as one float32."""
    replay = ReferenceReplay(Schema(obs=Field((), np.float32, stored=np.float16), action=Field((), np.int64)), 9)
    replay.add(1, 0, 0, 0.1, False)
    key = replay.add(0.09999, 0, 0, 1, False)

    assert replay.breaks == 0
    assert replay.transition(key).obs == np.float32(np.float16(0.1))
    assert replay.transition(key).obs.dtype == np.float32


@pytest.mark.parametrize(("pad", "padding"), [("first", 1), ("zero", 0)])
def test_a_stack_is_padded_before_the_first_frame(pad: str, padding: int) -> None:
    """The first two stacks of an episode repeat its first frame, or zeros; the next one is full."""
    replay = ReferenceReplay(with_stack(pad), capacity=9)
    walk(replay, 1, 2, 3, 4)
    got = [replay.transition((0, time)) for time in range(3)]

    assert [frames(t.obs) for t in got] == [[padding, padding, 1], [padding, 1, 2], [1, 2, 3]]
    assert [frames(t.next_obs) for t in got] == [[padding, 1, 2], [1, 2, 3], [2, 3, 4]]


def test_a_stack_does_not_reach_into_the_episode_before() -> None:
    """After an end and after a break the stack starts over with its own first frame."""
    replay = ReferenceReplay(with_stack(), capacity=9)
    walk(replay, 1, 2, 3, end="terminated")
    walk(replay, 5, 6)
    walk(replay, 8, 9)

    assert frames(replay.transition((0, 2)).obs) == [5, 5, 5]
    assert frames(replay.transition((0, 3)).next_obs) == [8, 8, 9]


def test_a_stack_whose_episode_lost_its_beginning_needs_all_its_frames() -> None:
    """Of four held steps of a cut episode the first two can't be drawn; n-step does not bring them back."""
    replay = ReferenceReplay(with_stack(), capacity=4)
    walk(replay, 1, 2, 3, 4, 5, 6)

    assert times(replay) == [3, 4]
    assert frames(replay.transition((0, 3), n_step=2).obs) == [2, 3, 4]
    assert frames(replay.transition((0, 3), n_step=2).next_obs) == [4, 5, 6]
    with pytest.raises(KeyError, match="2"):
        replay.transition((0, 2))


def test_a_cut_episode_shorter_than_the_stack_can_not_be_drawn() -> None:
    """Where fewer steps of a cut episode are left than the stack has frames, only later episodes can be drawn."""
    replay = ReferenceReplay(with_stack(), capacity=3)
    walk(replay, 1, 2, 3, 4, end="terminated")
    walk(replay, 5, 6)

    assert times(replay) == [3]


@pytest.mark.parametrize("axis", [0, -1])
def test_of_a_stack_that_is_passed_whole_the_newest_frame_counts(axis: int) -> None:
    """A caller that stacks by itself stores the same as one that does not."""
    replay = ReferenceReplay(with_stack(axis=axis), capacity=9)
    whole = [np.stack([[7, 7], [7, 7], [n, n]], axis=axis) for n in (1, 2)]
    replay.add(whole[0], 0, 0, whole[1], False)

    assert np.array_equal(replay.transition((0, 0)).next_obs, np.stack([[1, 1], [1, 1], [2, 2]], axis=axis))


def test_extend_is_one_add_a_row() -> None:
    """Rows go to the streams they name, and to all in order where none are named."""
    schema = Schema(obs={"a": (Field((), np.int8),)}, action=Field((), np.int64), extras={"x": Field((), np.int8)})
    replay = ReferenceReplay(schema, capacity=9, streams=3)
    row: dict[str, Any] = {"obs": {"a": (np.arange(3),)}, "next_obs": {"a": (np.arange(3) + 1,)}}
    rest = {"action": [4, 5, 6], "reward": [0, 0, 0], "terminated": [0, 0, 1], "truncated": [0, 0, 0], "x": [7, 8, 9]}

    assert replay.extend(**row, **rest) == [(0, 0), (1, 0), (2, 0)]
    assert replay.extend(**row, **rest, streams=[2, 0, 1])[0] == (2, 1)
    assert replay.transition((2, 0)).terminated
    assert replay.transition((2, 0)).extras == {"x": 9}
    assert replay.transition((2, 1)).obs == {"a": (0,)}
    assert replay.transition((2, 1)).action == 4


def test_times_go_on_after_a_clear_and_the_next_step_starts_an_episode() -> None:
    """A key is never given twice, and what follows a clear is neither a break nor cut."""
    replay = ReferenceReplay(with_stack(), capacity=9)
    walk(replay, 1, 2, 3)
    replay.clear()
    walk(replay, 6, 7)

    assert replay.anchors() == [(0, 2)]
    assert replay.breaks == 0
    assert frames(replay.transition((0, 2)).obs) == [6, 6, 6]
