"""Every call to the disk fails in turn, and the process dies at any instant: the last whole save loads."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest
from tests.saving import book
from tests.saving.book import FRAMED, SMALL, Filler

from ringfence import CheckpointError, Replay
from ringfence.checkpoint import directory
from ringfence.checkpoint.system import System

KILLS = 200


class Failing(System):
    """A system of which one call fails: the so-many-th, counted over all kinds of calls."""

    def __init__(self, at: int = -1, error: int = errno.EIO, short: bool = False) -> None:
        self.calls, self.at, self.error, self.short = [], at, error, short

    def _call(self, name: str) -> bool:
        """Count a call; tell whether it is the one."""
        self.calls.append(name)
        return len(self.calls) - 1 == self.at

    def _fail(self, name: str) -> None:
        if self._call(name):
            raise OSError(self.error, os.strerror(self.error))

    def create(self, path):
        """Make a file, or fail."""
        self._fail("create")
        return super().create(path)

    def write(self, file, data):
        """Write half of it and fail, or say that it was half."""
        if self._call("write"):
            written = super().write(file, data[: len(data) // 2])
            if self.short:
                return written  # the system took a part, which is no failure
            raise OSError(self.error, os.strerror(self.error))
        return super().write(file, data)

    def sync(self, file):
        """Sync a file, or fail."""
        self._fail("sync")
        super().sync(file)

    def close(self, file):
        """Close it, and perhaps fail all the same."""
        super().close(file)
        self._fail("close")

    def rename(self, old, new):
        """Rename, or fail."""
        self._fail("rename")
        super().rename(old, new)

    def remove(self, path):
        """Remove, or fail."""
        self._fail("remove")
        super().remove(path)

    def sync_directory(self, path):
        """Sync a directory, or fail."""
        self._fail("sync_directory")
        super().sync_directory(path)


@pytest.fixture
def system(monkeypatch):
    """Have savers use a system that is told when to fail."""

    def use(**options):
        failing = Failing(**options)
        monkeypatch.setattr(directory, "SYSTEM", failing)
        return failing

    return use


def two_saves(path, system, **options):
    """Save, add, and save again with a failing system; give the replay, what loads, and the calls."""
    replay = Replay(FRAMED, 60, seed=2, episode_length=4)
    filler = Filler(replay)
    filler.steps(80)
    replay.save(path)
    first = book.content(replay)
    filler.steps(30)
    failing = system(**options)
    error = None
    try:
        replay.save(path, compress=True)
    except CheckpointError as refused:
        error = refused
    system()
    return replay, first, failing, error


def stray(path):
    """List the files that no save needs."""
    from ringfence.checkpoint import Directory

    folder = Directory(path)
    needed = {"lock"}
    for number in folder.saves():
        needed |= folder.read(number).files.keys() | {f"save-{number:08d}.json"}
    return set(folder.names()) - needed


def test_each_call_fails_in_turn_and_nothing_is_lost(tmp_path, system, capsys):
    """Whichever call fails: the save before it or the new one loads bit for bit, and the next one clears up."""
    _, _, counting, _ = two_saves(tmp_path / "count", system)
    survived = {}
    for kind in (errno.ENOSPC, errno.EIO, errno.EDQUOT, "short"):
        for at, name in enumerate(counting.calls):
            path = tmp_path / f"{kind}-{at}"
            options = {"short": True} if kind == "short" else {"error": kind}
            replay, first, _, error = two_saves(path, system, at=at, **options)
            loaded = book.content(Replay.load(path))
            expected = first if error else book.content(replay)

            assert all(value.tobytes() == loaded[key].tobytes() for key, value in expected.items()), (kind, name, at)
            if error is not None and kind != "short":
                assert error.errno == kind
                assert str(path) in str(error)
            replay.save(path)
            assert not stray(path), (kind, name, at)
            book.assert_same_content(replay, Replay.load(path))
            survived[name] = survived.get(name, 0) + 1
    with capsys.disabled():
        print(f"\nsurvived {sum(survived.values())} injected faults: {survived}")  # noqa: T201, the count is the result
    assert set(survived) >= {"create", "write", "sync", "close", "rename", "remove", "sync_directory"}


def test_a_full_disk_says_so(tmp_path, system):
    """The error has the errno, the path, and what to do; nothing of the refused save is left."""
    replay, _, _, error = two_saves(tmp_path / "save", system, at=3, error=errno.ENOSPC)

    assert error.errno == errno.ENOSPC
    assert "make room, or save elsewhere" in str(error)
    assert not stray(tmp_path / "save")
    assert len(replay) == 60


def test_an_interrupt_leaves_the_last_save_and_no_stray_file(tmp_path, system):
    """Ctrl-C in the middle of a save passes through, and clears up on its way."""

    class Interrupted(System):
        def sync(self, file):  # noqa: ARG002, as the class above has it
            raise KeyboardInterrupt

    replay = Replay(SMALL, 60)
    Filler(replay).steps(30)
    replay.save(tmp_path / "save")
    Filler(replay, seed=1).steps(5)
    directory.SYSTEM = Interrupted()
    try:
        with pytest.raises(KeyboardInterrupt):
            replay.save(tmp_path / "save")
    finally:
        directory.SYSTEM = System()

    assert len(Replay.load(tmp_path / "save")) == 30
    assert not stray(tmp_path / "save")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_writer_killed_at_any_instant_loses_no_save(tmp_path, capsys):
    """A process that saves in a loop is killed again and again: the last reported save loads, or a newer one."""
    command = [sys.executable, "-m", "tests.saving.kills", tmp_path, str(KILLS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert f"survived {KILLS} kills" in done.stdout
    with capsys.disabled():
        print("\n" + done.stdout.strip())  # noqa: T201, likewise
