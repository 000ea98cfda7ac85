"""What every draw has to keep, whatever it prefers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.draw.windows import episode, keys, ledger, legal, started
from tests.timeline.ledger import Ledger

from ringfence import NotEnoughData
from ringfence.draw import Draw
from ringfence.timeline import Window

Make = Callable[..., Draw]
"""Make a draw; ``seed`` is given by keyword, or not at all."""

WINDOWS = [Window(), Window(before=2, short_start=True), Window(after=3), Window(after=2, boundary="cross", stride=2)]


def filled(streams: int = 3) -> Ledger:
    """Make streams of unequal length: turned, short, and empty; with ends all over."""
    book = ledger(streams, 30)
    for length in (4, 7, 1, 12, 20, 3):
        episode(book, length)
    for stream in range(1, streams - 1):
        episode(book, 9, stream)
        episode(book, 5, stream, end=False)
    return book


def drawn(draw: Draw, book: Ledger, count: int) -> list[tuple[int, int]]:
    """Draw now; give streams and times."""
    return keys(draw.draw(book.timeline.look(), count).anchors)


def check_legal(make: Make) -> None:
    """Only legal anchors come, in batches that are full, while the ring turns and is cleared."""
    for window in WINDOWS:
        book = filled()
        draw = started(make(), book, window)
        for turn in range(30):
            if turn == 15:
                book.do("clear")
                episode(book, 4, 2)
            episode(book, 1 + turn % 6, turn % 3)
            if allowed := set(legal(book, window)):
                found = drawn(draw, book, 1 + turn % 9)
                assert len(found) == 1 + turn % 9
                assert set(found) <= allowed


def check_refusal(make: Make) -> None:
    """Nothing to draw is said at once, with the counts; when there is something it is drawn."""
    book = ledger(2, 10)
    draw = started(make(), book, Window(after=4))
    words = r"{} transitions are held by 2 stream\(s\), the longest run .* is {}, and a window needs 0 .* and 4 after"
    for held, longest in ((0, 0), (3, 3), (6, 3)):
        with pytest.raises(NotEnoughData, match=words.format(held, longest)):
            draw.draw(book.timeline.look(), 7)
        episode(book, 3, stream=held // 3 % 2)
    episode(book, 5)
    assert set(drawn(draw, book, 7)) == {(0, 6)}


def check_seeds(make: Make) -> None:
    """Equal seeds of any kind draw equally, others otherwise; the view's generator serves where none is given."""
    kinds = [7, np.random.SeedSequence(7), np.random.default_rng(7)]
    runs = [batches(started(make(seed=seed), filled())) for seed in kinds]
    assert runs[0] == runs[1] == runs[2]
    assert runs[0] == batches(started(make(), filled(), seed=7))
    assert runs[0] != batches(started(make(seed=8), filled()))


def batches(draw: Draw, book: Ledger | None = None) -> list[list[tuple[int, int]]]:
    """Draw a few times while the streams grow."""
    book = filled() if book is None else book
    found = []
    for length in (2, 5, 3):
        found.append(drawn(draw, book, 11))
        episode(book, length, stream=1)
    return found


def check_state(make: Make) -> None:
    """After ``load`` the next draws are those that would have come, also in another object."""
    for window in WINDOWS:
        book, twin = filled(), filled()
        draw, other = started(make(), book, window), started(make(), twin, window, seed=99)
        drawn(draw, book, 8)
        state = draw.state()
        after = batches(draw, book)
        other.load(state)
        assert batches(other, twin) == after


def check_bound(make: Make) -> None:
    """A draw serves one view only."""
    draw = started(make(), filled())
    with pytest.raises(ValueError, match="this draw serves another view already"):
        started(draw, filled())


CHECKS = [check_legal, check_refusal, check_seeds, check_state, check_bound]
