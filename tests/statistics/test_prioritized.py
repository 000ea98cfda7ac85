"""Prioritized draws follow the law of their priorities, and a tree with one wrong leaf would not pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ringfence import Field, Replay, Schema
from ringfence.draw.prioritized import Prioritized
from ringfence.draw.ranked import Ranked

DRAWS = 200_000
BATCH = 500
SEEDS = (0, 1, 2)

# The chance that a right sampler fails one of the tests below: 3 in 100,000. The seeds are fixed, so it passes always.
SIGMAS = 4.0

SCHEMA = Schema(obs=Field((), np.int64), action=Field((), np.int64))
STACKED = Schema(obs=Field((), np.int64, stack=4), action=Field((), np.int64))


def excess(counts: np.ndarray, law: np.ndarray) -> float:
    """Give Pearson's statistic over what a right sampler stays below (Wilson and Hilferty): above 1 is a failure."""
    expected = counts.sum() * law
    degrees = len(law) - 1
    spread = 2 / (9 * degrees)
    quantile = degrees * (1 - spread + SIGMAS * spread**0.5) ** 3
    return float(((counts - expected) ** 2 / expected).sum() / quantile)


def turned(draw: Any, schema: Schema = SCHEMA, capacity: int = 60, streams: int = 1) -> tuple[Replay, Any]:
    """Turn a ring twice, with episodes of seven steps or more; action is the time."""
    length = max(7, capacity // 50)  # a large ring keeps fewer ends
    replay = Replay(schema, capacity=capacity * streams, streams=streams, seed=0)
    view = replay.transitions(draw=draw)
    for step in range(2 * capacity + 11):
        for stream in range(streams):
            replay.add(step, step, 0.0, step + 1, step % length == length - 1, stream=stream)
            if step % 20 == 19:
                view.sample(2)
    return replay, view


def small(draw: Any) -> tuple[Replay, Any]:
    """Hold sixty steps of one stream."""
    return turned(draw)


def streamed(draw: Any) -> tuple[Replay, Any]:
    """Hold 26 steps of each of three streams."""
    return turned(draw, capacity=26, streams=3)


def stacked(draw: Any) -> tuple[Replay, Any]:
    """Hold steps some of which lack frames of their stack, and are no anchors."""
    return turned(draw, STACKED)


def spread(draw: Any) -> tuple[Replay, Any]:
    """Hold 5,000 steps, so that the tree has levels, of which all but 80 are never drawn."""
    replay, view = turned(draw, capacity=5000)
    ids = view.ids()
    view.update_priorities(ids, np.zeros(len(ids)))
    return replay, view


CASES = [small, streamed, stacked, spread]


def prepared(case: Callable[[Any], tuple[Replay, Any]], draw: Any, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Give the view, the ids of up to 80 anchors, and the priorities that they were given, from 0.2 to 5."""
    replay, view = case(draw)
    ids = view.ids()
    rng = np.random.default_rng(seed)
    ids = np.sort(rng.permutation(ids)[:80])
    priorities = 0.2 * 25 ** rng.random(len(ids))
    assert view.update_priorities(ids, priorities) == (len(ids), 0)
    assert len(replay) >= len(ids)
    return view, ids, priorities


def counted(view: Any, ids: np.ndarray) -> np.ndarray:
    """Count how often each anchor is drawn; anything else would be an error."""
    counts = np.zeros(len(ids), np.int64)
    for _ in range(DRAWS // BATCH):
        drawn = view.sample(BATCH).ids
        places = np.searchsorted(ids, drawn)
        assert (ids[places] == drawn).all()
        counts += np.bincount(places, minlength=len(ids))
    return counts


@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CASES)
def test_steps_are_drawn_in_proportion_to_their_priorities(
    case: Callable[[Any], tuple[Replay, Any]], seed: int, stratified: bool
) -> None:
    """200,000 draws spread as ``priority ** 0.6`` says."""
    view, ids, priorities = prepared(case, Prioritized(eps=0, stratified=stratified, seed=seed), seed)
    law = priorities**0.6

    assert excess(counted(view, ids), law / law.sum()) < 1


@pytest.mark.parametrize("seed", SEEDS)
def test_steps_are_drawn_by_the_inverse_of_their_rank(seed: int) -> None:
    """200,000 draws right after a sort spread as ``rank ** -0.7`` says."""
    view, ids, priorities = prepared(small, Ranked(resort=0, stratified=False, seed=seed), seed)
    rank = np.empty(len(ids))
    rank[np.argsort(-priorities)] = np.arange(1, len(ids) + 1)
    law = rank**-0.7

    assert excess(counted(view, ids), law / law.sum()) < 1


@pytest.mark.parametrize("seed", SEEDS)
def test_strata_hold_each_batch_close_to_the_law(seed: int) -> None:
    """In one stratified batch no step comes more than once more, or less, often than its share of the batch."""
    view, ids, priorities = prepared(small, Prioritized(eps=0, seed=seed), seed)
    law = priorities**0.6 / (priorities**0.6).sum()
    for _ in range(50):
        counts = np.bincount(np.searchsorted(ids, view.sample(BATCH).ids), minlength=len(ids))
        assert (np.abs(counts - BATCH * law) < 2).all()


# -- the tests above have the power to see what they are for


@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("factor", [0.0, 0.5, 1.5])
def test_a_tree_with_one_wrong_leaf_fails(
    factor: float, case: Callable[[Any], tuple[Replay, Any]], seed: int, stratified: bool
) -> None:
    """One leaf that is lost, or half or once and a half its mass, is seen among eighty."""
    draw = Prioritized(eps=0, stratified=stratified, seed=seed)
    view, ids, priorities = prepared(case, draw, seed)
    law = priorities**0.6
    place = int(np.argsort(law)[len(law) // 2])
    row = draw._bound.timeline.rows(draw._bound.timeline.anchors(ids[place : place + 1]))
    draw._mass.tree.set(row, factor * law[place : place + 1])

    assert excess(counted(view, ids), law / law.sum()) > 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_that_is_not_its_childrens_sum_fails(seed: int) -> None:
    """A level of the tree that was not brought up to date is seen, though every leaf is right."""
    draw = Prioritized(eps=0, stratified=False, seed=seed)
    view, ids, priorities = prepared(spread, draw, seed)
    law = priorities**0.6
    tree = draw._mass.tree
    tree.levels[-1][np.argmax(tree.levels[-1])] *= 2
    tree._summed = False

    assert excess(counted(view, ids), law / law.sum()) > 1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exponent", [0.55, 0.66, 1.2], ids=["a little less", "a little more", "alpha twice"])
def test_another_exponent_fails(exponent: float, seed: int) -> None:
    """An alpha that is a tenth too large or too small is seen."""
    view, ids, priorities = prepared(small, Prioritized(exponent, eps=0, stratified=False, seed=seed), seed)
    law = priorities**0.6

    assert excess(counted(view, ids), law / law.sum()) > 1
