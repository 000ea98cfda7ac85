"""Rank-based priorities: the exact law after a sort, documented ranks between sorts, late updates skipped."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence import Field, NotEnoughData, Replay, Schema
from ringfence.draw.ranked import Ranked, cost

NUMBER = Field((), np.int64)
SCHEMA = Schema(obs=NUMBER, action=NUMBER)


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


def ranks(draw, alpha):
    """Give the rank that each held step has, in the order of rows, from its mass."""
    draw.stats()
    leaves = draw._mass.tree.leaves
    return np.rint(leaves[leaves > 0] ** (-1 / alpha)).astype(int).tolist()


@given(
    priorities=st.lists(st.sampled_from([0.0, 0.1, 0.5, 2.0, 1e300]) | st.floats(0, 10), min_size=1, max_size=40),
    unknown=st.integers(0, 5),
    alpha=st.sampled_from([0.5, 1.0, 2.0]),
)
def test_a_rank_is_one_and_the_number_of_larger_priorities(priorities, unknown, alpha):
    """Right after a sort, to the bit: equal priorities share a rank, and steps without one are the first."""
    draw = Ranked(alpha, resort=0)
    _, view, ids = ring(draw, steps=len(priorities) + unknown)
    view.update_priorities(ids[: len(priorities)], priorities)
    every = [*priorities, *[np.inf] * unknown]
    expected = (np.array([sum(other > one for other in every) for one in every]) + 1.0) ** -alpha

    leaves = draw._mass.tree.leaves
    assert leaves[leaves > 0].tolist() == expected.tolist()
    batch = view.sample(50)
    assert batch.probabilities.tolist() == (expected / draw._mass.tree.total)[batch.action].tolist()
    assert draw._mass.tree.total == pytest.approx(expected.sum(), rel=1e-14)


def test_a_step_takes_its_rank_in_the_last_order_until_the_next_sort():
    """Half as many updates as there are steps are let pass, then all ranks are worked out anew."""
    draw = Ranked(alpha=1)
    replay, view, ids = ring(draw, steps=10)
    view.update_priorities(ids, np.arange(10, 0, -1))
    assert ranks(draw, 1) == list(range(1, 11))
    view.update_priorities(ids[[0, 9]], [0.5, 8.0])
    assert ranks(draw, 1) == [11, 2, 3, 4, 5, 6, 7, 8, 9, 3]
    add(replay, 1, first=10)
    assert ranks(draw, 1)[-1] == 1
    view.update_priorities(ids[[0, 0, 0]], [0.5, 0.5, 0.5])
    assert draw.stats()["updates_since_sort"] == 5
    assert ranks(draw, 1) == [11, 2, 3, 4, 5, 6, 7, 8, 9, 3, 1]
    view.update_priorities(ids[1:2], [9.0])

    assert draw.stats()["updates_since_sort"] == 0
    assert ranks(draw, 1) == [11, 2, 3, 5, 6, 7, 8, 9, 10, 3, 1]


@pytest.mark.parametrize("streams", [1, 3])
def test_a_step_does_not_inherit_the_priority_of_the_one_before_it_in_memory(streams):
    """A new step of a full ring ranks first at the next sort too, where the one before it in its row ranked last."""
    draw = Ranked(alpha=1, resort=0)
    replay, view, ids = ring(draw, capacity=12, steps=12, streams=streams)
    view.update_priorities(ids, np.linspace(1, 2, len(ids)))
    for step in range(12, 36):
        add(replay, 1, first=step)
        view.sample(1)
        view.update_priorities(view.ids()[:1], [0.5])

    assert sorted(ranks(draw, 1))[: 11 * streams] == [1] * (11 * streams)


def test_new_steps_rank_first_until_they_are_given_a_priority():
    """Whatever stood in their place before, and also after a sort."""
    draw = Ranked(alpha=1, resort=0)
    replay, view, ids = ring(draw, capacity=6, steps=6)
    view.update_priorities(ids, [6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    new = add(replay, 3, first=6)
    view.sample(2)
    view.update_priorities(ids[3:4], [7.0])

    held = dict(zip(view.ids().tolist(), [4, 5, 6, 1, 1, 1], strict=True))
    batch = view.sample(500)
    mass = sum(1 / rank for rank in held.values())
    assert {id: round(1 / (p * mass)) for id, p in zip(batch.ids.tolist(), batch.probabilities, strict=True)} == held
    view.update_priorities(new, [6.5, 0.1, 2.5])
    assert sorted(ranks(draw, 1)) == [1, 2, 3, 4, 5, 6]


def test_outliers_do_no_harm():
    """An error of 1e300 is drawn no more often than one of 2, where both are the largest."""
    drawn = []
    for largest in (2.0, 1e300):
        draw = Ranked(seed=1)
        _, view, ids = ring(draw)
        view.update_priorities(ids, np.append(np.linspace(0, 1, 99), largest))
        drawn.append(view.sample(50).ids.tolist())

    assert drawn[0] == drawn[1]


def test_the_last_of_very_many_ranks_can_still_be_drawn():
    """Its mass is tiny and not 0, so that the step is ranked again when it is given more."""
    draw = Ranked(alpha=400, resort=0)
    _, view, ids = ring(draw)
    view.update_priorities(ids, np.arange(100, 0, -1))
    view.update_priorities(ids[-1:], [1000.0])

    assert set(view.sample(20).action.tolist()) == {99}
    assert np.count_nonzero(draw._mass.tree.leaves) == 100


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_a_bad_priority_is_refused_whole(bad):
    """Naming the position; ranks stay as they were."""
    draw = Ranked()
    _, view, ids = ring(draw, steps=6)
    view.update_priorities(ids, np.arange(6))
    before = ranks(draw, 0.7)

    with pytest.raises(ValueError, match=r"expected numbers of at least 0 and finite, got .* at position 2"):
        view.update_priorities(ids[:3], [9.0, 9.0, bad])
    assert ranks(draw, 0.7) == before


@pytest.mark.parametrize("streams", [1, 3])
def test_late_updates_of_evicted_steps_change_nothing(streams):
    """They are counted as stale, bring no sort nearer, and leave nothing behind."""
    draw = Ranked()
    replay, view, old = ring(draw, streams=streams)
    add(replay, 150, first=100)
    view.update_priorities(view.ids(), np.linspace(0, 1, 100 * streams))
    view.sample(5)
    tree, figures = draw._mass.tree.nodes.tobytes(), draw.stats()
    tracemalloc.start()
    view.update_priorities(old, np.ones(len(old)))
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(20_000 // len(old)):
        assert view.update_priorities(old, np.ones(len(old))) == (0, len(old))
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()

    assert draw._mass.tree.nodes.tobytes() == tree
    assert draw.stats() == figures
    assert grown < 2048


def test_an_empty_ring_is_an_error_with_counts():
    """At once."""
    _, view, _ = ring(Ranked(), steps=0)

    with pytest.raises(NotEnoughData, match="0 transitions are held by 1 stream"):
        view.sample(1)


@pytest.mark.parametrize("normalise", ["batch", "memory"])
def test_memory_is_what_was_planned(normalise):
    """The draw's bytes are those of its price, from the start on, and do not change."""
    draw = Ranked(normalise=normalise, resort=0)
    assert draw.nbytes == 0
    replay, view, ids = ring(draw, capacity=5000, steps=500)
    planned = sum(line.nbytes for line in cost(len(draw._mass.tree.leaves), normalise=normalise))

    assert draw.nbytes == planned == view.stats()["nbytes"]
    view.update_priorities(ids, np.ones(500))
    add(replay, 8000, first=500)
    held = view.ids()
    view.update_priorities(held, np.ones(len(held)))
    assert draw.nbytes == planned


def test_a_sort_takes_as_much_as_it_says_and_gives_it_back():
    """64 bytes a step while it lasts, and nothing after."""
    draw = Ranked(resort=0)
    replay, view, _ = ring(draw, capacity=20_000, steps=0)
    ids = np.array([replay.add(step, step, 0.0, step + 1, False) for step in range(20_000)])
    priorities = np.random.default_rng(0).random(20_000)
    view.update_priorities(ids, priorities)
    tracemalloc.start()
    view.update_priorities(ids[:1], priorities[:1])
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 65 * 20_000
    assert kept < 2048


@pytest.mark.parametrize("streams", [1, 3])
def test_a_state_that_was_loaded_goes_on_as_if_nothing_had_happened(streams):
    """In another ring of the same history the same batches follow, over the next sort."""
    one, other = Ranked(seed=1), Ranked(seed=2)
    (replay, view, ids), (twin, second, _) = (ring(draw, streams=streams) for draw in (one, other))
    view.update_priorities(ids, np.linspace(0, 5, len(ids)))
    view.update_priorities(ids[:9], np.linspace(0, 5, 9))
    view.sample(10)
    for ring_ in (replay, twin):
        add(ring_, 30, first=100)
    other.load(one.state())

    for turn in range(12):
        batches = [v.sample(16) for v in (view, second)]
        assert batches[0].ids.tolist() == batches[1].ids.tolist()
        assert batches[0].weights.tolist() == batches[1].weights.tolist()
        for v, batch in zip((view, second), batches, strict=True):
            v.update_priorities(batch.ids, np.arange(16.0) * turn)
        for ring_ in (replay, twin):
            add(ring_, 3, first=200 + 100 * turn)
    assert one.stats() == other.stats()


def test_a_state_that_does_not_fit_is_refused():
    """Of another ring, or with numbers missing; ranks stay as they were."""
    draw, wide = Ranked(), Ranked()
    _, view, ids = ring(draw)
    ring(wide, streams=2)[1].sample(1)
    view.update_priorities(ids, np.arange(100))
    before = ranks(draw, 0.7)

    with pytest.raises(ValueError, match="is not of this ring, which holds 100 in 1"):
        draw.load(wide.state())
    with pytest.raises(ValueError, match="3 priorities and 100 ranks are not of one state"):
        draw.load({**draw.state(), "priorities": np.ones(3)})
    assert ranks(draw, 0.7) == before


def test_a_draw_serves_one_view():
    """A second view needs a draw of its own, and a draw without one can do nothing."""
    draw = Ranked()
    with pytest.raises(ValueError, match="serves no view yet"):
        draw.stats()
    replay, _, _ = ring(draw)

    with pytest.raises(ValueError, match="serves another view already"):
        replay.transitions(draw=draw)


@pytest.mark.parametrize("name", ["alpha", "resort"])
@pytest.mark.parametrize("value", [-1, np.nan, "much"])
def test_numbers_that_make_no_sense_are_refused(name, value):
    """By name, when the draw is made."""
    with pytest.raises(ValueError, match=f"{name}: expected a finite number of at least 0, got"):
        Ranked(**{name: value})
