"""The slope of memory over steps, and whether its interval is as sure as it says."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.guard import Slope, slope

MIB = 2**20
STEPS = np.arange(200) * 5000


def noise(rng, count, memory=0.0):
    """Give a series of standard deviation 1 in which each value keeps a share of the one before."""
    series = rng.standard_normal(count)
    for at in range(1, count):
        series[at] = memory * series[at - 1] + math.sqrt(1 - memory**2) * series[at]
    return series


def coverage(memory, count=100, runs=300, growth=3.0):
    """Give the share of runs whose interval holds the true growth."""
    rng = np.random.default_rng(7)
    steps = np.arange(count) * 10
    hits = 0
    for _ in range(runs):
        found = slope(steps, growth * steps + 500 * noise(rng, count, memory))
        hits += found.low <= growth <= found.high
    return hits / runs


def test_a_straight_line_is_found_exactly():
    """Without noise the slope and both ends of its interval are the line's."""
    found = slope(STEPS, 3 * STEPS + 7 * MIB)

    assert found == Slope(3.0, 3.0, 3.0)


def test_flat_memory_has_slope_zero():
    """Memory that never moves gives zero, surely."""
    assert slope(STEPS, np.full(len(STEPS), 250 * MIB)) == Slope(0.0, 0.0, 0.0)


def test_spikes_do_not_bend_the_line():
    """A sixth of the measurements, a hundred times the size, move the slope by less than a tenth of a byte a step."""
    rng = np.random.default_rng(1)
    nbytes = 2.0 * STEPS + 1000 * rng.standard_normal(len(STEPS))
    nbytes[rng.choice(len(STEPS), 33, replace=False)] += 200 * MIB

    found = slope(STEPS, nbytes)

    assert abs(found.per_step - 2) < 0.1
    assert found.low > 1.5


def test_a_staircase_of_many_stairs_is_growth():
    """Memory that grows a MiB at a time, as allocators take it, has the slope of the line through its stairs."""
    rate = 10 * MIB / STEPS[-1]

    found = slope(STEPS, np.floor(rate * STEPS / MIB) * MIB)

    assert found.low > 0
    assert found.low <= rate <= found.high
    assert abs(found.per_step - rate) < 0.1 * rate


def test_one_stair_is_no_growth():
    """A single jump of 4 MiB, wherever it comes, does not make a trend."""
    for at in range(0, len(STEPS), 10):
        found = slope(STEPS, np.where(np.arange(len(STEPS)) < at, 0, 4 * MIB))

        assert found.low <= 0 <= found.high


def test_a_run_that_accelerates_is_growth():
    """Growth that is no line at all, but never falls, is sure to be growth."""
    assert slope(STEPS, STEPS.astype(np.float64) ** 2 / 1e4).low > 0


@pytest.mark.parametrize(("memory", "least"), [(0.0, 0.92), (0.5, 0.92), (0.8, 0.88)])
def test_the_interval_holds_the_truth(memory, least):
    """About 95 of 100 intervals hold the true growth, also where each measurement is like the one before."""
    assert coverage(memory) >= least


def test_the_coverage_check_sees_an_interval_that_is_too_narrow(monkeypatch):
    """With the measurements taken as independent, as Sen does, far fewer intervals hold the truth."""
    monkeypatch.setattr(sys.modules["ringfence.guard.slope"], "_independent", len)

    assert coverage(0.8) < 0.7


def test_the_interval_is_no_wider_than_it_has_to_be():
    """A growth of three times the noise over the run is seen in nearly every run."""
    rng = np.random.default_rng(3)
    seen = sum(slope(STEPS, 3 * STEPS / STEPS[-1] + noise(rng, len(STEPS), 0.5)).low > 0 for _ in range(100))

    assert seen >= 95


@given(st.lists(st.floats(-1e12, 1e12), min_size=2, max_size=30), st.data())
def test_the_interval_encloses_the_slope(nbytes, data):
    """Whatever was measured, low <= slope <= high, and the slope lies between the extremes of all pairs."""
    steps = sorted(data.draw(st.lists(st.integers(0, 1000), min_size=len(nbytes), max_size=len(nbytes), unique=True)))

    found = slope(steps, nbytes)

    assert found.low <= found.per_step <= found.high


@pytest.mark.parametrize(("count", "sure"), [(2, False), (5, False), (6, True)])
def test_few_measurements_are_sure_of_nothing(count, sure):
    """Fewer than six measurements give a slope, and an interval without ends."""
    found = slope(range(count), range(count))

    assert found.per_step == 1
    assert math.isfinite(found.low) == math.isfinite(found.high) == sure


def test_measurements_at_one_step_count_among_the_others():
    """Several measurements at the same step have no slope among themselves, and one with each of the rest."""
    found = slope([0, 0, 0, 1, 1, 1], [0, 0, 0, 2, 2, 2])

    assert found.per_step == 2


@pytest.mark.parametrize(
    ("steps", "nbytes", "text"),
    [
        ([1], [1], "two different steps or more, got 1"),
        ([], [], "two different steps or more, got 0"),
        ([3, 3], [1, 2], "two different steps or more, got 1"),
        ([1, 2], [1], "nbytes: expected 2 values"),
        ([2, 1], [1, 2], "steps: expected them in the order"),
        ([1, 2], [1, math.nan], "nbytes: expected finite numbers, got nan"),
        ([[1, 2]], [1, 2], r"steps: expected a flat list of numbers, got shape \(1, 2\)"),
    ],
)
def test_what_has_no_slope_is_refused(steps, nbytes, text):
    """Measurements without two steps, out of order, of different number or not finite are refused by name."""
    with pytest.raises(ValueError, match=text):
        slope(steps, nbytes)
