"""The guard: it stops a run between two steps, with everything saved."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import ringfence as rf
from ringfence.guard import Guard, gauge

SCHEMA = rf.Schema(rf.Field((4,), np.float32), rf.Field((), np.int64))
RUN = """
import resource, sys
import numpy as np
import ringfence as rf

path, guarded = sys.argv[1], sys.argv[2] == "guarded"
schema = rf.Schema(rf.Field((4,), np.float32), rf.Field((), np.int64))
replay = rf.Replay(schema, 1_000, seed=0)
mapped = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + 600 * 2**20,) * 2)
guard = rf.Guard("92%", replay=replay, save_to=path, every=0.01)
leak, obs = [], np.zeros(4, np.float32)
if guarded:
    guard.__enter__()
while True:
    replay.add(obs, len(leak), 1.0, obs, False)
    leak.append(np.ones(2**18))
    guard.step()
    threading_gets_its_turn = sum(range(100_000))
"""


def ring():
    """Give a ring with a few steps."""
    replay = rf.Replay(SCHEMA, 100, seed=0)
    for step in range(7):
        replay.add(np.full(4, step, np.float32), step, 1.0, np.full(4, step + 1, np.float32), terminated=False)
    return replay


def pressed(guard):
    """Call step until the guard answers, at most for some seconds."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        guard.step()
        time.sleep(0.01)


def small():
    """Give a limit that is passed already."""
    return int(gauge().held // 2)


def test_over_the_limit_everything_is_saved_and_the_run_stops(tmp_path):
    """The error says where, and what was saved loads."""
    replay = ring()
    guard = Guard(small(), replay=replay, save_to=tmp_path / "save", every=0.05, patience=None)
    with guard, pytest.raises(rf.MemoryPressure, match="everything was saved to"):
        pressed(guard)

    assert len(rf.Replay.load(tmp_path / "save")) == 7


def test_below_the_limit_nothing_happens(tmp_path):
    """A calm run is left alone, and its figures are told."""
    with Guard("64 GiB", replay=ring(), save_to=tmp_path / "save", every=0.01) as guard:
        if guard.pressure is not None:
            pytest.skip("this machine is nearly full")
        for _ in range(20):
            guard.step()
            time.sleep(0.01)
        metrics = guard.metrics()

    assert not (tmp_path / "save").exists()
    assert metrics["replay/nbytes"] == ring().nbytes
    assert 0 < metrics["guard/share"] < 1


def test_a_callback_may_deal_with_it():
    """Where it says so, nothing is raised, and it is asked once as long as memory stays over the limit."""
    asked = []

    def deal(pressure):
        asked.append(pressure)
        return True

    with Guard(small(), on_pressure=deal, hard="900 GiB", every=0.01, patience=None) as guard:
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            guard.step()

    assert len(asked) == 1
    assert asked[0].level.share > 1


def test_a_termination_is_answered_by_saving(tmp_path):
    """SIGTERM stops the run at the next step, saved, and is given back afterwards."""
    before = signal.getsignal(signal.SIGTERM)
    with Guard("64 GiB", replay=ring(), save_to=tmp_path / "save", patience=None) as guard:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(rf.MemoryPressure, match="asked to stop by SIGTERM"):
            pressed(guard)

    assert signal.getsignal(signal.SIGTERM) == before
    assert len(rf.Replay.load(tmp_path / "save")) == 7


def test_a_save_that_fails_is_told():
    """The pressure is raised all the same, with the reason."""

    class Broken:
        nbytes = 1

        def save(self, path):
            raise OSError(f"no room for {path}")

    guard = Guard(small(), replay=Broken(), save_to="there", every=0.01, patience=None)
    with guard, pytest.raises(rf.MemoryPressure, match="saving to there failed: no room for there"):
        pressed(guard)


def test_a_loop_that_does_not_come_round_is_ended_with_a_report(tmp_path):
    """Over the second limit for so long the process ends with 75, and the report tells the line it was at."""
    code = (
        "import time, ringfence as rf\n"
        f"with rf.Guard('1 MiB', hard='2 MiB', every=0.05, patience=0.5, report_to={str(tmp_path / 'why')!r}):\n"
        "    time.sleep(60)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False)

    assert run.returncode == 75, run.stderr
    text = (tmp_path / "why").read_text()
    assert "hard limit of 2 MiB" in text
    assert 'File "<string>", line 3' in text


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS as Linux has it")
def test_a_run_that_would_die_stops_before_and_goes_on_later(tmp_path):
    """Under a limit of the machine a leaking run dies with nothing saved; guarded it ends saved, and loads."""
    died = subprocess.run(
        [sys.executable, "-c", RUN, tmp_path / "alone", "alone"],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    stopped = subprocess.run(
        [sys.executable, "-c", RUN, tmp_path / "saved", "guarded"],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert died.returncode != 0
    assert "MemoryError" in died.stderr
    assert not (tmp_path / "alone").exists()
    assert "MemoryPressure" in stopped.stderr, stopped.stderr
    replay = rf.Replay.load(tmp_path / "saved")
    assert len(replay) > 100
    replay.add(np.zeros(4, np.float32), 0, 1.0, np.zeros(4, np.float32), terminated=False)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"limit": "0%"}, "limit: expected a share above 0% and up to 100%"),
        ({"limit": "2 GiB", "hard": "90%"}, "hard: expected a size like the limit"),
        ({"limit": "80%", "hard": "70%"}, "hard: expected more than the limit of 80%"),
        ({"every": 0}, "every: expected seconds above zero"),
        ({"save_to": "somewhere"}, "save_to: there is no replay to save"),
    ],
)
def test_a_guard_that_makes_no_sense_is_refused(arguments, text):
    """The text names the argument, what was expected and what came."""
    with pytest.raises(ValueError, match=text):
        Guard(**arguments)


def test_a_replay_that_cannot_be_saved_is_refused():
    """The text names what it lacks."""
    with pytest.raises(TypeError, match=r"list lacks \['nbytes', 'save'\]"):
        Guard(replay=[])
