"""Recent steps more often: exact probabilities over any legal anchors, and windows that hold the newest."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draw import contract
from tests.draw.windows import WINDOWS, episode, keys, ledger, legal, started
from tests.timeline.ledger import ledgers

from ringfence import Field, NotEnoughData, Replay, Schema
from ringfence.draw.recency import Newest, Recency
from ringfence.timeline import Window

SCHEMA = Schema(obs=Field((), np.int64), action=Field((), np.int64))


def recency(**seed):
    """Make a draw that fades with age."""
    return Recency(6.5, **seed)


def newest(**seed):
    """Make a draw that holds the newest steps."""
    return Newest(60, **seed)


def fading(**seed):
    """Make a draw that emphasises recent experience."""
    return Newest.ere(4, eta=0.999, least=60, **seed)


@pytest.mark.parametrize("check", contract.CHECKS)
@pytest.mark.parametrize("make", [recency, newest, fading])
def test_it_keeps_the_contract_of_draws(make, check):
    """Legal anchors, refusals, seeds, state: as every draw."""
    check(make)


@settings(max_examples=60)
@given(
    ledger=ledgers(), window=WINDOWS, half_life=st.sampled_from([0.01, 0.5, 1, 3.3, 40, 1e9]), count=st.integers(1, 9)
)
def test_probabilities_halve_with_each_half_life(ledger, window, half_life, count):
    """They are 2 ** (-age / half_life) over the sum of all legal anchors', each stream's age from its own newest."""
    allowed = legal(ledger, window)
    if not allowed:
        return
    look = ledger.timeline.look()
    draw = started(Recency(half_life), ledger, window)
    ages = np.array([look.heads[stream] - 1 - time for stream, time in allowed], np.float64)
    exact = 2.0 ** (-(ages - ages.min()) / half_life)
    exact = dict(zip(allowed, exact / exact.sum(), strict=True))

    found = draw.draw(look, count)
    every = ledger.timeline.every(look, window)

    assert found.probabilities == pytest.approx([exact[key] for key in keys(found.anchors)], rel=1e-9)
    assert draw.chances(look, every) == pytest.approx(list(exact.values()), rel=1e-9, abs=1e-300)
    assert draw.chances(look, every).sum() == pytest.approx(1, rel=1e-9)


@settings(max_examples=60)
@given(ledger=ledgers(), window=WINDOWS)
def test_every_legal_anchor_can_be_drawn(ledger, window):
    """With a long half-life the drawn set is the brute-force set, the newest and the oldest among it."""
    allowed = legal(ledger, window)
    if not allowed:
        return
    draw = started(Recency(50), ledger, window)

    assert set(contract.drawn(draw, ledger, 4000)) == set(allowed)


@pytest.mark.parametrize("half_life", [1e-9, 1e15])
def test_extreme_half_lives_do_not_break(half_life):
    """As short as can be, only the newest comes; as long as can be, everything does."""
    book = ledger(1, 50)
    episode(book, 70, end=False)
    found = set(contract.drawn(started(Recency(half_life), book), book, 2000))

    assert found == ({(0, 69)} if half_life < 1 else {(0, time) for time in range(20, 70)})


def test_a_legal_anchor_far_from_the_newest_is_found():
    """Where only old steps are legal, they come, however small their share of all steps would be."""
    book = ledger(1, 400)
    episode(book, 40)
    for _ in range(150):
        episode(book, 2)
    draw = started(Recency(0.5), book, Window(after=20))

    assert set(contract.drawn(draw, book, 500)) >= {(0, 19), (0, 18)}
    assert draw.draw(book.timeline.look(), 9).probabilities.max() == pytest.approx(0.75)


@settings(max_examples=60)
@given(ledger=ledgers(), window=WINDOWS, share=st.integers(1, 12))
def test_newest_draws_from_each_streams_newest(ledger, window, share):
    """The drawn set is that of the legal anchors among each stream's newest, and all are equally likely."""
    look, streams = ledger.timeline.look(), ledger.shape.streams
    draw = started(Newest(share * streams + streams - 1), ledger, window)
    inside = {key for key in legal(ledger, window) if key[1] >= look.heads[key[0]] - share}
    if not inside:
        with pytest.raises(NotEnoughData, match=r"no step can be drawn"):
            draw.draw(look, 5)
        return
    found = draw.draw(look, 600)

    assert set(keys(found.anchors)) == inside
    assert found.probabilities == pytest.approx(np.full(600, 1 / len(inside)))
    chances = draw.chances(look, ledger.timeline.every(look, window))
    assert chances.tolist() == [1 / len(inside) if key in inside else 0 for key in legal(ledger, window)]


def test_newest_says_how_few_it_draws_from():
    """Where there are legal anchors, but none among the newest, the error names the window."""
    book = ledger(2, 30)
    episode(book, 20)
    draw = started(Newest(9), book, Window(after=6))
    with pytest.raises(NotEnoughData, match=r"of each stream only the newest 4 step\(s\) are drawn from"):
        draw.draw(book.timeline.look(), 1)
    assert draw.stats() == {"newest": 1, "batches": 0}


def test_emphasis_follows_the_paper():
    """Batch k of K comes from the newest max(N * eta ** (1000 k / K), least), and the next round begins anew."""
    book = ledger(1, 2000)
    episode(book, 1000)
    draw = started(Newest.ere(4, eta=0.996, least=30), book)
    sizes = []
    for _ in range(8):
        draw.draw(book.timeline.look(), 3)
        sizes.append(draw.stats()["newest"])

    assert sizes == 2 * [max(int(1000 * 0.996 ** (1000 * k / 4)), 30) for k in (1, 2, 3, 4)]
    assert sizes[3] == 30


def test_a_function_says_how_many_steps():
    """It is asked for every batch, with the batches drawn and the steps held."""
    asked = []
    book = ledger(2, 20)
    draw = started(Newest(lambda drawn, held: asked.append((drawn, held)) or 7.9), book)
    for length in (5, 3):
        episode(book, length)
        head = len(book.steps[0])
        assert {time for _, time in contract.drawn(draw, book, 200)} == set(range(head - 3, head))
    assert asked == [(0, 5), (1, 8)]


@pytest.mark.parametrize("half_life", [0, -1, float("nan"), float("inf"), True, "10", None])
def test_a_half_life_is_a_number_above_zero(half_life):
    """Anything else is refused when the draw is made."""
    with pytest.raises(ValueError, match=re.escape(f"half_life: expected a number above 0, got {half_life!r}")):
        Recency(half_life)


@pytest.mark.parametrize("steps", [0, -3, 2.5, True, "10", None])
def test_newest_takes_a_whole_number(steps):
    """Anything else that is no function is refused when the draw is made."""
    with pytest.raises(ValueError, match=re.escape(f"at least 1, or a function, got {steps!r}")):
        Newest(steps)


def test_newest_leaves_each_stream_a_step():
    """Fewer steps than streams are refused when the view is made, with the minimum."""
    replay = Replay(SCHEMA, 40, streams=4)
    with pytest.raises(ValueError, match="steps: 3 leave none to each of 4 streams; the minimum is 4"):
        replay.transitions(draw=Newest(3))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"updates": 0}, "updates: expected a whole number of at least 1, got 0"),
        ({"updates": True}, "updates: expected a whole number of at least 1, got True"),
        ({"updates": 5, "eta": 0}, "eta: expected a number above 0 and up to 1, got 0"),
        ({"updates": 5, "eta": 1.01}, r"eta: expected a number above 0 and up to 1, got 1\.01"),
        ({"updates": 5, "least": 0}, "least: expected a number above 0, got 0"),
    ],
)
def test_emphasis_checks_its_numbers(options, words):
    """Each number that makes no sense is refused by name."""
    with pytest.raises(ValueError, match=words):
        Newest.ere(**options)


def test_batches_hold_the_probabilities():
    """A view of a replay gives those of the draw, and no weights."""
    replay = Replay(SCHEMA, 100, seed=0)
    for step in range(150):
        replay.add(step, step, 0.0, step + 1, step % 9 == 8)
    batch = replay.transitions(n_step=3, draw=Recency(10)).sample(64)

    assert batch.probabilities == pytest.approx(
        2.0 ** (-(149 - batch.action) / 10) * (1 - 2**-0.1) / (1 - 2.0**-10), rel=1e-9
    )
    assert batch.weights.tolist() == [1] * 64
