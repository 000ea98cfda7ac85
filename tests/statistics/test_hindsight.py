"""Goals are uniform over those that the strategy allows, and a choice that is a little off would not pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.statistics.test_uniform import quantile

from ringfence.replay import Replay
from ringfence.schema import Field, Schema

DRAWS = 200_000
BATCH = 5_000
SEEDS = (0, 1, 2)
GOAL = Field((), np.int64)
SCHEMA = Schema({"achieved_goal": GOAL, "desired_goal": GOAL}, Field((), np.int64))
LENGTHS = (7, 12, 1, 2, 25, 3, 9)  # of episodes; the ring holds the last 40 steps of them, and of an open one

Weights = Callable[[int, int, int], np.ndarray]
"""For a step, the first held one of its episode and the last: how likely each of first..last is to give the goal."""


def ring(seed: int, streams: int) -> tuple[Replay, list[tuple[int, int, int]]]:
    """Turn a ring with episodes of several lengths; give each held step with the first and last one of its episode."""
    replay = Replay(SCHEMA, 40 * streams, streams=streams, seed=seed)
    bounds = []
    for stream in range(streams):
        number, own = 1000 * stream, []
        for length in (*LENGTHS[stream:], 5):
            first = number
            for left in reversed(range(length)):
                seen = [{"achieved_goal": value, "desired_goal": -1} for value in (number, number + 1)]
                replay.add(
                    seen[0], number, 0.0, seen[1], truncated=not left and length != 5, terminated=False, stream=stream
                )
                number += 1
            own += [(step, first, number - 1) for step in range(first, number)]
        oldest = own[-40][0]
        bounds += [(step, max(first, oldest), last) for step, first, last in own[-40:]]
    return replay, bounds


def future(step: int, first: int, last: int) -> np.ndarray:
    """Weigh the step itself and each later one alike."""
    return (np.arange(first, last + 1) >= step).astype(float)


def episode(_step: int, first: int, last: int) -> np.ndarray:
    """Weigh each held step of the episode alike."""
    return np.ones(last - first + 1)


def cells(bounds: list[tuple[int, int, int]], weights: Weights) -> dict[tuple[int, int], float]:
    """Give the probability of each pair of a step and the step whose outcome is its goal."""
    chances = {}
    for step, first, last in bounds:
        share = weights(step, first, last)
        for goal in np.flatnonzero(share):
            chances[step, first + int(goal)] = share[goal] / share.sum() / len(bounds)
    return chances


def excess(drawn: np.ndarray, chances: dict[tuple[int, int], float]) -> float:
    """Give Pearson's statistic over what a right choice stays below; infinite where a pair should not be."""
    keys = np.array([step * 10**6 + goal for step, goal in chances])
    order = keys.argsort()
    places = keys[order].searchsorted(drawn).clip(max=len(keys) - 1)
    if (keys[order][places] != drawn).any():
        return np.inf
    expected = np.array(list(chances.values()))[order] * len(drawn)
    counts = np.bincount(places, minlength=len(keys))
    return float(((counts - expected) ** 2 / expected).sum() / quantile(len(keys) - 1))


def pairs(replay: Replay, strategy: str) -> np.ndarray:
    """Draw from the replay; give each step and the step that its goal is the outcome of, as one number."""
    view = replay.hindsight(lambda achieved, *_: np.zeros(len(achieved)), strategy, ratio=1)
    batches = [view.sample(BATCH) for _ in range(DRAWS // BATCH)]
    return np.concatenate([batch.action * 10**6 + batch.obs["desired_goal"] - 1 for batch in batches])


def weighted(chances: dict[tuple[int, int], float], seed: int) -> np.ndarray:
    """Draw pairs with these probabilities, as ``pairs`` gives them."""
    keys = np.array([step * 10**6 + goal for step, goal in chances])
    return np.random.default_rng(seed).choice(keys, DRAWS, p=list(chances.values()))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("weights", [future, episode])
def test_goals_are_uniform(weights: Weights, streams: int, seed: int) -> None:
    """Each step that may give the goal does so equally often, whichever step it is a goal for."""
    replay, bounds = ring(seed, streams)

    assert excess(pairs(replay, weights.__name__), cells(bounds, weights)) < 1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("streams", [1, 3])
def test_random_goals_are_uniform_over_all_that_is_held(streams: int, seed: int) -> None:
    """With ``random`` each held step of each stream gives the goal equally often, for each step."""
    replay, bounds = ring(seed, streams)
    steps = [step for step, _, _ in bounds]
    chances = {(step, goal): 1 / len(steps) ** 2 for step in steps for goal in steps}

    assert excess(pairs(replay, "random"), chances) < 1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ratio", [0.1, 0.8])
def test_each_row_is_relabelled_with_the_same_probability(ratio: float, seed: int) -> None:
    """The share of relabelled rows is the ratio, for every step, and neighbours in a batch are independent."""
    replay, _ = ring(seed, 1)
    view = replay.hindsight(lambda achieved, *_: np.zeros(len(achieved)), ratio=ratio)
    batches = [view.sample(BATCH) for _ in range(DRAWS // BATCH)]
    told = np.concatenate([batch.relabelled for batch in batches])
    steps = np.concatenate([batch.action for batch in batches])
    spread = np.sqrt(ratio * (1 - ratio))

    counts = np.bincount(steps - steps.min())
    rates = np.bincount(steps - steps.min(), told) / counts
    assert (((rates - ratio) / spread * np.sqrt(counts)) ** 2).sum() < quantile(len(counts))
    scaled = (told - ratio) / spread
    assert abs((scaled[1:] * scaled[:-1]).sum()) < 4 * np.sqrt(DRAWS)


def never_its_own(step: int, first: int, last: int) -> np.ndarray:
    """Stand for a range that begins one too late, but at the last step."""
    return (np.arange(first, last + 1) > min(step, last - 1)).astype(float)


def never_the_last(step: int, first: int, last: int) -> np.ndarray:
    """Stand for a range that ends one too early, but at the last step."""
    return future(step, first, last) * (np.arange(first, last + 1) < max(last, step + 1))


def last_half_as_likely(step: int, first: int, last: int) -> np.ndarray:
    """Stand for an offset that is rounded, so that both of its borders get half their share."""
    steps = np.arange(first, last + 1)
    return future(step, first, last) * np.where((steps == last) | (steps == step), 0.5, 1)


def nearer_are_likelier(step: int, first: int, last: int) -> np.ndarray:
    """Stand for one that favours the nearer half by a tenth."""
    steps = np.arange(first, last + 1)
    return future(step, first, last) * np.where(2 * (steps - step) < last - step, 1.1, 1)


def before_it_too(step: int, first: int, last: int) -> np.ndarray:
    """Stand for one that takes a step before it now and then."""
    return future(step, first, last) + 0.01 * (np.arange(first, last + 1) == step - 1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "wrong", [never_its_own, never_the_last, last_half_as_likely, nearer_are_likelier, before_it_too, episode]
)
def test_a_slightly_wrong_choice_fails(wrong: Weights, seed: int) -> None:
    """The test above has the power to see a goal that is left out, one too many, and a tenth of bias."""
    _, bounds = ring(seed, 1)

    assert excess(weighted(cells(bounds, wrong), seed), cells(bounds, future)) > 1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("weights", [future, episode])
def test_a_right_choice_passes(weights: Weights, seed: int) -> None:
    """NumPy's own weighted choice stays below the bound."""
    _, bounds = ring(seed, 1)

    assert excess(weighted(cells(bounds, weights), seed), cells(bounds, weights)) < 1
