# ruff: noqa: D102 - draw/base.py says what each method of a draw does
"""Priorities of windows, from one number each or from the TD errors of their steps."""

import numpy as np
import pytest
from tests.view.test_sequences import HIDDEN, hidden
from tests.view.test_transitions import play, ring

from ringfence.draw import Drawn, Uniform
from ringfence.timeline import Anchors


class Told:
    """Draw uniformly, and remember what it was told of priorities."""

    def __init__(self):
        self.uniform, self.told = Uniform(0), {}

    def start(self, timeline, window, generator):
        self.timeline = timeline
        self.uniform.start(timeline, window, generator)

    def draw(self, look, count):
        drawn = self.uniform.draw(look, count)
        return Drawn(drawn.anchors, np.full(count, 0.25), np.full(count, 0.5, np.float32))

    def update(self, anchors: Anchors, priorities):
        self.told = dict(zip(anchors.times.tolist(), priorities.tolist(), strict=True))
        return int(self.timeline.holds(self.timeline.ids(anchors)).sum())

    def stats(self):
        return {"told": len(self.told)}


def told(length, **options):
    """Build a view of a ring of ten steps whose draw remembers what it is told."""
    replay, draw = ring(extras=HIDDEN), Told()
    play(replay, range(11), hidden=hidden)
    return replay.sequences(length, draw=draw, **options), draw


def test_priorities_of_windows_are_handed_on():
    """One priority a window goes to the draw as it is."""
    view, draw = told(3)

    assert view.update_priorities(np.array([1, 4]), np.array([0.5, 2.0])) == (2, 0)
    assert draw.told == {1: 0.5, 4: 2.0}
    assert view.stats() == {"told": 2}


def test_td_errors_of_steps_are_folded():
    """Of a window's steps the priority is 0.9 of the largest absolute error and 0.1 of their mean, burn-in left out."""
    view, draw = told(2, burn_in=1)
    errors = np.array([[50.0, -3.0, 1.0], [50.0, 0.0, 2.0]])

    view.update_priorities(np.array([0, 5]), errors)
    assert draw.told == pytest.approx({0: 0.9 * 3 + 0.1 * 2, 5: 0.9 * 2 + 0.1 * 1})
    before = dict(draw.told)
    view.update_priorities(np.array([0, 5]), errors[:, 1:])
    assert draw.told == before
    view.update_priorities(np.array([0, 5]), errors, eta=0.0)
    assert draw.told == pytest.approx({0: 2.0, 5: 1.0})


def test_td_errors_with_the_time_first():
    """In a view with the time first errors are (T, B)."""
    view, draw = told(2, burn_in=1, time_major=True)

    view.update_priorities(np.array([0, 5]), np.array([[50.0, 50.0], [-3.0, 0.0], [1.0, 2.0]]))
    assert draw.told == pytest.approx({0: 2.9, 5: 1.9})


def test_td_errors_of_padding_do_not_count():
    """Whatever stands at padded steps, NaN too, is left out; a window without a step to learn from is not told."""
    view, draw = told(2, burn_in=1, boundary="pad")
    errors = np.array([[9.0, 4.0, np.nan], [9.0, np.nan, np.nan], [9.0, 1.0, 3.0]])

    assert view.update_priorities(np.array([8, 9, 2]), errors) == (2, 0)
    assert draw.told == pytest.approx({8: 4.0, 2: 0.9 * 3 + 0.1 * 2})


def test_a_mask_says_which_steps_there_were():
    """Where an episode has grown since the draw, the batch's own ``learning`` decides."""
    view, draw = told(3, boundary="pad")
    learning = np.array([[True, True, False]])

    view.update_priorities(np.array([2]), np.array([[1.0, 3.0, 99.0]]), mask=learning)
    assert draw.told == pytest.approx({2: 0.9 * 3 + 0.1 * 2})
    with pytest.raises(ValueError, match=r"mask: expected shape \(1, 3\) as td, got \(1, 2\)"):
        view.update_priorities(np.array([2]), np.zeros((1, 3)), mask=learning[:, :2])


@pytest.mark.parametrize("boundary", ["stop", "pad"])
def test_priorities_of_gone_windows_are_counted(boundary):
    """Ids of steps that are gone, or never were, are stale."""
    view, _ = told(2, boundary=boundary)

    assert view.update_priorities(np.array([3, 500, -1]), np.ones((3, 2))) == (1, 2)


def test_wrong_priorities_are_refused():
    """Shapes that do not fit, a weight that is none, and a draw without priorities are errors."""
    view, _ = told(2, burn_in=1)

    with pytest.raises(ValueError, match=r"td: expected shape \(2,\), \(2, 3\) or \(2, 2\), got \(3, 2\)"):
        view.update_priorities(np.array([0, 1]), np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"priorities: expected one for each of \(2,\) ids, got shape \(3,\)"):
        view.update_priorities(np.array([0, 1]), np.zeros(3))
    with pytest.raises(ValueError, match=r"eta: expected a number from 0 to 1, got 1\.5"):
        view.update_priorities(np.array([0, 1]), np.zeros(2), eta=1.5)
    replay = ring()
    play(replay, range(9))
    with pytest.raises(TypeError, match="Uniform draws have no priorities"):
        replay.sequences(2).update_priorities(np.array([0]), np.zeros((1, 2)))


def test_what_a_draw_says_of_its_chances_is_given_on():
    """Probabilities and weights are the draw's, where it has some."""
    batch = told(2)[0].sample(4)

    assert (batch.probabilities.tolist(), batch.weights.tolist()) == ([0.25] * 4, [0.5] * 4)
