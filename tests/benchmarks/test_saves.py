"""The benchmark of saves still runs, and its checks still tell right from wrong."""

import numpy as np
import pytest
from benchmarks import saves, ways
from benchmarks.saves import BASE, Row, Span, Work

TINY = Work("control", 1000)


@pytest.fixture(scope="module")
def row():
    """Do one round of our own library."""
    return saves.measure(BASE, TINY)


def test_a_round_fills_every_figure(row):
    """Both saves and the load are measured, and what is loaded is what was added."""
    assert (row.failed, row.wrong) == ("", [])
    assert row.spans.keys() == {"save", "again", "load"}
    assert all(span.begun < span.returned <= span.ended for span in row.spans.values())
    assert row.disk > 0


def test_a_library_that_fails_is_a_row(row):
    """A peer's error takes the place of its figures, and leaves the others alone."""
    lines = saves.table([row, Row(row.work, "other", failed="it broke")]).splitlines()
    assert lines[2].startswith("| ringfence | ")
    assert lines[3].startswith("| other | failed: it broke | ")
    assert len({line.count("|") for line in lines}) == 1


def test_ratios_are_multiples_of_ours():
    """Figures of others stand beside how many times ours they are; the peak is above what was there before."""
    names = ("save", "again", "load")
    ours = Row("", BASE, spans={name: Span(0, 1, 2, 0, 0, 10, 5) for name in names}, disk=1 << 20)
    other = Row("", "other", spans={name: Span(0, 3, 8, 0, 0, 10, 3 << 20) for name in names}, disk=2 << 20)
    cells = saves.table([ours, other]).splitlines()[3].split(" | ")
    assert cells[1:4] == ["3 (3x)", "8 (4x)", "3 (3x)"]
    assert cells[7:10] == ["3", "3", "2 (2x)"]


def test_a_ring_with_old_or_wrong_steps_is_found(tmp_path):
    """Steps that differ, that should be gone, or the lack of new ones are each told."""
    data = TINY.data()
    ring = ways.WAYS[BASE].build(TINY.name, TINY.steps, tmp_path)
    parts = saves.feed(ring, data, TINY.steps)
    next(parts)
    assert "draws steps that are not the newest" in saves.faults(ring, data, TINY)
    next(parts)
    assert saves.faults(ring, data, TINY) == []
    data.reward[:] += 1
    assert "reward differs" in saves.faults(ring, data, TINY)


def test_stacks_may_come_as_their_newest_frame():
    """A library that stacks while sampling gives one frame; another frame of the stack is wrong."""
    want = np.arange(24).reshape(2, 3, 2, 2)
    assert saves.same(want[:, -1:], want)
    assert not saves.same(want[:, :1], want)
