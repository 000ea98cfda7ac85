# ruff: noqa: D102 - peers/base.py says what each method does
"""The benchmarks still run, and their checks still tell right from wrong."""

import os
from importlib.util import find_spec
from itertools import cycle

import numpy as np
import pytest
from benchmarks import checks, data, harness, meter, peers, priorities, screens, works
from benchmarks.peers.base import PrioritizedRing

TINY = works.Size(
    capacity=640,
    frames=1000,
    laps=1,
    recorded=False,
    torch=find_spec("torch") is not None,
    screens=2000,
    rings=(640, 1280),
)
MISSING = {("nstep", "naive"), ("per", "naive"), ("scaling", "naive")}


def supported():
    """Pair each workload with those of our two own adapters that offer it."""
    every = [(work, peer) for work in works.WORKS for peer in ("ringfence", "naive")]
    return [pair for pair in every if pair not in MISSING]


@pytest.mark.parametrize(("work", "peer"), supported())
def test_workload_passes_its_checks_and_its_cases_run(work, peer):
    """At a tiny size every row drawn is right, and each case can be timed."""
    bench = works.WORKS[work](peer, TINY)
    assert bench.verdict.wrong == []
    assert bench.verdict.drawn.sum() > 1000
    assert all(meter.chunk(timer, 3) > 0 for timer in bench.cases.values())
    assert bench.cases or bench.facts["adds"] == TINY.capacity


@pytest.mark.parametrize(("work", "peer"), sorted(MISSING))
def test_missing_workload_is_unsupported(work, peer):
    """A peer that offers nothing for a workload says so, instead of failing."""
    with pytest.raises(peers.Unsupported, match=f"{peer} has no {work}"):
        works.WORKS[work](peer, TINY)


@pytest.mark.parametrize("name", ["obs", "action", "reward", "next_obs", "terminated", "truncated", "discount"])
def test_check_finds_one_wrong_value(name):
    """One value of one row that is not what was put in makes the verdict wrong, by the field's name."""
    steps = data.Steps.generate(100, episode=10, window=3, gamma=0.99)

    def draw(count):
        batch = steps.want(np.arange(count))
        batch[name].reshape(count, -1)[0, -1] += 1
        return batch

    verdict = checks.check(draw, steps, range(100), count=5, times=1)
    assert f"{name} (inside 1/5)" in verdict.wrong


def test_check_finds_evicted_rows_and_shared_memory():
    """Rows that the ring had to drop, and a batch that is a view of the one before, are faults."""
    steps = data.Steps.generate(100)
    batch = steps.want(np.arange(40, 60))
    verdict = checks.check(lambda _: batch, steps, range(50, 100), count=20, times=2)
    assert "draws rows that are not in the ring" in verdict.wrong
    assert "obs shares memory with the batch before" in verdict.wrong


def test_pure_peer_runs_without_compiled_loops():
    """The worker of ringfence-pure, which refuses compiled loops, has its variable before the library is imported."""
    cpu = min(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0), dict(os.environ)
    try:
        (result,) = harness.measure("per", ["ringfence-pure"], TINY, 1, cpu, 0.001, lambda _: None)
    finally:
        os.sched_setaffinity(0, before[0])
        for name in os.environ.keys() - before[1].keys():
            del os.environ[name]
    assert result.ready.failed == ""
    assert result.ready.verdict.wrong == []
    assert all(len(times) == 1 for times in result.times.values())


class Lawful(PrioritizedRing):
    """Draws by the law: priorities kept in an array, and everything computed anew for each batch."""

    off = 0.0
    """Added to alpha."""
    tilt = 0.0
    """Added to beta."""
    forgets = False
    """Leaves out updates after the first."""

    def __init__(self, steps):
        self.steps, self.rng, self.known, self.at = steps, np.random.default_rng(0), None, 0

    def add(self, *_row):
        self.known[self.at % len(self.steps)] = 1
        self.at += 1

    def update(self, at, priorities):
        if self.known is None:
            self.known = priorities.copy()
        elif not self.forgets:
            self.known[at] = priorities

    def numpy(self, count):
        mass = self.known ** (priorities.ALPHA + self.off)
        at = self.rng.choice(len(mass), count, p=mass / mass.sum())
        weights = mass[at] ** -(priorities.BETA + self.tilt)
        return self.steps.want(at) | {"at": at, "weights": weights / weights.max()}


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ({}, []),
        ({"off": -priorities.ALPHA}, ["the mean priority drawn, as first given", "the mean priority drawn, after"]),
        ({"tilt": 0.1}, ["weights as first given", "weights after updates"]),
        ({"forgets": True}, ["weights after updates", "the mean priority drawn, after"]),
    ],
)
def test_law_tells_wrong_priorities(fault, found):
    """Uniform draws, weights of another beta and lost updates are each seen, and a right ring is not blamed."""
    steps = data.Steps.generate(640)
    ring = Lawful(steps)
    for name, value in fault.items():
        setattr(ring, name, value)
    faults = priorities.faults(ring, steps, cycle(steps.rows(100)), turns=20)
    if "off" in fault:  # weights follow from the priorities that it pretends to have
        faults = [fault for fault in faults if not fault.startswith("weights")]
    assert [any(fault.startswith(start) for fault in faults) for start in found] == [True] * len(found)
    assert bool(faults) == bool(found)


def windows(truth, first):
    """Return a right batch of windows."""
    ids = np.asarray(first)[:, None] + np.arange(screens.LENGTH)
    shape = ids.shape
    columns = truth.columns(ids.reshape(-1))
    return {
        name: column.reshape(*shape, *column.shape[1:]) for name, column in zip(screens.FIELDS, columns, strict=True)
    }


def test_window_check_counts_crossings():
    """A window over an end is noted, one that stops at it is not, and neither is wrong."""
    truth, verdict = screens.Screens(400, episode=100), checks.Verdict()
    screens.check_windows(verdict, iter([windows(truth, [0, 36, 37, 300])]), truth, 400)
    assert verdict.wrong == []
    assert verdict.notes == ["1 of 4 windows of 400 steps cross an episode's end"]


def test_window_check_finds_gaps_wrong_values_and_old_rows():
    """A window with a gap, a pixel that is not what was put in, and steps that are gone are faults."""
    truth, verdict = screens.Screens(400, episode=100), checks.Verdict()
    gap, pixel, old = windows(truth, [210]), windows(truth, [210]), windows(truth, [10])
    for name, column in windows(truth, [211]).items():
        gap[name][:, -1] = column[:, -1]
    pixel["obs"][0, 3, 5, 5, 1] += 1
    screens.check_windows(verdict, iter([gap, pixel, old]), truth, 100)
    assert "draws windows with a gap" in verdict.wrong
    assert "draws rows that are not in the ring" in verdict.wrong
    assert "obs (inside 1/192)" in verdict.wrong
