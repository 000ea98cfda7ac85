"""Stacks of every step of a window: right at each step, and each frame kept once until they are asked for."""

import numpy as np
import pytest
from tests.view.test_sequences import one, starts
from tests.view.test_transitions import play, ring

from ringfence import Field


@pytest.mark.parametrize(
    ("pad", "stacks"), [("first", [[1, 1, 1], [1, 1, 2], [1, 2, 3]]), ("zero", [[0, 0, 1], [0, 1, 2], [1, 2, 3]])]
)
def test_each_step_has_its_stack(pad, stacks):
    """Of a stacked field every step shows its own stack, from frames of its episode alone."""
    replay = ring(Field((), np.int64, stack=3, pad=pad))
    play(replay, [1, 2, 3, 4], "terminated")
    play(replay, [50, 51, 52])
    view = replay.sequences(3, boundary="cross", bootstrap=True)

    assert one(view, 1)["obs"] == [*stacks, [2, 3, 4]]
    first = 50 if pad == "first" else 0
    assert one(view, 3)["obs"] == [[1, 2, 3], [first, first, 50], [first, 50, 51], [50, 51, 52]]


def test_frames_before_the_window_must_be_held():
    """A window begins where the stack of its first step is whole: its earlier frames are held, or never were."""
    replay = ring(Field((), np.int64, stack=3), capacity=6)
    play(replay, list(range(1, 10)))
    view = replay.sequences(2)

    assert replay.episode_lengths() == [6]
    assert starts(view) == [5, 6, 7]
    assert one(view, 5)["obs"] == [[3, 4, 5], [4, 5, 6]]


def test_a_strip_holds_each_frame_once():
    """Until stacks are asked for, a batch of T steps keeps T + k - 1 frames of each window."""
    replay = ring(Field((84, 84), np.uint8, stack=4))
    play(replay, range(40), make=lambda now: np.full((84, 84), now, np.uint8))
    batch = replay.sequences(16).sample(2)

    assert batch._taken.arrays["obs"].shape == (2 * 19, 84, 84)
    assert batch.obs.shape == (2, 16, 4, 84, 84)
