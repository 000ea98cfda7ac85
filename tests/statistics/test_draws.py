"""Draws that prefer something prefer it exactly as much as they say, and one that is a little off would be seen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.draw.windows import Key, episode, keys, ledger, legal, started
from tests.timeline.ledger import Ledger

from ringfence import Uniform
from ringfence.draw import Draw
from ringfence.draw.epochs import Epochs
from ringfence.draw.fresh import Fresh
from ringfence.draw.mix import Mix
from ringfence.draw.recency import Newest, Recency
from ringfence.timeline import Window

DRAWS, BATCH = 200_000, 2_000
SIGMAS = 4.0  # a right draw fails 3 times in 100,000; the seeds are fixed, so it passes always
SEEDS = (0, 1, 2)
HALF_LIFE = 12.0

Weights = Callable[[list[Key], Ledger], np.ndarray]
"""Say how likely each of these anchors is to be, a common factor aside."""


def turned() -> Ledger:
    """Turn one stream twice, by episodes of one to eleven steps."""
    book = ledger(1, 50)
    for length in (5, 1, 11, 1, 1, 7, 3, 9, 2, 1, 11, 6, 1, 4, 8, 1, 10, 5, 12):
        episode(book, length)
    episode(book, 6, end=False)
    return book


def unequal() -> Ledger:
    """Fill four streams to different degrees: one turned, one with three steps, one empty."""
    book = ledger(4, 40)
    for stream, length in enumerate((90, 3, 0, 25)):
        if length:
            episode(book, length, stream)
            episode(book, length // 4 + 1, stream, end=False)
    return book


WINDOWS = [Window(), Window(before=3, short_start=True), Window(after=4), Window(before=1, after=2, boundary="cross")]


def ages(anchors: list[Key], book: Ledger) -> np.ndarray:
    """Count the steps from each anchor to the newest of its stream."""
    return np.array([len(book.steps[stream]) - 1 - time for stream, time in anchors], float)


def excess(draw: Draw, book: Ledger, window: Window, weights: Weights) -> float:
    """Give Pearson's statistic against these weights, over what a right draw stays below: above 1 is a failure."""
    anchors = legal(book, window)
    place = {key: at for at, key in enumerate(anchors)}
    share = weights(anchors, book)
    share = share / share.sum()
    counts, look = np.zeros(len(anchors)), book.timeline.look()
    for _ in range(DRAWS // BATCH):
        found = [place[key] for key in keys(draw.draw(look, BATCH).anchors)]
        counts += np.bincount(found, minlength=len(anchors))
    assert not counts[share == 0].any(), "drew what has no share"
    return chi_squared(counts, share)


def chi_squared(counts: np.ndarray, share: np.ndarray) -> float:
    """Give Pearson's statistic over the value that a right draw stays below; rare cells are counted as one."""
    expected = share * counts.sum()
    rare = expected < 10
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    some = expected > 0
    degrees = int(some.sum()) - 1
    spread = 2 / (9 * degrees)
    statistic = ((counts - expected)[some] ** 2 / expected[some]).sum()
    return float(statistic / (degrees * (1 - spread + SIGMAS * spread**0.5) ** 3))


def fading(anchors: list[Key], book: Ledger) -> np.ndarray:
    """Halve with each half-life."""
    return 2.0 ** (-ages(anchors, book) / HALF_LIFE)


def newest(anchors: list[Key], book: Ledger) -> np.ndarray:
    """Count each stream's newest fifteen, and no other."""
    return (ages(anchors, book) < 15) * 1.0


def even(anchors: list[Key], book: Ledger) -> np.ndarray:
    """Prefer none."""
    return np.ones_like(ages(anchors, book))


def mixed(anchors: list[Key], book: Ledger) -> np.ndarray:
    """Mix one half that fades with one that prefers none."""
    parts = fading(anchors, book), even(anchors, book)
    return sum(part / part.sum() for part in parts)


CASES = [
    (lambda _: Recency(HALF_LIFE), fading),
    (lambda book: Newest(15 * book.shape.streams), newest),
    (lambda _: Epochs(), even),
    (lambda _: Fresh(), even),
    (lambda _: Mix([(Recency(HALF_LIFE), 1), (Uniform(), 1)]), mixed),
]
NAMES = ["recency", "newest", "epochs", "fresh", "mix"]


@pytest.mark.parametrize("window", WINDOWS, ids=["one", "stack", "sequence", "cross"])
@pytest.mark.parametrize("rings", [turned, unequal])
@pytest.mark.parametrize(("make", "weights"), CASES, ids=NAMES)
def test_anchors_are_drawn_as_often_as_they_should(make, weights, rings, window) -> None:
    """200,000 draws spread over all legal anchors as a die of these weights would."""
    book = rings()

    assert excess(started(make(book), book, window, seed=1), book, window, weights) < 1


# -- what the statistic sees


def shorter(anchors: list[Key], book: Ledger) -> np.ndarray:
    """Stand for a half-life that is five per cent too short."""
    return 2.0 ** (-ages(anchors, book) / (0.95 * HALF_LIFE))


def one_older(anchors: list[Key], book: Ledger) -> np.ndarray:
    """Stand for ages that count from the newest of all streams' time, not from each stream's newest."""
    newest = max(len(line) for line in book.steps)
    return 2.0 ** (-np.array([newest - time for _, time in anchors]) / HALF_LIFE)


def without_oldest(anchors: list[Key], book: Ledger) -> np.ndarray:
    """Stand for a range that begins one too late."""
    weights = fading(anchors, book)
    weights[0] = 0
    return weights


def without_newest(anchors: list[Key], book: Ledger) -> np.ndarray:
    """Stand for a range that ends one too early."""
    weights = fading(anchors, book)
    weights[ages(anchors, book).argmin()] = 0
    return weights


def stream_first(anchors: list[Key], book: Ledger) -> np.ndarray:
    """Stand for a stream that is drawn first, and a step of it second."""
    weights, streams = fading(anchors, book), np.array([stream for stream, _ in anchors])
    return weights / np.array([weights[streams == stream].sum() for stream in streams])


@pytest.mark.parametrize(
    ("wrong", "rings"),
    [
        (shorter, turned),
        (shorter, unequal),
        (one_older, unequal),
        (without_oldest, turned),
        (without_newest, turned),
        (without_newest, unequal),
        (stream_first, unequal),
    ],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_slightly_wrong_draw_fails(wrong: Weights, rings: Callable[[], Ledger], seed: int) -> None:
    """The test above has the power to see a few per cent, and a single anchor that is left out."""
    book = rings()
    anchors = legal(book, Window())
    share, right = wrong(anchors, book), fading(anchors, book)
    counts = np.random.default_rng(seed).multinomial(DRAWS, share / share.sum())

    assert chi_squared(counts, right / right.sum()) > 1
    counts = np.random.default_rng(seed).multinomial(DRAWS, right / right.sum())
    assert chi_squared(counts, right / right.sum()) < 1


# -- orders of epochs


def orders(draw: Callable[[], list[int]], rounds: int) -> float:
    """Measure how far from equally likely the 24 orders of four steps are."""
    counts = np.zeros(256)
    for _ in range(rounds):
        counts[np.array([64, 16, 4, 1]) @ draw()] += 1
    assert np.count_nonzero(counts) <= 24
    share = np.zeros(256)
    share[np.flatnonzero(counts)] = 1 / 24
    return chi_squared(counts, share)


@pytest.mark.parametrize("whole", [1, 3])
def test_every_order_of_an_epoch_is_equally_likely(whole: int) -> None:
    """Also where one batch spans several epochs."""
    book = ledger(1, 10)
    episode(book, 4)
    draw = started(Epochs(), book)
    look, left = book.timeline.look(), []

    def epoch() -> list[int]:
        if not left:
            left.extend(np.reshape(draw.draw(look, 4 * whole).anchors.times, (whole, 4)).tolist())
        return left.pop()

    assert orders(epoch, 12_000) < 1


def test_an_order_that_is_not_quite_random_fails() -> None:
    """A shuffle that swaps each place with any place, a known mistake, is seen."""
    random = np.random.default_rng(0)

    def naive() -> list[int]:
        order = list(range(4))
        for place, other in enumerate(random.integers(0, 4, 4)):
            order[place], order[other] = order[other], order[place]
        return order

    assert orders(naive, 12_000) > 1
    assert orders(lambda: random.permutation(4).tolist(), 12_000) < 1
