"""Draws by episode: an episode first, a step of it second, each as likely as any other of its kind."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draw import contract
from tests.draw.windows import WINDOWS, episode, keys, ledger, legal, started
from tests.timeline.ledger import ledgers

from ringfence import Field, Mix, Replay, Schema, Uniform
from ringfence.draw.perepisode import PerEpisode
from ringfence.testing.draws import DrawContract
from ringfence.testing.tally import excess
from ringfence.timeline import Window

SCHEMA = Schema(obs=Field((), np.int64), action=Field((), np.int64))
DRAWS = 60_000
SEEDS = (0, 1, 2)


class TestPerEpisode(DrawContract):
    """The public contract of draws."""

    def make_draw(self, seed=None):
        """Make one."""
        return PerEpisode(seed)


@pytest.mark.parametrize("check", contract.CHECKS)
def test_it_keeps_the_contract_of_draws(check):
    """Legal anchors, refusals, seeds, state: as every draw."""
    check(PerEpisode)


def shares(book, window) -> dict[tuple[int, int], float]:
    """Work out by brute force how likely each legal anchor is to be."""
    episodes = {(stream, entry.time): (stream, entry.episode) for stream, entry in book.everything()}
    anchors = legal(book, window)
    sizes = Counter(episodes[key] for key in anchors)
    return {key: 1 / (len(sizes) * sizes[episodes[key]]) for key in anchors}


@settings(max_examples=80)
@given(ledger=ledgers(), window=WINDOWS, count=st.integers(1, 9))
def test_probabilities_are_exact(ledger, window, count):
    """They are one over the episodes that have a legal anchor, times one over such anchors of the episode."""
    exact = shares(ledger, window)
    if not exact:
        return
    look = ledger.timeline.look()
    draw = started(PerEpisode(), ledger, window)
    found = draw.draw(look, count)

    assert found.probabilities == pytest.approx([exact[key] for key in keys(found.anchors)], rel=1e-12)
    assert draw.chances(look, ledger.timeline.every(look, window)) == pytest.approx(list(exact.values()), rel=1e-12)
    assert sum(exact.values()) == pytest.approx(1)


@settings(max_examples=40)
@given(ledger=ledgers(), window=WINDOWS)
def test_every_legal_anchor_can_be_drawn(ledger, window):
    """The drawn set is the brute-force set."""
    exact = shares(ledger, window)
    if not exact:
        return
    draws = int(20 / min(exact.values()))
    found = set(contract.drawn(started(PerEpisode(), ledger, window), ledger, draws))

    assert found == set(exact)


def turned(streams=1):
    """Fill streams with episodes of one to twenty steps, the oldest partly gone, the newest open."""
    book = ledger(streams, 60)
    for stream in range(streams):
        for length in (20, 1, 1, 12, 3, 20, 7, 2, 5):
            episode(book, length, stream)
        episode(book, 4, stream, end=False)
    return book


TRIED = [Window(), Window(after=3), Window(before=2, short_start=True), Window(before=1, after=1, stride=2)]


@pytest.mark.parametrize("window", TRIED, ids=["one", "sequence", "stack", "stride"])
@pytest.mark.parametrize("streams", [1, 3])
def test_frequencies_are_those_of_a_die_per_episode(window, streams):
    """Anchors are drawn as often as an episode's die, and then a step's, would say."""
    book = turned(streams)
    exact = shares(book, window)

    assert excess(counted(started(PerEpisode(), book, window), book, exact), share(exact)) < 1


@pytest.mark.parametrize("seed", SEEDS)
def test_other_draws_do_not_pass_for_it(seed):
    """The same statistic sees a draw over all windows alike, and one that leaves out a single window."""
    book = turned()
    exact = shares(book, Window(after=3))
    uniform = started(Uniform(seed), book, Window(after=3))
    assert excess(counted(uniform, book, exact), share(exact)) > 1

    wrong = share(exact).copy()
    wrong[-1] = 0
    counts = np.random.default_rng(seed).multinomial(DRAWS, wrong / wrong.sum())
    assert excess(counts, share(exact)) > 1


def counted(draw, book, exact):
    """Count many draws."""
    place = {key: at for at, key in enumerate(exact)}
    found = contract.drawn(draw, book, DRAWS)
    return np.bincount([place[key] for key in found], minlength=len(place))


def share(exact):
    """Give the probabilities as an array."""
    return np.array(list(exact.values()))


def test_batches_hold_the_probabilities():
    """A view of a replay gives those of the draw: here of two episodes, one of two windows and one of eight."""
    replay = Replay(SCHEMA, 100, seed=0)
    for length in (4, 10, 2):
        for step in range(length):
            replay.add(step, length, 0.0, step + 1, step == length - 1)
    batch = replay.sequences(3, draw=PerEpisode()).sample(400)

    assert set(batch.action[:, 0].tolist()) == {4, 10}
    assert np.array_equal(batch.probabilities, np.where(batch.action[:, 0] == 4, 1 / 4, 1 / 16))


def test_a_mixture_knows_how_likely_it_is():
    """As a part of a mix it tells the probability of what the others chose."""
    replay = Replay(SCHEMA, 100, seed=0)
    for length in (1, 9):
        for step in range(length):
            replay.add(step, length, 0.0, step + 1, step == length - 1)
    batch = replay.transitions(draw=Mix([(PerEpisode(), 1), (Uniform(), 1)])).sample(100)

    assert batch.probabilities == pytest.approx(
        np.where(batch.action == 1, (1 / 2 + 1 / 10) / 2, (1 / 18 + 1 / 10) / 2)
    )
