"""Kill a process that saves in a loop, again and again, and load what it left: ``python -m tests.saving.kills DIR N``.

A program of its own, so that what forks is small and has one thread.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from tests.saving import book
from tests.saving.book import FRAMED, Filler

from ringfence import Replay
from ringfence.checkpoint import Directory

STEPS = 17


def write(path: Path, pipe: int) -> None:
    """Add and save for ever, reporting each save that came to its end."""
    filler = fresh()
    while True:
        filler.steps(STEPS)
        filler.replay.save(path, compress=filler.count % 2 == 0, notes=filler.count)
        os.write(pipe, b"%d\n" % filler.count)


def fresh() -> Filler:
    """Give the beginning that every writer has."""
    return Filler(Replay(FRAMED, 100, seed=1, episode_length=4))


def killed(path: Path, seconds: float) -> int:
    """Let a writer live for so long after its first save; give the last save that it reported."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write(path, writer)
        finally:
            os._exit(1)
    os.close(writer)
    reported = os.read(reader, 100)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(reader, 10_000):
        reported += more
    os.close(reader)
    return int(reported.split(b"\n")[-2])


def check(path: Path, last: int) -> int:
    """Load what was left, compare it with what was added, and save on top; give the steps."""
    loaded, filler = Replay.load(path), fresh()
    assert loaded.notes >= last, (loaded.notes, last)
    while filler.count < loaded.notes:
        filler.steps(STEPS)
    book.assert_same_content(filler.replay, loaded)
    loaded.save(path)
    folder = Directory(path)
    number = folder.saves()[-1]
    assert set(folder.names()) == {"lock", f"save-{number:08d}.json", *folder.read(number).files}
    return int(loaded.notes)


def main(base: Path, kills: int) -> None:
    """Do it so many times, and print what was survived."""
    chance, counts, unreported = random.Random(0), [], 0  # noqa: S311, not for secrets
    for kill in range(kills):
        path = base / str(kill)
        last = killed(path, chance.random() * 0.05)
        counts.append(check(path, last))
        unreported += counts[-1] > last
        shutil.rmtree(path)
    print(f"survived {kills} kills, after {min(counts)} to {max(counts)} steps; {unreported} came after the commit")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
