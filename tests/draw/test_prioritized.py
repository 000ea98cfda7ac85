"""Proportional priorities: one transform, late updates skipped, bad ones refused whole, figures that tell their use."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from ringfence import Field, NotEnoughData, Replay, Schema
from ringfence.draw.prioritized import Prioritized, cost

NUMBER = Field((), np.int64)
SCHEMA = Schema(obs=NUMBER, action=NUMBER)
ROOT = Path(__file__).parents[2]


def ring(draw, steps=100, capacity=100, streams=1, n_step=1):
    """Fill a ring whose actions are the times of its steps; give it, its view and the ids."""
    replay = Replay(SCHEMA, capacity=capacity * streams, streams=streams, seed=0)
    view = replay.transitions(n_step=n_step, draw=draw)
    return replay, view, add(replay, steps)


def add(replay, steps, first=0):
    """Add so many steps to each stream; give the ids."""
    ids = [
        replay.add(step, step, 0.0, step + 1, step % 9 == 8, stream=stream)
        for step in range(first, first + steps)
        for stream in range(replay.streams)
    ]
    return np.array(ids)


def chances(view, n=3000):
    """Give the probability of each action that is drawn."""
    batch = view.sample(n)
    return dict(zip(batch.action.tolist(), batch.probabilities.tolist(), strict=True))


def leaves(draw):
    """Give all mass that there is, in the order of rows."""
    draw.stats()
    found = draw._mass.tree.leaves
    return found[found > 0].tolist()


def test_alpha_is_applied_once():
    """Priority 4 with alpha 1/2 is a mass of 2: where it was given, and where a new step takes it over."""
    draw = Prioritized(alpha=0.5, eps=0)
    replay, view, ids = ring(draw, steps=3)
    view.update_priorities(ids[:1], [4.0])
    add(replay, 1, first=3)

    assert leaves(draw) == [2.0, 1.0, 1.0, 2.0]


def test_eps_is_added_before_the_power():
    """The mass is ``(priority + eps) ** alpha``, so that a priority of 0 has some."""
    draw = Prioritized(alpha=0.5, eps=0.25)
    _, view, ids = ring(draw, steps=2)
    view.update_priorities(ids, [0.0, 2.0])

    assert leaves(draw) == [0.5, 1.5]


def test_probabilities_are_in_proportion_and_exact():
    """Over the legal anchors they sum up to 1."""
    _, view, ids = ring(Prioritized(alpha=1, eps=0), steps=5)
    view.update_priorities(ids, [1.0, 2.0, 3.0, 4.0, 6.0])

    assert chances(view) == {0: 1 / 16, 1: 2 / 16, 2: 3 / 16, 3: 4 / 16, 4: 6 / 16}


def test_new_steps_have_the_largest_priority_ever_given_and_one_at_first():
    """Also after the step that had it is gone, or was given less."""
    draw = Prioritized(alpha=1, eps=0)
    replay, view, ids = ring(draw, steps=4, capacity=4)
    assert draw.stats()["max_priority"] == 1
    view.update_priorities(ids[:1], [0.5])
    add(replay, 1, first=4)
    assert leaves(draw)[-1] == 1.0
    view.update_priorities(ids[2:3], [7.0])
    view.update_priorities(ids[2:3], [2.0])
    add(replay, 4, first=5)

    assert leaves(draw) == [7.0] * 4
    assert draw.stats()["max_priority"] == 7


def test_steps_that_came_before_an_update_do_not_profit_from_it():
    """They take the largest priority of their own time, whether or not somebody drew in between."""
    draw = Prioritized(alpha=1, eps=0)
    replay, view, ids = ring(draw, steps=3)
    add(replay, 2, first=3)
    view.update_priorities(ids[:1], [9.0])

    assert leaves(draw) == [9.0, 1.0, 1.0, 1.0, 1.0]


def test_a_priority_of_nothing_is_never_drawn_without_eps():
    """It comes back with its next priority."""
    _, view, ids = ring(Prioritized(eps=0), steps=10)
    view.update_priorities(ids[2:8], np.zeros(6))
    assert set(chances(view)) == {0, 1, 8, 9}

    view.update_priorities(ids[5:6], [1.0])
    assert set(chances(view)) == {0, 1, 5, 8, 9}


def test_nothing_but_priorities_of_nothing_is_an_error_that_says_so():
    """Steps are held and legal, and yet none can be drawn."""
    _, view, ids = ring(Prioritized(eps=0), steps=10)
    view.update_priorities(ids, np.zeros(10))

    with pytest.raises(NotEnoughData, match="all 10 steps that could be drawn have priority 0"):
        view.sample(1)


def test_an_empty_ring_is_an_error_with_counts():
    """At once, before anything was added and after all was dropped."""
    replay, view, _ = ring(Prioritized(), steps=0)
    with pytest.raises(NotEnoughData, match="0 transitions are held by 1 stream"):
        view.sample(1)
    add(replay, 30)
    view.sample(1)
    replay.clear()
    with pytest.raises(NotEnoughData, match="0 transitions are held by 1 stream"):
        view.sample(1)


@pytest.mark.parametrize(
    ("bad", "shown"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf"), (-1e-9, "-1e-09")], ids=str
)
@pytest.mark.parametrize("place", [0, 3, 5])
def test_a_bad_priority_is_refused_whole_and_named(bad, shown, place):
    """The text has the number and its position, and says what to do about the sign; nothing was changed."""
    draw = Prioritized()
    _, view, ids = ring(draw, steps=6)
    view.update_priorities(ids, np.arange(1, 7))
    before, figures = draw._mass.tree.nodes.tobytes(), draw.stats()
    priorities = np.full(6, 50.0)
    priorities[place:] = bad

    with pytest.raises(
        ValueError, match=rf"got {shown} at position {place}; of a TD error give the size, abs\(error\)"
    ):
        view.update_priorities(ids, priorities)

    assert draw._mass.tree.nodes.tobytes() == before
    assert draw.stats() == figures


@pytest.mark.parametrize("alpha", [1, 2])
def test_a_priority_too_large_to_be_summed_up_is_refused(alpha):
    """The sum of all leaves stays finite, whatever was accepted."""
    draw = Prioritized(alpha=alpha)
    _, view, ids = ring(draw, steps=100)
    with pytest.raises(ValueError, match=r"expected numbers of at least 0 and below .*, got 1e\+308 at position 1"):
        view.update_priorities(ids[:2], [1.0, 1e308])

    view.update_priorities(ids, np.full(100, float(draw._ceiling) * 0.999))
    assert np.isfinite(draw.stats()["mass"])
    assert chances(view)[3] == pytest.approx(0.01)


def test_a_priority_for_each_id_is_wanted():
    """Other shapes are refused."""
    _, view, ids = ring(Prioritized())

    with pytest.raises(ValueError, match=r"expected one for each of \(100,\) ids, got shape \(3,\)"):
        view.update_priorities(ids, [1.0, 2.0, 3.0])


def test_of_a_step_that_is_named_twice_the_last_priority_stays():
    """As in a batch drawn with replacement, whose errors came out in order."""
    draw = Prioritized(alpha=1, eps=0)
    _, view, ids = ring(draw, steps=2)

    assert view.update_priorities(ids[[0, 1, 0]], [5.0, 2.0, 3.0]) == (3, 0)
    assert leaves(draw) == [3.0, 2.0]


@pytest.mark.parametrize("streams", [1, 3])
def test_priorities_stay_with_their_steps_as_the_ring_turns(streams):
    """What is still held keeps its priority; what took the place of a gone step does not inherit any."""
    draw = Prioritized(alpha=1, eps=0)
    replay, view, ids = ring(draw, streams=streams)
    times = ids & (1 << 44) - 1
    view.update_priorities(ids, 1 - times / 200)
    add(replay, 40, first=100)
    mass = streams * (sum(1 - time / 200 for time in range(40, 100)) + 40)

    assert draw.stats()["mass"] == pytest.approx(mass, rel=1e-12)
    for action, chance in chances(view, 10_000).items():
        assert chance == pytest.approx((1 - action / 200 if action < 100 else 1) / mass, rel=1e-12)


@pytest.mark.parametrize("streams", [1, 3])
def test_late_updates_of_evicted_steps_leave_memory_and_tree_unchanged(streams):
    """20,000 priorities for steps that are gone: all are counted as stale, and nothing is kept of them."""
    draw = Prioritized()
    replay, view, old = ring(draw, streams=streams)
    add(replay, 150, first=100)
    view.sample(8)
    tree, size, figures = draw._mass.tree.nodes.tobytes(), draw.nbytes, draw.stats()
    tracemalloc.start()
    view.update_priorities(np.resize(old, 100), np.full(100, 1e6))
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(200):
        assert view.update_priorities(np.resize(old, 100), np.full(100, 1e6)) == (0, 100)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()

    assert draw._mass.tree.nodes.tobytes() == tree
    assert (draw.nbytes, draw.stats()) == (size, figures)
    assert grown < 2048


def test_ids_of_nothing_are_stale():
    """Of steps not added yet, of streams that there are not, of no step at all, and of no longer legal anchors."""
    stacked = Schema(obs=Field((), np.int64, stack=3), action=NUMBER)
    replay = Replay(stacked, capacity=20, streams=2, seed=0)
    view = replay.transitions(draw=Prioritized())
    for step in range(25):
        replay.add(step, step, 0.0, step + 1, False)
    legal = view.ids()
    assert legal.tolist() == [*range(17, 25)]
    wrong = [25, 10**9, 1 << 44, 2 << 44 | 20, -1, -(1 << 44) + 20, 15, 16, 4]

    assert view.update_priorities([*wrong, 24], np.ones(10)) == (1, 9)
    assert view.update_priorities([], []) == (0, 0)


@pytest.mark.parametrize("streams", [1, 2])
@pytest.mark.parametrize("stack", [None, 4])
def test_priorities_reach_their_steps_among_stale_ones(streams, stack):
    """Where ids of gone steps, of steps that lack frames and of legal ones come in any order, none gets another's."""
    schema = Schema(obs=Field((), np.int64, stack=stack), action=NUMBER)
    replay = Replay(schema, capacity=20 * streams, streams=streams, seed=0)
    draw = Prioritized(alpha=1, eps=0)
    view = replay.transitions(draw=draw)
    every = [
        replay.add(step, step, 0.0, step + 1, False, stream=stream) for step in range(50) for stream in range(streams)
    ]
    ids, legal = np.random.default_rng(0).permutation(every), view.ids()

    applied, stale = view.update_priorities(ids, ids % 1009 + 1.0)
    assert (applied, stale) == (len(legal), len(ids) - len(legal))
    assert leaves(draw) == (np.sort(legal) % 1009 + 1.0)[np.argsort(rows(draw, legal))].tolist()


def rows(draw, ids):
    """Give the rows of steps."""
    timeline = draw._bound.timeline
    return timeline.rows(timeline.anchors(np.sort(ids)))


def test_the_same_whether_or_not_a_ring_has_seen_more_before():
    """A clear leaves no mass behind, and old ids stay stale."""
    draw = Prioritized()
    replay, view, old = ring(draw)
    view.update_priorities(old, np.full(100, 30.0))
    replay.clear()
    assert view.update_priorities(old, np.ones(100)) == (0, 100)
    add(replay, 3, first=100)

    assert set(chances(view)) == {100, 101, 102}
    assert draw.stats()["effective_sample_size"] == pytest.approx(3)


def test_a_stratified_batch_takes_one_step_from_each_equal_part_of_the_mass():
    """With as many draws as equally likely steps each comes once, but for borders; without strata some come often."""
    _, view, _ = ring(Prioritized(), steps=100)
    _, loose, _ = ring(Prioritized(stratified=False), steps=100)

    for _ in range(5):
        assert view.sample(100).action.tolist() == list(range(100))
        assert len(set(loose.sample(100).action.tolist())) < 80


# -- how uneven they are


def test_priorities_that_are_not_worth_it_are_reported():
    """Nearly equal priorities have an effective sample size of nearly all steps."""
    draw = Prioritized(alpha=1, eps=0)
    replay, view, ids = ring(draw)
    assert draw.stats()["near_uniform"]
    assert draw.stats()["effective_share"] == pytest.approx(1)
    view.update_priorities(ids, np.linspace(0.9, 1.1, 100))
    assert view.stats()["near_uniform"]
    view.update_priorities(ids, np.linspace(0, 1, 100) ** 3)
    figures = view.stats()
    mass = np.linspace(0, 1, 100) ** 3

    assert not figures["near_uniform"]
    assert figures["effective_sample_size"] == pytest.approx(mass.sum() ** 2 / (mass**2).sum())
    assert figures["effective_share"] == pytest.approx(figures["effective_sample_size"] / 100)
    assert figures["mass"] == pytest.approx(mass.sum())
    assert len(replay) == 100


def test_an_empty_ring_has_figures():
    """Before anything was added nothing is uneven, and nothing fails."""
    _, view, _ = ring(Prioritized(beta=lambda added: added + 0.5), steps=0)
    figures = view.stats()

    assert (figures["mass"], figures["effective_sample_size"], figures["beta"]) == (0, 0, 0.5)
    assert not figures["near_uniform"]


@pytest.mark.parametrize("normalise", ["batch", "memory"])
def test_memory_is_what_was_planned(normalise):
    """The draw's bytes are those of its price, from the start on, and do not change."""
    draw = Prioritized(normalise=normalise)
    assert draw.nbytes == 0
    replay, view, _ = ring(draw, capacity=5000, steps=10)
    planned = sum(line.nbytes for line in cost(len(draw._mass.tree.leaves), normalise=normalise))

    assert draw.nbytes == planned == view.stats()["nbytes"]
    add(replay, 12_000, first=10)
    view.sample(10)
    assert draw.nbytes == planned


# -- repeatable


def history(draw, seed=0):
    """Play one history with a draw; give its batches."""
    rng = np.random.default_rng(seed)
    replay, view, _ = ring(draw, steps=30, streams=2, n_step=3)
    batches = []
    for turn in range(20):
        add(replay, int(rng.integers(0, 40)), first=1000 * turn)
        batch = view.sample(16)
        view.update_priorities(batch.ids, rng.random(16))
        batches.append((batch.ids.tolist(), batch.weights.tolist(), batch.probabilities.tolist()))
    return batches


def test_equal_seeds_draw_equally():
    """Ids, weights and probabilities follow from the seed and the history; another seed draws otherwise."""
    first = history(Prioritized(seed=3))

    assert first == history(Prioritized(seed=np.random.default_rng(3)))
    assert first != history(Prioritized(seed=4))


PRINT = """
import hashlib
from tests.draw.test_prioritized import history
from ringfence.draw.prioritized import Prioritized
from ringfence.draw.ranked import Ranked
batches = [history(draw) for draw in (Prioritized(seed=3), Prioritized(seed=3, normalise="memory"), Ranked(seed=3))]
print(hashlib.sha256(repr(batches).encode()).hexdigest())
"""


def test_draws_are_equal_with_and_without_compiled_loops():
    """To the last bit of every weight."""
    seen = set()
    for pure in ("0", "1"):
        environment = {**os.environ, "RINGFENCE_PURE": pure}
        command = [sys.executable, "-c", PRINT]
        run = subprocess.run(command, check=True, capture_output=True, env=environment, cwd=ROOT)
        seen.add(run.stdout)

    assert len(seen) == 1


@pytest.mark.parametrize("streams", [1, 3])
def test_a_state_that_was_loaded_goes_on_as_if_nothing_had_happened(streams):
    """In another ring of the same history, also when steps came after the last look, the same batches follow."""
    one, other = Prioritized(seed=1), Prioritized(seed=2)
    (replay, view, ids), (twin, second, _) = (ring(draw, streams=streams) for draw in (one, other))
    view.update_priorities(ids, np.linspace(0, 5, len(ids)))
    view.sample(10)
    for ring_ in (replay, twin):
        add(ring_, 30, first=100)
    state = one.state()
    other.load(state)
    state["leaves"][:] = 0

    for turn in range(5):
        batches = [v.sample(16) for v in (view, second)]
        assert batches[0].ids.tolist() == batches[1].ids.tolist()
        assert batches[0].weights.tolist() == batches[1].weights.tolist()
        for v, batch in zip((view, second), batches, strict=True):
            v.update_priorities(batch.ids, np.arange(16.0))
        for ring_ in (replay, twin):
            add(ring_, 30, first=200 + 100 * turn)
    assert one._mass.tree.nodes.tobytes() == other._mass.tree.nodes.tobytes()


def test_a_state_of_another_ring_is_refused():
    """Of more streams, of a ring that has gone further, or with numbers missing; the draw stays as it was."""
    draw = Prioritized(seed=1)
    _, view, _ = ring(draw)
    wide, further = Prioritized(), Prioritized()
    ring(wide, streams=2)[1].sample(1)
    ring(further, steps=101)[1].sample(1)
    view.sample(3)
    before = draw._mass.tree.nodes.tobytes()
    short, negative = ({**draw.state(), "leaves": leaves} for leaves in (np.ones(3), -np.ones(100)))

    for state in (wide.state(), further.state(), short, negative):
        with pytest.raises(ValueError, match="is not of this ring, which holds 100 in 1"):
            draw.load(state)
    with pytest.raises(ValueError, match="expected numbers of at least 0 and finite, got nan"):
        draw.load({**draw.state(), "max_priority": np.nan})
    assert draw._mass.tree.nodes.tobytes() == before


def test_a_draw_serves_one_view():
    """A second view needs a draw of its own, and a draw without one can do nothing."""
    draw = Prioritized()
    with pytest.raises(ValueError, match="serves no view yet"):
        draw.stats()
    replay, _, _ = ring(draw)

    with pytest.raises(ValueError, match="serves another view already"):
        replay.transitions(draw=draw)


@pytest.mark.parametrize("name", ["alpha", "eps"])
@pytest.mark.parametrize("value", [-1, np.nan, np.inf, "much"])
def test_numbers_that_make_no_sense_are_refused(name, value):
    """By name, when the draw is made."""
    with pytest.raises(ValueError, match=f"{name}: expected a finite number of at least 0, got"):
        Prioritized(**{name: value})


def test_alpha_of_nothing_is_uniform():
    """Whatever the priorities are."""
    _, view, ids = ring(Prioritized(alpha=0, eps=0), steps=10)
    view.update_priorities(ids, np.arange(10))

    assert set(chances(view).values()) == {0.1}
    assert len(chances(view)) == 10
