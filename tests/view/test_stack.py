"""Stacks of frames, in cases small enough to follow by hand. Each frame is a number that says when it was."""

import itertools
import re

import numpy as np
import pytest
from tests.view.test_transitions import drawn, play

from ringfence import Field, NotEnoughData, Replay, Schema

NUMBER = Field((), np.int64)


def ring(field, capacity=100, streams=1):
    """Build an empty ring for one stacked observation."""
    return Replay(Schema(obs=field, action=NUMBER), capacity=capacity, streams=streams, seed=0)


def frames(stack=3, **options):
    """Describe observations whose frames are single numbers."""
    return Field((), np.int64, stack=stack, **options)


def test_a_stack_ends_with_the_step_s_own_frame():
    """Obs shows the frames up to the step, oldest first; next_obs the same one step later."""
    replay = ring(frames())
    play(replay, [1, 2, 3, 4, 5])
    row = drawn(replay.transitions())[4]

    assert (row.obs, row.next_obs) == ([2, 3, 4], [3, 4, 5])


@pytest.mark.parametrize(
    ("pad", "stacks"), [("first", [[1, 1, 1], [1, 1, 2], [1, 2, 3]]), ("zero", [[0, 0, 1], [0, 1, 2], [1, 2, 3]])]
)
def test_before_an_episode_s_first_frame(pad, stacks):
    """Frames that an episode does not have are its first one again, or zeros."""
    replay = ring(frames(pad=pad))
    play(replay, [1, 2, 3])
    seen = drawn(replay.transitions())

    assert [seen[1].obs, seen[1].next_obs, seen[2].next_obs] == stacks
    assert seen[2].obs == seen[1].next_obs


@pytest.mark.parametrize("end", ["terminated", "truncated", "break"])
def test_a_stack_does_not_reach_into_the_episode_before(end):
    """The frames of an episode are its own, and the final one is in next_obs alone."""
    replay = ring(frames())
    play(replay, [1, 2, 3, 4], end)
    play(replay, [50, 51, 52])
    seen = drawn(replay.transitions())

    assert (seen[3].obs, seen[3].next_obs) == ([1, 2, 3], [2, 3, 4])
    assert (seen[50].obs, seen[50].next_obs) == ([50, 50, 50], [50, 50, 51])
    assert (seen[51].obs, seen[51].next_obs) == ([50, 50, 51], [50, 51, 52])


def test_an_episode_of_one_step():
    """An episode that ends at once has one frame and a final one."""
    replay = ring(frames())
    play(replay, [1, 2], "terminated")
    play(replay, [50, 51], "terminated")

    row = drawn(replay.transitions())[50]
    assert (row.obs, row.next_obs, row.discount) == ([50, 50, 50], [50, 50, 51], 0.0)


def test_stacks_over_several_steps():
    """With n steps, obs is the stack at the anchor and next_obs the one after the last step used."""
    replay = ring(frames())
    play(replay, [1, 2, 3, 4, 5, 6], "truncated")
    play(replay, [50, 51])
    seen = drawn(replay.transitions(3))

    assert [(seen[now].obs, seen[now].next_obs, seen[now].steps) for now in (1, 3, 5, 50)] == [
        ([1, 1, 1], [2, 3, 4], 3),
        ([1, 2, 3], [4, 5, 6], 3),
        ([3, 4, 5], [4, 5, 6], 1),
        ([50, 50, 50], [50, 50, 51], 1),
    ]


@pytest.mark.parametrize(("axis", "shape"), [(0, (4, 6, 5)), (-1, (6, 5, 4))])
def test_the_axis_of_the_frames(axis, shape):
    """Frames lie along the first axis or the last, as the schema says; nothing else differs."""
    replay = ring(Field((6, 5), np.uint8, stack=4, stack_axis=axis))
    for now in range(8):
        replay.add(np.full((6, 5), now), now, 0.0, np.full((6, 5), now + 1), False)
    batch = replay.sample(50)

    assert batch.obs.shape == batch.next_obs.shape == (50, *shape)
    for row, now in enumerate(batch.action):
        expected = [max(0, now - 3), max(0, now - 2), max(0, now - 1), now]
        assert np.moveaxis(batch.obs[row], axis, 0)[:, 5, 4].tolist() == expected
        assert np.moveaxis(batch.next_obs[row], axis, 0)[-1, 0, 0] == now + 1


def test_a_stack_whose_first_frames_are_gone_is_not_drawn():
    """Once an episode's beginning was overwritten, only steps with all their frames are drawn; nothing is made up."""
    replay = ring(frames(), capacity=6)
    play(replay, list(range(1, 11)))
    view = replay.transitions()
    seen = drawn(view)

    assert replay.episode_lengths() == [6]
    assert list(seen) == [6, 7, 8, 9]
    assert seen[6].obs == [4, 5, 6]
    assert view.ids().tolist() == [5, 6, 7, 8]
    assert view.can_sample(4)
    assert not view.can_sample(5)


def test_an_episode_whose_first_frame_is_held_is_padded_all_the_same():
    """What is missing is padded only where the episode never had it."""
    replay = ring(frames(), capacity=5)
    play(replay, [1, 2, 3, 4, 5, 6], "terminated")
    play(replay, [50, 51, 52])
    seen = drawn(replay.transitions())

    assert list(seen) == [5, 50, 51]
    assert (seen[5].obs, seen[50].obs) == ([3, 4, 5], [50, 50, 50])


def test_where_no_stack_is_whole_the_error_has_the_counts():
    """Steps may be held and yet none be drawn: the error says so at once, with the counts."""
    replay = ring(frames(4), capacity=4)
    play(replay, list(range(20)))
    assert list(drawn(replay.transitions())) == [18]

    replay = ring(frames(4), capacity=8, streams=2)
    play(replay, list(range(20)))
    replay.add(40, 40, 0.0, 41, False)  # a break: of the old episode three steps are left, of this one its first
    assert list(drawn(replay.transitions())) == [40]


def test_stack_of_one_adds_an_axis():
    """``stack=1`` presents one frame on an axis of its own."""
    replay = ring(frames(1))
    play(replay, [1, 2, 3])

    assert drawn(replay.transitions())[2].obs == [2]


def test_fields_of_one_observation_may_differ_in_their_stacks():
    """Each field has its own number of frames; a step is drawn where the longest stack is whole."""
    fields = {"short": frames(2), "long": frames(4), "plain": NUMBER}
    replay = ring(fields, capacity=6)
    play(replay, list(range(1, 11)), make=lambda now: dict.fromkeys(fields, now))
    seen = drawn(replay.transitions())

    assert list(seen) == [7, 8, 9]
    assert seen[7].obs == {"short": [6, 7], "long": [4, 5, 6, 7], "plain": 7}
    assert seen[7].next_obs == {"short": [7, 8], "long": [5, 6, 7, 8], "plain": 8}


def test_whole_stacks_may_be_added():
    """An environment that stacks by itself hands whole stacks in, and the same ones come out."""
    replay = ring(frames())
    stacks = [[1, 1, 1], [1, 1, 2], [1, 2, 3], [2, 3, 4]]
    for now, later in itertools.pairwise(stacks):
        replay.add(now, now[-1], 0.0, later, False)
    seen = drawn(replay.transitions())

    assert [seen[now].obs for now in (1, 2, 3)] == stacks[:3]
    assert [seen[now].next_obs for now in (1, 2, 3)] == stacks[1:]


def test_a_stored_dtype_is_widened_frame_by_frame():
    """Stacked frames may be kept narrower too."""
    replay = ring(Field((2,), np.float32, stored=np.float16, stack=2))
    for now in range(3):
        replay.add([now / 10] * 2, now, 0.0, [(now + 1) / 10] * 2, False)
    row = drawn(replay.transitions())[2]

    expected = np.float16([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3]]).astype(np.float32).tolist()
    assert (row.obs, row.next_obs) == (expected[:2], expected[1:])


def test_nothing_of_an_empty_ring():
    """The error names what a stack needs."""
    with pytest.raises(NotEnoughData, match=re.escape("a window needs 2 step(s) before and 0 after its anchor")):
        ring(frames()).sample(1)
