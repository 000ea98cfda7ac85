"""Saves that go on while steps are added."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from tests.saving import book
from tests.saving.book import FRAMED, SMALL, Filler

from ringfence import CheckpointError, Replay
from ringfence.checkpoint import directory
from ringfence.checkpoint.system import System


class Gate(System):
    """A disk that waits at its so-many-th write until it is let go."""

    def __init__(self, at: int = 0) -> None:
        self.at, self.reached, self.go = at, threading.Event(), threading.Event()

    def write(self, file, data):
        """Wait at the one, write at all."""
        if self.at == 0:
            self.reached.set()
            assert self.go.wait(30)
        self.at -= 1
        return super().write(file, data)


@pytest.fixture
def gate(monkeypatch):
    """Give a disk that waits, and let it go at the end whatever happens."""
    made = []

    def make(at=0):
        made.append(Gate(at))
        monkeypatch.setattr(directory, "SYSTEM", made[-1])
        return made[-1]

    yield make
    for one in made:
        one.go.set()


@pytest.mark.parametrize("at", range(6))
def test_a_background_save_is_of_the_moment_of_the_call(tmp_path, gate, at):
    """Adds, ends, new priorities and draws while it is being written are not in it, whatever was written already."""
    replay = Replay(FRAMED, 400, streams=2, seed=1, episode_length=4)
    views, filler = book.views(replay), Filler(replay)
    filler.steps(300)
    book.use(views, np.random.default_rng(0))
    replay.save(tmp_path / "at once")
    disk = gate(at)
    saving = replay.save(tmp_path / "meanwhile", background=True)
    assert disk.reached.wait(30)
    filler.steps(40)
    book.use(views, np.random.default_rng(1))
    assert not saving.done
    disk.go.set()
    saved = saving.wait(30)
    expected, got = Replay.load(tmp_path / "at once"), Replay.load(tmp_path / "meanwhile")

    assert saved.lost == 0
    book.assert_same_batches([expected._default, *book.views(expected)], [got._default, *book.views(got)])
    book.assert_same_ring(expected, got)
    book.assert_same_content(expected, got)


@pytest.mark.parametrize("at", [0, 2, 4])
@pytest.mark.parametrize("steps", [30, 150])
def test_steps_overwritten_before_they_were_written_are_left_out_and_counted(tmp_path, gate, at, steps):
    """On a full ring the oldest may go meanwhile: what is saved is whole, and the rest of the moment."""
    replay = Replay(FRAMED, 200, streams=2, seed=1, episode_length=4)
    filler = Filler(replay)
    filler.steps(700)
    before = book.content(replay)
    disk = gate(at)
    saving = replay.save(tmp_path / "save", background=True)
    assert disk.reached.wait(30)
    filler.steps(steps)
    disk.go.set()
    saved = saving.wait(30)
    loaded = Replay.load(tmp_path / "save")
    got = book.content(loaded)

    assert saved.steps == len(loaded) == 200 - saved.lost
    shown = np.isin(before["ids"], got["ids"])
    assert shown.sum() == len(got["ids"]) >= len(loaded) - loaded.streams  # a stack needs the step before
    for name, value in before.items():
        if name != "probabilities":
            np.testing.assert_array_equal(value[shown], got[name], err_msg=name)
    book.use(book.views(loaded), np.random.default_rng(0))


def test_a_second_save_waits_for_the_first(tmp_path, gate):
    """Two saves of one ring come one after the other, and the second builds on the first."""
    replay = Replay(SMALL, 100)
    filler = Filler(replay)
    filler.steps(50)
    disk = gate()
    first = replay.save(tmp_path / "save", background=True)
    assert disk.reached.wait(30)
    filler.steps(10)
    second = replay.save(tmp_path / "save", background=True)
    time.sleep(0.05)
    assert not second.done
    disk.go.set()

    assert (first.wait(30).number, second.wait(30).number) == (1, 2)
    book.assert_same_content(replay, Replay.load(tmp_path / "save"))


def test_a_failed_background_save_tells_whoever_waits(tmp_path):
    """The error is the one that a save at once would raise."""
    (tmp_path / "save").mkdir()
    (tmp_path / "save" / "mine.txt").write_text("")
    saving = Replay(SMALL, 10).save(tmp_path / "save", background=True)
    with pytest.raises(CheckpointError, match=r"holds 'mine\.txt'"):
        saving.wait(30)
    assert saving.done


def test_waiting_in_vain_says_so(tmp_path, gate):
    """A timeout is no failure of the save, which goes on."""
    disk = gate()
    saving = Replay(SMALL, 10).save(tmp_path / "save", background=True)
    with pytest.raises(TimeoutError, match=r"has not ended after 0\.01 seconds; it goes on"):
        saving.wait(0.01)
    disk.go.set()
    assert saving.wait(30).number == 1


def test_saves_while_another_thread_adds_are_whole(tmp_path):
    """A writer that never stops, saves at once and in the background: each loads, and its steps follow each other."""
    replay = Replay(FRAMED, 300, streams=2, seed=1, episode_length=4)
    filler, stop, failed = Filler(replay, ends=0.2), threading.Event(), []

    def add():
        try:
            while not stop.is_set():
                filler.steps(1)
        except BaseException as error:  # noqa: BLE001, raised below
            failed.append(error)

    thread = threading.Thread(target=add)
    thread.start()
    try:
        for number in range(60):
            saved = replay.save(tmp_path / "save", background=number % 2 == 0)
            if number % 2 == 0:
                saved.wait(30)
            loaded = Replay.load(tmp_path / "save")
            got = book.content(loaded)
            if not got:
                continue
            # the number of each step was added with it, here and in a wide field
            np.testing.assert_array_equal(got["number"], got["hidden"][:, 0].astype(np.int64))
            np.testing.assert_array_equal(got["number"], got["action"])
            assert len(set(got["number"].tolist())) == len(got["number"])
    finally:
        stop.set()
        thread.join()
    assert not failed


def test_a_ring_that_turned_whole_before_it_was_written_is_saved_as_empty(tmp_path, gate):
    """Nothing of the moment is left to be written, and the count says so; the next save has all."""
    replay = Replay(FRAMED, 20, seed=1, episode_length=4)
    filler = Filler(replay)
    filler.steps(50)
    disk = gate()
    saving = replay.save(tmp_path / "save", background=True)
    assert disk.reached.wait(30)
    filler.steps(50)
    disk.go.set()

    assert saving.wait(30).lost == 20
    assert len(Replay.load(tmp_path / "save")) == 0
    replay.save(tmp_path / "save")
    book.assert_same_content(replay, Replay.load(tmp_path / "save"))
