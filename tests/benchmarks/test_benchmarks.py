"""The benchmarks still run, and their checks still tell right from wrong."""

from importlib.util import find_spec

import numpy as np
import pytest
from benchmarks import checks, data, meter, peers, works

TINY = works.Size(capacity=640, frames=1000, laps=1, recorded=False, torch=find_spec("torch") is not None)


def supported():
    """Pair each workload with those of our two own adapters that offer it."""
    every = [(work, peer) for work in works.WORKS for peer in ("ringfence", "naive")]
    return [pair for pair in every if pair != ("nstep", "naive")]


@pytest.mark.parametrize(("work", "peer"), supported())
def test_workload_passes_its_checks_and_its_cases_run(work, peer):
    """At a tiny size every row drawn is right, and each case can be timed."""
    bench = works.WORKS[work](peer, TINY)
    assert bench.verdict.wrong == []
    assert bench.verdict.drawn.sum() > 10 * works.SMALL
    assert all(meter.chunk(timer, 3) > 0 for timer in bench.cases.values())
    assert bench.cases or bench.facts["adds"] == TINY.capacity


def test_missing_workload_is_unsupported():
    """A peer that offers nothing for a workload says so, instead of failing."""
    with pytest.raises(peers.Unsupported, match="naive has no nstep"):
        works.nstep("naive", TINY)


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
