"""Each new step at least once soon, at most a share of a batch, whatever else fills it."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draw import contract
from tests.draw.windows import WINDOWS, episode, keys, ledger, legal, started
from tests.timeline.ledger import ledgers, programs

from ringfence import Field, NotEnoughData, Replay, Schema, Uniform
from ringfence.draw import Drawn
from ringfence.draw.epochs import Epochs
from ringfence.draw.fresh import Fresh, longest
from ringfence.draw.recency import Recency
from ringfence.timeline import Window

SCHEMA = Schema(obs=Field((), np.int64), action=Field((), np.int64))


def fresh(**seed):
    """Make a draw of new steps."""
    return Fresh(Uniform(**seed), share=0.6)


def fresh_rows(draw, book, count):
    """Draw; give the anchors that were drawn for being new."""
    found = draw.draw(book.timeline.look(), count)
    unknown = np.zeros(count, bool) if found.probabilities is None else np.isnan(found.probabilities)
    assert (unknown[:-1] >= unknown[1:]).all(), "new steps lie in front"
    return [key for key, new in zip(keys(found.anchors), unknown, strict=True) if new]


@pytest.mark.parametrize("check", contract.CHECKS)
def test_it_keeps_the_contract_of_draws(check):
    """Legal anchors, refusals, seeds, state: as every draw."""
    check(fresh)


@pytest.mark.parametrize("streams", [1, 3])
def test_each_new_step_comes_once(streams):
    """Steps come once each, those that waited longest first; what was there before the view is not new."""
    book = ledger(streams, 60)
    episode(book, 10)
    draw = started(Fresh(), book)
    assert fresh_rows(draw, book, 4) == []
    found = []
    for turn in range(40):
        episode(book, 1 + turn % 5, turn % streams, end=turn % 3 > 0)
        found += fresh_rows(draw, book, 6)

    new = [key for key in legal(book, Window()) if key[1] >= 10 or key[0]]
    assert max(Counter(found).values()) == 1
    assert set(found) >= set(new)
    assert draw.stats()["fresh"] == len(found)
    assert draw.stats()["missed"] == draw.stats()["waiting"] == 0


def test_the_longest_waiting_come_first():
    """With more new steps than a batch takes, queues shrink from the longest, oldest step first."""
    book = ledger(3, 60)
    draw = started(Fresh(), book)
    for stream, length in enumerate((9, 2, 5)):
        episode(book, length, stream)

    assert fresh_rows(draw, book, 4) == [(0, time) for time in range(4)]
    assert sorted(fresh_rows(draw, book, 3)) == [(0, 4), (0, 5), (2, 0)]
    assert sorted(fresh_rows(draw, book, 9)) == [(0, 6), (0, 7), (0, 8), (1, 0), (1, 1), (2, 1), (2, 2), (2, 3), (2, 4)]


@pytest.mark.parametrize(("share", "sizes"), [(0.5, [1, 2, 1, 2]), (0.25, [0, 1, 1, 1]), (1.0, [3, 3, 3, 3])])
def test_new_steps_take_at_most_their_share(share, sizes):
    """A fraction of a row is kept for the batches that follow, and never taken in advance."""
    book = ledger(1, 60)
    draw = started(Fresh(share=share), book)
    episode(book, 50)

    assert [len(fresh_rows(draw, book, 3)) for _ in range(4)] == sizes


def test_what_was_not_used_of_a_share_is_gone():
    """A batch for which nothing new was there leaves no debt: later ones take no more than their share."""
    book = ledger(1, 60)
    episode(book, 5)
    draw = started(Fresh(share=0.5), book)
    for _ in range(10):
        assert fresh_rows(draw, book, 4) == []
    episode(book, 20)

    assert len(fresh_rows(draw, book, 4)) == 2


def test_those_overwritten_before_their_turn_are_counted():
    """So many steps went unseen: each new one was drawn, is waiting, or is counted as missed."""
    book = ledger(2, 20)
    draw = started(Fresh(share=0.25), book)
    given = 0
    for turn in range(30):
        episode(book, 4, turn % 2)
        given += len(fresh_rows(draw, book, 8))
    stats = draw.stats()

    assert stats["fresh"] == given == 60
    assert stats["missed"] > 0
    assert given + stats["missed"] + stats["waiting"] == 30 * 4
    book.do("clear")
    episode(book, 1)
    fresh_rows(draw, book, 8)
    assert draw.stats()["missed"] == 30 * 4 - given


@settings(max_examples=100)
@given(book=ledgers(), window=WINDOWS, data=st.data())
def test_every_new_step_is_read_that_any_window_holds(book, window, data):
    """Once the steps behind are known, each new step lies in a window that was drawn, if a legal one holds it."""
    heads = [len(line) for line in book.steps]
    draw = started(Fresh(), book, window)
    for op in data.draw(programs(book.shape.streams, 25)):
        book.do(op)
    given = set()
    if allowed := legal(book, window):
        given = set(fresh_rows(draw, book, 200))
        assert not fresh_rows(draw, book, 200)
    assert given <= set(allowed)
    if window.stride == 1 and not draw.stats()["missed"]:
        beyond = [len(line) - window.after - 1 if window.after else len(line) for line in book.steps]
        settled = {key for key in allowed if key[1] < beyond[key[0]]}
        assert reads(book, given, window) >= {
            key for key in reads(book, settled, window) if key[1] >= heads[key[0]]
        } - reads(book, set(allowed) - settled, window)


def reads(book, anchors, window):
    """Give the steps from each anchor to the end of its window, or of its episode."""
    read = set()
    for stream, time in anchors:
        mates = {entry.time for entry in book.held(stream) if entry.episode == book.steps[stream][time].episode}
        read |= {(stream, time + ahead) for ahead in range(window.after + 1) if time + ahead in mates}
    return read


def test_windows_lie_side_by_side():
    """Of an episode of ten, windows of four begin at 0, 4 and, to end with it, at 6; not before the end is known."""
    book = ledger(1, 60)
    draw = started(Fresh(), book, Window(after=3))
    episode(book, 10)
    assert fresh_rows(draw, book, 8) == [(0, 0), (0, 4)]
    episode(book, 8)
    assert fresh_rows(draw, book, 8) == [(0, 6), (0, 10)]
    episode(book, 1)
    assert fresh_rows(draw, book, 8) == [(0, 14)]


def test_other_boundaries_need_no_last_window():
    """Windows that cross or are padded cover an episode's end by themselves."""
    for boundary in ("cross", "pad"):
        book = ledger(1, 60)
        draw = started(Fresh(), book, Window(after=3, boundary=boundary))
        episode(book, 10)
        episode(book, 9)
        assert fresh_rows(draw, book, 8) == [(0, 0), (0, 4), (0, 8), (0, 10), (0, 14)]


def test_windows_of_a_quota_stay_in_line():
    """What one batch has no room for comes with the next: nothing is lost, nothing comes twice."""
    book = ledger(3, 300)
    draw = started(Fresh(), book, Window(after=2))
    for stream, length in enumerate((120, 40, 75)):
        for _ in range(length // 5):
            episode(book, 5, stream)
    found = [key for _ in range(60) for key in fresh_rows(draw, book, 2)]

    assert len(found) == len(set(found))
    assert set(found) >= {key for key in legal(book, Window(after=2)) if key[1] % 5 in (0, 2) and key[1] < 35}
    assert len(found) == 2 * 47 - 3


def test_a_view_made_in_an_episode_reads_its_next_steps():
    """The first window is the one that holds the first new step."""
    book = ledger(1, 60)
    episode(book, 6, end=False)
    draw = started(Fresh(), book, Window(after=3))
    episode(book, 5, end=False)

    assert fresh_rows(draw, book, 8) == [(0, 4)]


def test_a_batch_that_nobody_got_comes_again():
    """New steps keep their turn, and those that are gone by then are counted."""
    book = ledger(2, 10)
    draw = started(Fresh(Epochs(), share=0.5), book)
    episode(book, 8)
    first = contract.drawn(draw, book, 6)
    draw.take_back()
    assert contract.drawn(draw, book, 6) == first
    draw.take_back()
    episode(book, 4)

    assert fresh_rows(draw, book, 6) == [(0, 2), (0, 3), (0, 4)]
    assert draw.stats()["missed"] == 2
    inner = draw.stats()["inner"]
    assert inner["left"] + inner["skipped"] == 8 - 3


def test_a_refused_batch_changes_nothing():
    """Where the other draw finds nothing, the new steps keep their turn."""
    book = ledger(1, 30)
    draw = started(Fresh(Nothing(), share=0.5), book)
    episode(book, 9)
    before = str(draw.state())
    with pytest.raises(NotEnoughData, match="empty on purpose"):
        draw.draw(book.timeline.look(), 6)

    assert str(draw.state()) == before


class Nothing(Uniform):
    """Find nothing, and take priorities."""

    def draw(self, look, count):
        """Refuse."""
        del look, count
        raise NotEnoughData("empty on purpose")

    def update(self, anchors, priorities):
        """Take all but one."""
        return min(len(anchors.times), len(priorities)) - 1


def test_probabilities_and_weights_are_the_inner_draws():
    """Of new rows the probability is not known and the weight 1; the others have what the inner draw says."""
    book = ledger(1, 40)
    episode(book, 20)
    draw = started(Fresh(Weighted(5), share=0.5), book)
    old = draw.draw(book.timeline.look(), 4)
    assert old.weights.tolist() == [0.5] * 4
    episode(book, 20)
    found = draw.draw(book.timeline.look(), 6)
    chances = 2.0 ** (-(39 - found.anchors.times) / 5) * (1 - 2**-0.2) / (1 - 2**-8)

    assert np.isnan(found.probabilities[:3]).all()
    assert found.probabilities[3:] == pytest.approx(chances[3:])
    assert found.weights.tolist() == [1, 1, 1, 0.5, 0.5, 0.5]
    uniform = started(Fresh(), book)
    assert uniform.draw(book.timeline.look(), 6).probabilities is None
    episode(book, 2)
    assert uniform.draw(book.timeline.look(), 6).probabilities[2:].tolist() == [1 / 40] * 4


class Weighted(Recency):
    """Give weights too."""

    def draw(self, look, count):
        """Draw, each with half the weight."""
        found = super().draw(look, count)
        return Drawn(found.anchors, found.probabilities, np.full(count, 0.5, np.float32))


def test_priorities_go_to_the_inner_draw():
    """Its answer comes back; without priorities the error says so."""
    replay = Replay(SCHEMA, 30, seed=0)
    replay.add(1, 1, 0.0, 2, False)
    view = replay.transitions(draw=Fresh(Nothing()))
    assert view.update_priorities([0, 0], [1.0, 2.0]) == (1, 1)
    with pytest.raises(TypeError, match="none of these draws has priorities"):
        replay.transitions(draw=Fresh()).update_priorities([0], [1.0])


def test_a_state_of_another_number_of_streams_is_refused():
    """It says both numbers, and nothing is loaded."""
    draw, other = started(Fresh(), ledger(3, 10)), started(Fresh(), ledger(2, 10))
    before = str(other.state())
    with pytest.raises(ValueError, match=r"state: is of 3 stream\(s\), and there are 2"):
        other.load(draw.state())
    assert str(other.state()) == before


@pytest.mark.parametrize("share", [0, -0.5, 1.01, float("nan"), True])
def test_a_share_is_a_part_of_a_batch(share):
    """Anything but a number above 0 and up to 1 is refused when the draw is made."""
    with pytest.raises(ValueError, match=re.escape(f"share: expected a number above 0 and up to 1, got {share!r}")):
        Fresh(share=share)


@settings(max_examples=200)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(0, 40))
def test_the_longest_are_taken_from_first(lengths, count):
    """So many are taken in all, none below zero, and what is left is level but for one."""
    lengths = np.array(lengths)
    taken = longest(lengths, count)
    left = lengths - taken

    assert taken.sum() == min(count, lengths.sum())
    assert (taken >= 0).all()
    assert (left >= 0).all()
    assert not taken.any() or left[taken > 0].min() >= left.max() - 1
