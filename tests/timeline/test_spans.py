"""Runs of legal anchors, against every window of every step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draw.windows import WINDOWS, episode, keys, ledger, legal
from tests.timeline.ledger import ledgers

from ringfence import NotEnoughData
from ringfence.timeline import Anchors, Window
from ringfence.timeline.spans import Legal, spans


@settings(max_examples=100)
@given(ledger=ledgers(), window=WINDOWS)
def test_runs_hold_every_legal_anchor_and_no_other(ledger, window):
    """For any window and any history the runs are the brute-force list, in order, and none is empty."""
    look = ledger.timeline.look()
    found = spans(ledger.timeline, look, window)

    assert keys(found.nth(np.arange(found.total))) == legal(ledger, window)
    assert (found.counts > 0).all()
    assert found.total == ledger.timeline.count(look, window)


@settings(max_examples=60)
@given(ledger=ledgers(), window=WINDOWS)
def test_ids_are_written_in_order(ledger, window):
    """The ids fill the front of what was lent, and leave the rest."""
    look = ledger.timeline.look()
    out = np.full(look.total + 1, -7)
    total = spans(ledger.timeline, look, window).ids(out)

    assert out[:total].tolist() == ledger.timeline.ids(ledger.timeline.every(look, window)).tolist()
    assert (out[total:] == -7).all()


@settings(max_examples=60)
@given(ledger=ledgers(), window=WINDOWS, data=st.data())
def test_since_drops_what_lies_before(ledger, window, data):
    """Each stream keeps its legal anchors from a time on."""
    look = ledger.timeline.look()
    times = [data.draw(st.integers(0, int(head) + 2)) for head in look.heads]
    found = spans(ledger.timeline, look, window).since(times)

    assert keys(found.nth(np.arange(found.total))) == [key for key in legal(ledger, window) if key[1] >= times[key[0]]]


def test_what_is_legal_is_worked_out_again_when_the_ring_changes():
    """A step more, an episode cut, and a clear are all seen."""
    book = ledger(capacity=5)
    seen = Legal(book.timeline, Window(after=1))
    episode(book, 3, end=False)
    assert seen.at(book.timeline.look()).total == 2
    book.do("cut 0")
    episode(book, 2)
    assert seen.at(book.timeline.look()).total == 3
    assert seen.at(book.timeline.look()) is seen.at(book.timeline.look())
    book.do("clear")
    with pytest.raises(NotEnoughData, match="0 transitions are held"):
        seen.at(book.timeline.look())


def test_an_episode_is_one_run():
    """A whole episode is one run, however long it is."""
    book = ledger(capacity=50)
    episode(book, 70, end=False)
    found = spans(book.timeline, book.timeline.look(), Window(before=3, after=4))

    assert (found.firsts.tolist(), found.counts.tolist()) == ([23], [43])
    assert keys(found.nth(np.array([0, 42]))) == [(0, 23), (0, 65)]
    assert isinstance(found.nth(np.zeros(0, np.int64)), Anchors)
