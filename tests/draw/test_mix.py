"""Fixed shares of a batch by several draws: exact in the long run, with the mixture's own probabilities."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draw import contract
from tests.draw.windows import episode, keys, ledger, legal, started

from ringfence import Field, NotEnoughData, Replay, Schema, Uniform
from ringfence.draw import Drawn
from ringfence.draw.epochs import Epochs
from ringfence.draw.fresh import Fresh
from ringfence.draw.mix import Mix
from ringfence.draw.recency import Newest, Recency
from ringfence.draw.split import Split
from ringfence.timeline import Window

SCHEMA = Schema(obs=Field((), np.int64), action=Field((), np.int64))


def mix(**seed):
    """Make a mixture of four kinds."""
    return Mix([(Uniform(**seed), 2), (Recency(5, **seed), 1), (Epochs(**seed), 1), (Newest(60, **seed), 0.5)])


def alone(**seed):
    """Make a mixture of one: of several, each draws from its own generator where it has one."""
    return Mix([(Recency(5, **seed), 3)])


@pytest.mark.parametrize("check", contract.CHECKS)
def test_it_keeps_the_contract_of_draws(check):
    """Legal anchors, refusals, seeds, state: as every draw."""
    check(alone if check is contract.check_seeds else mix)


@settings(max_examples=200)
@given(
    shares=st.lists(st.sampled_from([0, 0.1, 1 / 3, 0.5, 1, 2, 7]), min_size=1, max_size=6).filter(any),
    counts=st.lists(st.integers(0, 40), min_size=1, max_size=60),
)
def test_splits_are_exact_in_the_long_run(shares, counts):
    """Splits are whole, nobody gets rows without a share, and totals stay within two rows of exact."""
    split = Split(shares)
    totals, exact = np.zeros(len(shares)), np.array(shares) / sum(shares)
    for at, count in enumerate(counts):
        rows = split.of(count)
        split.give(rows)
        totals += rows
        assert sum(rows) == count
        assert min(rows) >= 0
        assert not any(rows[part] for part, share in enumerate(shares) if not share)
        assert np.abs(totals - exact * sum(counts[: at + 1])).max() < 2


@pytest.mark.parametrize("shares", [[], [0, 0], [1, -0.1], [1, float("nan")], [1, float("inf")], 0.5, [[1, 2]]])
def test_shares_are_numbers_with_a_sum(shares):
    """Anything else is refused with what came."""
    with pytest.raises(ValueError, match="shares: expected numbers of 0 or more and at least one above 0, got "):
        Split(shares)


def test_whole_shares_are_met_in_every_batch():
    """Three to one of eight rows are six and two, in the order of the parts."""
    book = ledger(1, 60)
    episode(book, 60, end=False)
    draw = started(Mix([(Newest(5), 3), (Epochs(), 1)]), book)
    for _ in range(3):
        found = contract.drawn(draw, book, 8)
        assert min(time for _, time in found[:6]) >= 55
    assert draw.stats()["parts"][1]["left"] == 60 - 6


def test_fractions_of_a_row_are_made_up_for():
    """Of batches of one row, a third part gets every third."""
    book = ledger(1, 60)
    episode(book, 60, end=False)
    draw = started(Mix([(Uniform(), 2), (Epochs(), 1)]), book)
    left = []
    for _ in range(9):
        contract.drawn(draw, book, 1)
        left.append(draw.stats()["parts"][1]["left"])

    assert left[-1] == 60 - 3
    assert [60 - n for n in left[2::3]] == [1, 2, 3]


def test_probabilities_are_those_of_the_mixture():
    """Each is the sum of what every draw gives the step, by its share; over all legal anchors they sum to 1."""
    book = contract.filled()
    for window in contract.WINDOWS:
        parts = [(Uniform(), 2), (Recency(5), 1), (Newest(60), 1)]
        draw = started(Mix([*parts, (Mix([(Recency(2), 1), (Uniform(), 1)]), 4)]), book, window)
        look = book.timeline.look()
        found = draw.draw(look, 40)
        allowed = legal(book, window)
        uniform = np.full(len(allowed), 1 / len(allowed))
        recent = np.array([(book.timeline.look().heads[stream] - time) <= 20 for stream, time in allowed])
        fading = {h: np.array([2.0 ** (-(look.heads[s] - t) / h) for s, t in allowed]) for h in (2, 5)}
        fading = {h: values / values.sum() for h, values in fading.items()}
        exact = (2 * uniform + fading[5] + recent / recent.sum() + 2 * fading[2] + 2 * uniform) / 8

        every = draw.chances(look, book.timeline.every(look, window))
        assert every == pytest.approx(exact)
        assert every.sum() == pytest.approx(1)
        chance = dict(zip(allowed, exact, strict=True))
        assert found.probabilities == pytest.approx([chance[key] for key in keys(found.anchors)])
        assert found.weights is None


def test_even_draws_stay_even():
    """A mixture of draws that prefer nothing says so; one that cannot tell gives NaN."""
    book = contract.filled()
    even = started(Mix([(Uniform(), 1), (Epochs(), 1)]), book)
    assert even.draw(book.timeline.look(), 6).probabilities is None
    unknown = started(Mix([(Uniform(), 1), (Fresh(), 1)]), book)
    assert np.isnan(unknown.draw(book.timeline.look(), 6).probabilities).all()


class Ranked(Uniform):
    """Take priorities, and give weights."""

    def __init__(self, applied):
        super().__init__()
        self.applied, self.taken = applied, []

    def draw(self, look, count):
        """Draw, with weights."""
        return Drawn(super().draw(look, count).anchors, None, np.full(count, 0.25, np.float32))

    def update(self, anchors, priorities):
        """Remember what came."""
        self.taken.append((anchors.times.tolist(), priorities.tolist()))
        return self.applied


def test_priorities_go_to_every_draw_that_takes_them():
    """Each gets all of them; weights are each draw's own, 1 where it has none."""
    replay = Replay(SCHEMA, 30, seed=0)
    for step in range(3):
        replay.add(step, step, 0.0, step + 1, False)
    first, second = Ranked(1), Ranked(2)
    nested = Mix([(second, 1)])
    view = replay.transitions(draw=Mix([(first, 2), (Epochs(), 1), (Fresh(), 1), (nested, 2)]))

    assert view.update_priorities([0, 1, 2], [3.0, 2.0, 1.0]) == (2, 1)
    assert first.taken == second.taken == [([0, 1, 2], [3.0, 2.0, 1.0])]
    assert view.sample(6).weights.tolist() == [0.25, 0.25, 1, 1, 0.25, 0.25]
    assert view.update_priorities([0], [1.0]).applied == 2


def test_without_priorities_the_error_says_so():
    """No draw takes them."""
    replay = Replay(SCHEMA, 30, seed=0)
    with pytest.raises(TypeError, match="none of these draws has priorities; make one of them Prioritized"):
        replay.transitions(draw=Mix([(Uniform(), 1), (Fresh(), 1)])).update_priorities([0], [1.0])


def test_a_batch_that_nobody_got_comes_again():
    """Draws that keep account take their rows back, and nobody is owed more or less; the others are left alone."""
    book = ledger(1, 30)
    episode(book, 30)
    draw = started(Mix([(Epochs(), 2), (Epochs(), 1)]), book)
    contract.drawn(draw, book, 30)
    before = str(draw.state()["owed"])
    contract.drawn(draw, book, 1)
    draw.take_back()
    draw.take_back()

    assert str(draw.state()["owed"]) == before
    assert [part["left"] for part in draw.stats()["parts"]] == [10, 20]


def test_a_refused_batch_changes_nothing():
    """Where the second draw finds nothing, the first one takes its rows back."""
    book = ledger(1, 30)
    episode(book, 20)
    draw = started(Mix([(Epochs(), 1), (Newest(3), 1)]), book, Window(after=4))
    with pytest.raises(NotEnoughData, match=r"only the newest 3 step\(s\)"):
        draw.draw(book.timeline.look(), 4)

    assert draw.stats()["parts"][0]["left"] == 16
    assert draw.state()["owed"].tolist() == [0, 0]


@pytest.mark.parametrize("shares", [[1, 0], [0], [-1, 2], []])
def test_shares_are_above_zero(shares):
    """Anything else is refused when the mixture is made."""
    with pytest.raises(ValueError, match="shares: expected numbers"):
        Mix([(Uniform(), share) for share in shares])


def test_a_state_of_another_mixture_is_refused():
    """It says how many parts it is of."""
    book = contract.filled()
    one, two = started(Mix([(Uniform(), 1)]), book), started(Mix([(Uniform(), 1), (Uniform(), 1)]), book)
    with pytest.raises(ValueError, match=re.escape("state: is of 2 parts, and there are 1")):
        one.load(two.state())
