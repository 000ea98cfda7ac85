"""Windows are drawn uniformly, whatever ends them, and a sampler that is a little off would not pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.model.test_sequences import BOUNDARIES, Asked, Oracle
from tests.statistics.test_uniform import (
    SEEDS,
    Sampler,
    cut_stack,
    excess_of_cells,
    excess_of_pairs,
    five_per_cent_more_recent,
    newest_half_as_likely,
    newest_never,
    next_one_instead,
    oldest_never,
    unequal_streams,
    weighted,
    wrapped_with_ends,
)

from ringfence.testing.machine import Pair

CASES = [wrapped_with_ends, unequal_streams, cut_stack]
ASKED = [Asked(4, boundary=boundary) for boundary in BOUNDARIES] + [Asked(2, stride=3)]


def sampler(pair: Pair, asked: Asked) -> tuple[int, Sampler]:
    """Number the legal windows; draw from the view and give such numbers."""
    view = asked.view(pair.replay)
    legal = np.array(list(Oracle(pair, asked).windows()))
    order = legal.argsort()

    def draw(n: int) -> np.ndarray:
        drawn = view.sample(n).ids
        assert np.isin(drawn, legal).all(), f"drew {set(drawn.tolist()) - set(legal.tolist())}, no legal windows"
        return order[np.searchsorted(legal, drawn, sorter=order)]

    return len(legal), draw


@pytest.mark.parametrize("seed", SEEDS[:1])
@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_every_legal_window_is_drawn_equally_often(case: Callable[[int], Pair], asked: Asked, seed: int) -> None:
    """400,000 draws spread over all legal windows as those of a fair die would, and over nothing else."""
    cells, draw = sampler(case(seed), asked)

    assert excess_of_cells(draw, cells) < 1


def test_two_draws_of_a_batch_know_nothing_of_each_other() -> None:
    """Each pair of windows follows each other equally often in a batch, the same one twice too."""
    cells, draw = sampler(wrapped_with_ends(0), Asked(6))

    assert cells > 5
    assert excess_of_pairs(draw, cells, batch=50) < 1


def next_legal(pair: Pair, asked: Asked) -> np.ndarray:
    """Give the chances under a draw that goes on to the next legal window from wherever it hits."""
    held = np.array(list(Oracle(pair, Asked(1)).windows()))
    legal = np.array(list(Oracle(pair, asked).windows()))
    hit = np.searchsorted(legal, held) % len(legal)
    return np.bincount(hit, minlength=len(legal)).astype(float)


@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize(
    "bias", [newest_half_as_likely, newest_never, oldest_never, next_one_instead, five_per_cent_more_recent]
)
def test_a_slightly_wrong_sampler_fails(bias: Callable[[int], np.ndarray], asked: Asked) -> None:
    """The test above has the power to see one window that is left out, and a few per cent of bias."""
    cells = len(Oracle(unequal_streams(0), asked).windows())

    assert excess_of_cells(weighted(bias(cells), np.random.default_rng(0)), cells) > 1


@pytest.mark.parametrize("asked", [Asked(4), Asked(2, stride=3)], ids=str)
def test_the_next_legal_window_instead_fails(asked: Asked) -> None:
    """To go on to the next legal window from a step that begins none favours those behind an episode's end."""
    chances = next_legal(wrapped_with_ends(0), asked)

    assert excess_of_cells(weighted(chances, np.random.default_rng(0)), len(chances)) > 1
