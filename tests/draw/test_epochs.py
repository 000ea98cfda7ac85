"""Every legal anchor once an epoch, whatever the ring does meanwhile."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draw import contract
from tests.draw.windows import WINDOWS, episode, keys, ledger, legal, started
from tests.timeline.ledger import ledgers

from ringfence import Field, Replay, Schema
from ringfence.draw.epochs import Epochs
from ringfence.timeline import Window

SCHEMA = Schema(obs=Field((), np.int64), action=Field((), np.int64))


@pytest.mark.parametrize("check", contract.CHECKS)
def test_it_keeps_the_contract_of_draws(check):
    """Legal anchors, refusals, seeds, state: as every draw."""
    check(Epochs)


@settings(max_examples=60)
@given(ledger=ledgers(), window=WINDOWS, sizes=st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_an_epoch_is_every_legal_anchor_once(ledger, window, sizes):
    """Cut into epochs, batches of any sizes are the brute-force list, each time in another order."""
    allowed = legal(ledger, window)
    if not allowed:
        return
    draw = started(Epochs(), ledger, window)
    found = [key for size in sizes for key in contract.drawn(draw, ledger, size)]

    assert len(found) == sum(sizes)
    for start in range(0, len(found), len(allowed)):
        epoch = found[start : start + len(allowed)]
        assert len(set(epoch)) == len(epoch)
        assert set(epoch) <= set(allowed)
        assert len(epoch) < len(allowed) or sorted(epoch) == sorted(allowed)
    assert draw.stats()["epochs"] == -(-len(found) // len(allowed))
    assert draw.stats()["left"] == -len(found) % len(allowed)


def test_orders_differ():
    """Epochs come in orders of their own, also those that one large batch spans."""
    book = ledger(1, 50)
    episode(book, 50, end=False)
    draw = started(Epochs(), book)
    orders = [tuple(contract.drawn(draw, book, 50)) for _ in range(3)]
    large = contract.drawn(draw, book, 150)
    orders += [tuple(large[start : start + 50]) for start in (0, 50, 100)]

    assert len(set(orders)) == 6
    assert all(sorted(order) == sorted(orders[0]) for order in orders)


def test_overwritten_steps_are_passed_over_and_counted():
    """Steps that go before their turn never come and are counted; those that stay still come once."""
    book = ledger(1, 50)
    episode(book, 50, end=False)
    draw = started(Epochs(), book)
    before = contract.drawn(draw, book, 20)
    episode(book, 30, end=False)
    left = {(0, time) for time in range(30, 50)} - set(before)
    gone = {(0, time) for time in range(30)} - set(before)
    after = contract.drawn(draw, book, len(left))

    assert set(after) == left
    contract.drawn(draw, book, 1)
    assert draw.stats()["skipped"] == len(gone)


def test_steps_added_meanwhile_join_the_next_epoch():
    """None of them comes before the epoch is over; then all do, and the batch in which it ends is full."""
    book = ledger(2, 40)
    episode(book, 10)
    draw = started(Epochs(), book)
    first = contract.drawn(draw, book, 6)
    episode(book, 7, stream=1)
    ninth = contract.drawn(draw, book, 21)

    assert sorted(first + ninth[:4]) == legal(book, Window())[:10]
    assert sorted(ninth[4:]) == legal(book, Window())
    assert draw.stats() == {"epochs": 2, "left": 0, "skipped": 0, "nbytes": 8 * 80}


def test_steps_that_are_no_anchors_any_more_are_passed_over():
    """A step whose earlier frames have gone is held, and yet is no anchor: it does not come."""
    book = ledger(1, 10)
    window = Window(before=3, short_start=True)
    episode(book, 10, end=False)
    draw = started(Epochs(), book, window)
    first = contract.drawn(draw, book, 1)
    episode(book, 4, end=False)
    rest = contract.drawn(draw, book, 6)

    assert set(rest) <= set(legal(book, window))
    assert {key for key in rest if key[1] < 10} >= {(0, 7), (0, 8), (0, 9)} - set(first)


def test_a_batch_that_nobody_got_comes_again():
    """What is taken back comes next, in its order; what is gone by then is counted, and no step comes twice."""
    book = ledger(1, 20)
    episode(book, 20, end=False)
    draw = started(Epochs(), book)
    first = contract.drawn(draw, book, 8)
    draw.take_back()
    draw.take_back()
    assert draw.stats()["left"] == 20
    again = contract.drawn(draw, book, 3) + contract.drawn(draw, book, 5)
    assert again == first
    draw.take_back()
    episode(book, 10, end=False)
    kept = [key for key in again[3:] if key[1] >= 10]
    left = {(0, time) for time in range(10, 20)} - set(again[:3])
    rest = contract.drawn(draw, book, len(left))

    assert rest[: len(kept)] == kept
    assert set(rest) == left


def test_what_was_taken_back_is_part_of_the_state():
    """A draw that is saved between a take-back and the next batch goes on where it was."""
    books = [contract.filled(), contract.filled()]
    draw, other = started(Epochs(), books[0]), started(Epochs(), books[1], seed=5)
    first = contract.drawn(draw, books[0], 7)
    draw.take_back()
    other.load(draw.state())

    assert contract.drawn(other, books[1], 7) == first


def test_a_state_of_a_larger_replay_is_refused():
    """It names steps that this replay never held; nothing is loaded."""
    book, small = contract.filled(), ledger(1, 10)
    draw, other = started(Epochs(), book), started(Epochs(), small)
    contract.drawn(draw, book, 1)
    before = other.state()
    with pytest.raises(ValueError, match=r"state: it has steps that this ring never held"):
        other.load(draw.state())
    assert str(other.state()) == str(before)


def test_many_epochs_in_one_batch_are_quick():
    """A batch of 100,000 of a single step, or of three, is drawn within a blink, and evenly."""
    book = ledger(1, 5)
    episode(book, 3)
    draw = started(Epochs(), book)
    counts = Counter(contract.drawn(draw, book, 100_000))

    assert sorted(counts.values()) == [33333, 33333, 33334]


def test_a_view_of_a_replay_takes_it():
    """Three batches of ten are all thirty steps; each is as likely as any other."""
    replay = Replay(SCHEMA, 30, streams=2, seed=0)
    for step in range(40):
        replay.add(step, step, 0.0, step + 1, step % 9 == 8, stream=step % 2)
    view = replay.transitions(draw=Epochs(seed=4))
    batches = [view.sample(10) for _ in range(3)]

    assert sorted(id for batch in batches for id in batch.ids.tolist()) == view.ids().tolist()
    assert batches[0].probabilities.tolist() == [1 / 30] * 10


def test_memory_stays_what_it_is():
    """Ten turns of the ring leave the very array that was made at first."""
    book = ledger(1, 40)
    draw = started(Epochs(), book)
    order = draw._order
    for _ in range(20):
        episode(book, 20)
        draw.draw(book.timeline.look(), 33)

    assert draw._order is order
    assert order.nbytes == 8 * 40
    assert len(keys(draw.draw(book.timeline.look(), 33).anchors)) == 33
