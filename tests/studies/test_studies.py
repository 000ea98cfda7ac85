"""The studies still run, tell right from wrong, and their pages show what was measured."""

import itertools
import json
from pathlib import Path
from statistics import median

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from studies import blind_cliffwalk, per_sparse
from studies.cliffwalk import Cliffwalk, Learner, right

DOCS = Path(__file__).parents[2] / "docs" / "studies"
PROPORTIONAL_GAIN = 3


@pytest.fixture(scope="module")
def cliffwalk(tmp_path_factory):
    """Run the small form of the cliffwalk; give its runs by values and way."""
    runs = blind_cliffwalk.main(["--quick", "--out", str(tmp_path_factory.mktemp("cliffwalk"))])
    return {(run["values"], run["way"]): run["updates"] for run in runs}


@pytest.fixture(scope="module")
def sparse(tmp_path_factory):
    """Run the small form of the study of a sparse task; give the folder of its results, and its runs."""
    folder = tmp_path_factory.mktemp("sparse")
    return folder, per_sparse.main(["--quick", "--out", str(folder)])


@pytest.mark.parametrize("states", [2, 3, 6])
def test_memory_holds_every_sequence_of_actions(states):
    """It is what walking all sequences until they end leaves behind."""
    walk, expected = Cliffwalk(states), []
    for actions in itertools.product((0, 1), repeat=states):
        for state, action in enumerate(actions):
            expected.append(2 * state + action)
            if action != right(state):
                break

    found = walk.memory(np.random.default_rng(0))
    assert sorted(expected) == sorted(found.tolist())
    assert len(found) == 2 ** (states + 1) - 2


def test_memory_keeps_sequences_together():
    """A state follows the one before it where the action was right, and else the first."""
    walk = Cliffwalk(5)
    steps = [walk.steps[number] for number in walk.memory(np.random.default_rng(0))]
    for step, following in itertools.pairwise(steps):
        assert following.state == (0 if step.terminated else step.next_state)


@pytest.mark.parametrize("bias", [False, True])
def test_loss_is_carried_exactly(bias):
    """The loss that is carried along, and the one that an update is said to lead to, are those of the values."""
    walk, random = Cliffwalk(6), np.random.default_rng(0)
    learner = Learner(walk, random, bias=bias)
    for number in random.integers(0, 12, 300):
        foretold = learner.loss_after(walk.steps[number])
        learner.learn(walk.steps[number])
        loss = np.mean([(learner.value(at) - true) ** 2 for at, true in enumerate(walk.truth)])

        assert loss == pytest.approx(learner.loss, rel=1e-9) == pytest.approx(foretold, rel=1e-9)


@pytest.mark.parametrize("values", blind_cliffwalk.VALUES)
def test_proportional_replay_learns_the_cliffwalk_sooner(cliffwalk, values):
    """At eight states uniform replay needs 3 times the updates; with linear values, where a bias disturbs, twice."""
    factor = PROPORTIONAL_GAIN if values == "tabular" else 2
    assert median(cliffwalk[values, "uniform"]) >= factor * median(cliffwalk[values, "proportional"])
    assert median(cliffwalk[values, "uniform"]) >= factor * median(cliffwalk[values, "rank-based"])


@pytest.mark.parametrize("values", blind_cliffwalk.VALUES)
def test_oracle_learns_the_cliffwalk_first(cliffwalk, values):
    """Not one run of another way is as fast as its slowest."""
    others = [
        count for (kind, way), counts in cliffwalk.items() if kind == values and way != "oracle" for count in counts
    ]
    assert max(cliffwalk[values, "oracle"]) < min(others)


def test_gain_is_not_there_without_priorities(monkeypatch):
    """With all priorities equal, proportional replay needs about as many updates as uniform replay."""
    flat = blind_cliffwalk.prioritized(lambda: blind_cliffwalk.rf.Prioritized(alpha=0, beta=0))
    monkeypatch.setitem(blind_cliffwalk.WAYS, "flat", flat)
    counts = {
        way: [blind_cliffwalk.updates(way, "tabular", 7, seed) for seed in range(3)] for way in ("uniform", "flat")
    }
    assert median(counts["uniform"]) < PROPORTIONAL_GAIN * median(counts["flat"])


def test_run_that_is_given_up_is_shown(monkeypatch):
    """A run that does not converge counts as endless, in the median and in the range."""
    monkeypatch.setattr(blind_cliffwalk, "PATIENCE", 1)
    count = blind_cliffwalk.updates("uniform", "tabular", 4, seed=0)
    runs = [{"values": "tabular", "way": "uniform", "states": 4, "updates": [count, 7, 9]}]
    assert count is None
    assert "9 (7-never)" in blind_cliffwalk.table(runs, "tabular")


def test_sparse_task_is_solved_both_ways(sparse):
    """Up to the first reward both ways see the same, and both solve the task after it."""
    _, runs = sparse
    for uniform, prioritized in zip(runs[0::2], runs[1::2], strict=True):
        assert uniform["first_reward"] == prioritized["first_reward"]
        for run in (uniform, prioritized):
            assert run["first_reward"] < run["solved"] < 10_000


def test_sparse_results_are_kept(sparse):
    """The file holds every run, the settings and the versions; the picture is there."""
    folder, runs = sparse
    kept = json.loads((folder / "per_sparse.json").read_text(encoding="utf-8"))
    assert [run["solved"] for run in kept["runs"]] == [run["solved"] for run in runs]
    assert kept["settings"]["limit"] == 10_000
    assert kept["versions"].keys() == {"python", "ringfence", "numpy", "torch", "gymnasium"}
    assert (folder / "per_sparse.png").read_bytes().startswith(b"\x89PNG")


def test_change_pairs_the_seeds():
    """40 % fewer steps for every seed are a change of -40 % without any doubt; without a difference zero is inside."""
    steps = np.random.default_rng(0).exponential(1000, 20)
    assert per_sparse.change(steps, 0.6 * steps) == pytest.approx((-40, -40, -40))

    _, low, high = per_sparse.change(steps, np.random.default_rng(1).permutation(steps))
    assert low < 0 < high


@pytest.mark.parametrize("given", ["1-4", "8-4", "2-17", "8", "a-b"])
def test_absurd_numbers_of_states_are_refused(given, capsys):
    """The text says what is expected."""
    with pytest.raises(SystemExit, match="2"):
        blind_cliffwalk.arguments(["--states", given])
    assert "expected two numbers from 2 to 16" in capsys.readouterr().err


def test_pages_show_what_was_measured():
    """The tables in the pages are those of the figures beside them."""
    runs = json.loads((DOCS / "cliffwalk.json").read_text(encoding="utf-8"))["runs"]
    page = (DOCS / "cliffwalk.md").read_text(encoding="utf-8")
    for values in blind_cliffwalk.VALUES:
        assert blind_cliffwalk.table(runs, values) in page

    kept = json.loads((DOCS / "per_sparse.json").read_text(encoding="utf-8"))
    page = (DOCS / "per_sparse.md").read_text(encoding="utf-8")
    assert per_sparse.table(kept["runs"], kept["settings"]["limit"]) in page
