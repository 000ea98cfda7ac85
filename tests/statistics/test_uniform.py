"""Draws are uniform over the legal anchors, and a sampler that is a little off would not pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ringfence.replay import Replay
from ringfence.schema import Field, Schema
from ringfence.testing.machine import Pair
from ringfence.testing.strategies import Move

DRAWS = 400_000
BATCH = 4_000
SEEDS = (0, 1, 2)

# The chance that a right sampler fails one of the tests below: 3 in 100,000. The seeds are fixed, so it passes always.
SIGMAS = 4.0

PLAIN = Schema(obs=Field((2,), np.float32), action=Field((), np.int64))
STACKED = Schema(obs=Field((2,), np.float32, stack=4), action=Field((), np.int64))

Sampler = Callable[[int], np.ndarray]
"""Draw so many cells of a fixed list, by number."""


def episode(pair: Pair, length: int, end: str = "terminated", stream: int = 0) -> None:
    """Add an episode of this many steps."""
    for left in reversed(range(length)):
        pair.add(Move(stream, "" if left else end))


def single_not_full(seed: int) -> Pair:
    """Fill three quarters of one stream, with an end and an open episode."""
    pair = make_pair(PLAIN, 64, 1, seed)
    episode(pair, 30)
    episode(pair, 18, end="")
    return pair


def wrapped_with_ends(seed: int) -> Pair:
    """Turn a ring twice with episodes of one to eleven steps, so that closing records lie all over it."""
    pair = make_pair(PLAIN, 50, 1, seed)
    for length in (5, 1, 11, 1, 1, 7, 3, 9, 2, 1, 11, 6, 1, 4, 8, 1, 10, 5, 1, 1, 2):
        episode(pair, length, end="truncated" if length % 2 else "terminated")
    return pair


def unequal_streams(seed: int) -> Pair:
    """Fill five streams to different degrees: one turned, one with three steps, one empty."""
    pair = make_pair(PLAIN, 40, 5, seed)
    for stream, length in enumerate((90, 3, 0, 21, 40)):
        episode(pair, length, stream=stream)
        episode(pair, length // 4, end="", stream=stream)
    return pair


def cut_stack(seed: int) -> Pair:
    """Cut an episode of stacked frames at its beginning, behind two short ones in another stream."""
    pair = make_pair(STACKED, 32, 2, seed)
    episode(pair, 25)
    episode(pair, 20, end="")
    episode(pair, 2, stream=1)
    episode(pair, 9, end="", stream=1)
    return pair


def few_among_many(seed: int) -> Pair:
    """Put three steps into one of sixteen wide, otherwise empty streams: nearly every slot is no anchor."""
    pair = make_pair(STACKED, 500, 16, seed)
    episode(pair, 3, stream=11)
    return pair


CASES = [single_not_full, wrapped_with_ends, unequal_streams, cut_stack, few_among_many]


def make_pair(schema: Schema, per_stream: int, streams: int, seed: int) -> Pair:
    """Make an empty replay, and the reference that knows its legal anchors."""
    return Pair(Replay(schema, capacity=per_stream * streams, streams=streams, seed=seed), schema)


def sampler(pair: Pair) -> tuple[int, Sampler]:
    """Number the legal anchors, stream by stream and oldest first; draw from the replay and give such numbers."""
    anchors = pair.reference.anchors()
    ids = {key: id for id, key in pair.keys.items()}
    legal = np.array([ids[key] for key in anchors])
    order = legal.argsort()

    def draw(n: int) -> np.ndarray:
        drawn = pair.replay.sample(n).ids
        assert np.isin(drawn, legal).all(), f"drew {set(drawn.tolist()) - set(legal.tolist())}, no legal anchors"
        return order[np.searchsorted(legal, drawn, sorter=order)]

    return len(anchors), draw


def quantile(degrees: int) -> float:
    """Give the chi-squared value that a right sampler stays below; Wilson and Hilferty's formula."""
    spread = 2 / (9 * degrees)
    return float(degrees * (1 - spread + SIGMAS * spread**0.5) ** 3)


def excess(counts: np.ndarray) -> float:
    """Give Pearson's statistic of equal cells over what a right sampler stays below: above 1 is a failure."""
    expected = counts.sum() / counts.size
    return float(((counts - expected) ** 2).sum() / expected / quantile(counts.size - 1))


def excess_of_cells(draw: Sampler, cells: int) -> float:
    """Measure how far from uniform the cells are drawn."""
    counts = np.zeros(cells, np.int64)
    for _ in range(DRAWS // BATCH):
        counts += np.bincount(draw(BATCH), minlength=cells)
    return excess(counts)


def excess_of_pairs(draw: Sampler, cells: int, batch: int) -> float:
    """Measure how far from independent two neighbours of a batch are: all pairs of cells are equally likely."""
    counts = np.zeros(cells * cells, np.int64)
    for _ in range(DRAWS // 20 // batch):
        drawn = draw(batch)
        counts += np.bincount(drawn[:-1:2] * cells + drawn[1::2], minlength=cells * cells)
    return excess(counts)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CASES)
def test_every_legal_anchor_is_drawn_equally_often(case: Callable[[int], Pair], seed: int) -> None:
    """400,000 draws spread over all legal anchors as those of a fair die would, and over nothing else."""
    cells, draw = sampler(case(seed))

    assert excess_of_cells(draw, cells) < 1


@pytest.mark.parametrize("seed", SEEDS)
def test_two_draws_of_a_batch_know_nothing_of_each_other(seed: int) -> None:
    """Draws are with replacement: each pair of anchors follows each other equally often, the same one twice too."""
    pair = make_pair(PLAIN, 8, 1, seed)
    episode(pair, 12, end="")
    cells, draw = sampler(pair)

    assert excess_of_pairs(draw, cells, batch=8) < 1


def weighted(weights: np.ndarray, rng: np.random.Generator) -> Sampler:
    """Draw cells by weight."""
    return lambda n: rng.choice(len(weights), size=n, p=weights / weights.sum())


def newest_half_as_likely(cells: int) -> np.ndarray:
    """Stand for a draw that treats the write head as a border it may not touch."""
    return np.where(np.arange(cells) == cells - 1, 0.5, 1.0)


def newest_never(cells: int) -> np.ndarray:
    """Stand for a range that ends one too early."""
    return np.where(np.arange(cells) == cells - 1, 0.0, 1.0)


def oldest_never(cells: int) -> np.ndarray:
    """Stand for a range that begins one too late."""
    return np.where(np.arange(cells) == 0, 0.0, 1.0)


def next_one_instead(cells: int) -> np.ndarray:
    """Stand for a draw that moves on to the next legal anchor where it hit none: one in seven is likelier."""
    return np.where(np.arange(cells) % 7 == 0, 1.15, 1.0)


def five_per_cent_more_recent(cells: int) -> np.ndarray:
    """Stand for a rounding that favours the newer half by five per cent."""
    return np.where(np.arange(cells) >= cells // 2, 1.05, 1.0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "bias",
    [newest_half_as_likely, newest_never, oldest_never, next_one_instead, five_per_cent_more_recent],
)
def test_a_slightly_wrong_sampler_fails(
    bias: Callable[[int], np.ndarray], case: Callable[[int], Pair], seed: int
) -> None:
    """The test above has the power to see one anchor that is left out, and a few per cent of bias."""
    cells = len(case(seed).reference.anchors())

    assert excess_of_cells(weighted(bias(cells), np.random.default_rng(seed)), cells) > 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_right_sampler_passes(seed: int) -> None:
    """NumPy's own uniform draw stays below the bound, from two cells to two thousand."""
    rng = np.random.default_rng(seed)

    assert all(excess_of_cells(lambda n, c=cells: rng.integers(c, size=n), cells) < 1 for cells in (2, 50, 2000))


@pytest.mark.parametrize("seed", SEEDS)
def test_streams_drawn_before_steps_fail(seed: int) -> None:
    """To draw a stream first and a step second is not uniform where streams are of unequal length."""
    anchors = unequal_streams(seed).reference.anchors()
    held = [sum(stream == key[0] for key in anchors) for stream in range(5)]
    weights = np.array([1 / held[stream] for stream, _ in anchors])

    assert excess_of_cells(weighted(weights, np.random.default_rng(seed)), len(anchors)) > 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_batch_without_replacement_fails(seed: int) -> None:
    """A sampler that never draws one anchor twice in a batch is uniform by cells, but not by pairs."""
    rng = np.random.default_rng(seed)

    assert excess_of_cells(lambda _: rng.permutation(8).repeat(BATCH // 8), 8) < 1
    assert excess_of_pairs(lambda n: rng.permutation(8)[:n], 8, batch=8) > 1
