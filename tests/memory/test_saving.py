"""What a save takes: a few megabytes of memory, whatever the size of the ring, and a moment of the caller's time."""

from __future__ import annotations

import pytest
from tests.memory.measure import fresh

MIB = 1 << 20


def peak_of_a_save(path, compress, background):
    """Fill a ring of 160 MiB, save it, and give what resident memory rose by meanwhile, and the bytes written."""
    import threading

    import numpy as np
    import psutil

    from ringfence import Field, Replay, Schema

    schema = Schema(obs=Field((40_000,), np.uint8), action=Field((), np.int64))
    replay = Replay(schema, 4000)
    frame = np.random.default_rng(0).integers(0, 256, 40_000, np.uint8)
    for number in range(4000):
        replay.add(frame, number, 0.0, frame, terminated=False)
    warm = Replay(schema, 10)
    warm.save(f"{path}-warm", compress=compress)
    process, peak, over = psutil.Process(), [0], threading.Event()

    def watch():
        while not over.wait(0.001):
            peak[0] = max(peak[0], process.memory_info().rss)

    thread = threading.Thread(target=watch)
    before = process.memory_info().rss
    thread.start()
    saved = replay.save(path, compress=compress, background=background)
    if background:
        saved = saved.wait()
    over.set()
    thread.join()
    return max(0, peak[0] - before), saved.nbytes


@pytest.mark.parametrize(("compress", "background"), [(False, False), (True, False), (False, True)])
def test_a_save_takes_a_few_megabytes(tmp_path, compress, background):
    """A ring of 160 MiB is saved within 16 MiB, squeezed or not, at once or in the background."""
    rose, written = fresh(peak_of_a_save, str(tmp_path / "save"), compress, background)

    assert rose <= 16 * MIB
    assert written >= (100 * MIB if not compress else MIB)


def peak_of_a_load(path):
    """Save a ring of 160 MiB in a process of its own, and give what resident memory rose by beyond the ring."""
    import os
    from pathlib import Path

    import numpy as np
    import psutil

    from ringfence import Field, Replay, Schema

    if not os.path.exists(path):  # noqa: PTH110, runs in a process of its own
        schema = Schema(obs=Field((40_000,), np.uint8), action=Field((), np.int64))
        replay = Replay(schema, 4000)
        frame = np.random.default_rng(0).integers(0, 256, 40_000, np.uint8)
        for number in range(4000):
            replay.add(frame, number, 0.0, frame, terminated=False)
        replay.save(path)
        return None
    before = psutil.Process().memory_info().rss
    loaded = Replay.load(path)
    # not ru_maxrss: a process starts with that of the one that forked it
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) * 1024 - before - loaded.nbytes


def test_a_load_takes_little_beyond_the_ring(tmp_path):
    """Reading a ring of 160 MiB back never has a second copy of it."""
    fresh(peak_of_a_load, str(tmp_path / "save"))

    assert fresh(peak_of_a_load, str(tmp_path / "save")) <= 16 * MIB
