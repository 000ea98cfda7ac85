"""``ringfence soak``: a flat run passes, a leak fails, and whoever stops it gets the verdict so far."""

import dataclasses
import io
import json
import math
import os
import signal
import subprocess
import sys
import time
from itertools import islice

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv

import ringfence as rf
from ringfence.cli import main
from ringfence.cli.progress import Progress
from ringfence.cli.trace import ROOM, Trace
from ringfence.cli.verdict import GROWTH, MIB, Marks, Verdict
from ringfence.cli.walk import BATCH, walk
from ringfence.guard import Slope
from ringfence.integrations.gymnasium import Recorder

LEAKY = """
import gymnasium, numpy
from gymnasium.envs.classic_control import CartPoleEnv

class Leaky(CartPoleEnv):
    kept = []

    def step(self, action):
        outcome = super().step(action)
        self.kept.append(numpy.ones({numbers}) * outcome[0][0])
        return outcome

gymnasium.register("Leaky-v0", entry_point=Leaky, max_episode_steps=500)
"""
SOUND = Verdict(
    env="Sound-v0",
    asked=2_000_000,
    made=2_000_000,
    planned=100 * MIB,
    nbytes=100 * MIB,
    marks=Marks(before=80 * MIB, built=180 * MIB, full=181 * MIB, end=182 * MIB),
    full_at=1_000_000,
    capacity=1_000_000,
    held=1_000_000,
    early=0,
    slope=Slope(0.5, -1.0, 2.0),
    watched=1_000_000,
    seconds=100.0,
)


class Broken(CartPoleEnv):
    """Fails at a later step."""

    def step(self, action):
        """Step, until the pole leans to the left."""
        outcome = super().step(action)
        if outcome[0][2] < -0.1:
            raise RuntimeError("the pole\nis tired")
        return outcome


gymnasium.register("Broken-v0", entry_point=Broken)


def start(folder, *arguments):
    """Start the command in a process of its own, whose memory no other test has touched."""
    # the folder holds the environments that a test wrote
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-m", "ringfence.cli", "soak", *map(str, arguments)],
        cwd=folder,
        env=dict(os.environ, PYTHONPATH=path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def soak(folder, *arguments):
    """Run the command to its end; give exit code, figures and stderr."""
    process = start(folder, *arguments, "--json")
    out, err = process.communicate(timeout=120)
    return process.returncode, json.loads(out), err


@pytest.fixture
def refused(capsys, monkeypatch, tmp_path):
    """Return a function that runs the command in this process and gives exit code and the one line of stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main(["soak", *map(str, arguments)])
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        return code, err

    return run


@pytest.mark.parametrize(
    ("env", "options"),
    [("CartPole-v1", ["--episode-length", 10]), ("HalfCheetah-v5", []), ("CartPole-v1", ["--num-envs", 4])],
)
def test_a_sound_run_passes(tmp_path, env, options):
    """Twenty thousand steps through a ring of two thousand: planned is what was taken, and nothing more was."""
    code, figures, err = soak(tmp_path, env, "--steps", "20k", "--capacity", 2000, *options)

    assert (code, figures["passed"], figures["partial"], figures["failed"]) == (0, True, False, [])
    assert figures["planned"] == figures["nbytes"]
    assert 20_000 <= figures["made"] < 20_004
    assert figures["held"] == 2000 or figures["early"]
    assert figures["full_at"] < 4000
    assert "20,000 of 20,000 steps" in err


@pytest.mark.parametrize(("numbers", "failed"), [(512, ["growth since the ring was full", "slope"]), (16, ["slope"])])
def test_a_leak_fails_and_is_measured(tmp_path, numbers, failed):
    """An environment that keeps what it saw fails the verdict, a slow leak by its slope alone."""
    (tmp_path / "leaky.py").write_text(LEAKY.format(numbers=numbers))
    leak = 8 * numbers + 112  # an array's numbers, and the object around them

    code, figures, _ = soak(tmp_path, "leaky:Leaky-v0", "--steps", "20k", "--capacity", 1000, "--num-envs", 1)

    assert code == 1
    assert [name.partition(",")[0] for name in figures["failed"]] == failed
    assert abs(figures["slope"]["per_step"] - leak) < 0.25 * leak


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_the_verdict_so_far(tmp_path, number):
    """Ctrl-C and a scheduler's SIGTERM leave the plot, and the verdict marked as partial; the exit code follows it."""
    process = start(tmp_path, "CartPole-v1", "--steps", "500k", "--capacity", 5000, "--plot", "soak.png")
    deadline = time.monotonic() + 60
    while "steps/s" not in (line := process.stderr.readline()):
        assert line, process.communicate()
        assert time.monotonic() < deadline
    process.send_signal(number)
    out, err = process.communicate(timeout=60)

    assert process.returncode == 0, err
    assert "stopped early" in out
    assert "PASS: memory stayed as planned (partial: " in out
    assert "Traceback" not in err
    assert (tmp_path / "soak.png").read_bytes().startswith(b"\x89PNG")


def test_a_ring_that_does_not_fit_is_refused_at_once(refused):
    """Over the limit, or the budget: one line with the capacity that would fit, and exit code 1, within a second."""
    started = time.monotonic()
    code, line = refused("CartPole-v1", "--capacity", "1e13")

    assert time.monotonic() - started < 1
    assert code == 1
    assert "would fit" in line
    assert refused("CartPole-v1", "--capacity", "1e6", "--budget", "1MiB")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["CarPole-v1"], "Environment `CarPole` doesn't exist"),
        (["CartPole-v1", "--steps", "0"], "Invalid value for '--steps'"),
        (["CartPole-v1", "--num-envs", "0"], "Invalid value for '--num-envs'"),
        (["CartPole-v1", "--sample-every", "0"], "Invalid value for '--sample-every'"),
        (["CartPole-v1", "--capacity", "3", "--num-envs", "4"], "the minimum is capacity=4"),
        (["CartPole-v1", "--plot", "soak.txt"], "--plot: expected a name that ends in .png, .svg, .pdf, got soak.txt"),
        (["CartPole-v1", "--plot", "none/soak.png"], "--plot: there is no folder none"),
    ],
)
def test_a_question_that_makes_no_sense_ends_with_two(refused, arguments, text):
    """Exit code 2 and one line, before anything is run."""
    code, line = refused(*arguments)

    assert code == 2
    assert text in line


def test_a_plot_without_matplotlib_names_what_to_install(refused, monkeypatch):
    """The line says which extra of this package draws, and says so before the run."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    assert refused("CartPole-v1", "--plot", "soak.png") == (
        2,
        "ringfence: --plot needs matplotlib: pip install 'ringfence[report]'\n",
    )


def test_an_environment_that_fails_is_told_in_one_line(capfd):
    """An error out of the environment ends the run with its name, its text and the steps made."""
    assert main(["soak", "Broken-v0", "--steps", "20k", "--capacity", "1000"]) == 1

    line = capfd.readouterr().err.splitlines()[-1]
    assert line.startswith("ringfence: Broken-v0, after ")
    assert line.endswith("steps: RuntimeError: the pole is tired")


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        ({}, []),
        ({"planned": 100 * MIB + 1}, ["nbytes"]),
        ({"marks": Marks(80 * MIB, 184 * MIB, 184 * MIB, 184 * MIB)}, ["cost of building the ring"]),
        ({"marks": Marks(80 * MIB, 177 * MIB - 1, 177 * MIB, 177 * MIB)}, ["cost of building the ring"]),
        ({"marks": Marks(80 * MIB, 183 * MIB, 181 * MIB, 181 * MIB)}, []),
        ({"marks": Marks(80 * MIB, 180 * MIB, 181 * MIB, 181 * MIB + GROWTH)}, ["growth since the ring was full"]),
        ({"marks": Marks(80 * MIB, 180 * MIB, 181 * MIB, 181 * MIB + GROWTH - 1)}, []),
        ({"marks": Marks(80 * MIB, 180 * MIB, None, 188 * MIB)}, ["growth since the ring was built"]),
        ({"slope": Slope(3.0, 2.0, 4.0)}, ["slope, 95 % interval"]),
        ({"slope": Slope(3.0, 1.0, 4.0)}, []),
        ({"slope": Slope(30.0, 20.0, 40.0), "watched": 20_000}, []),
        ({"slope": Slope(3.0, -math.inf, math.inf)}, []),
        ({"slope": None}, []),
    ],
)
def test_each_rule_of_the_verdict_decides(change, failed):
    """A run fails by exactly the rule it breaks, and no figure on the right side of a bound fails."""
    verdict = dataclasses.replace(SOUND, **change)

    assert [line.name for line in verdict.lines() if line.passed is False] == failed
    assert verdict.passed == (not failed)
    assert verdict.summary.startswith("PASS" if verdict.passed else f"FAIL: {failed[0]}")


def test_a_trace_never_outgrows_its_table():
    """However often it measures, the measurements stay few, in order, and spread from the first step to the last."""
    trace = Trace(steps=100)
    for step in range(10 * ROOM):
        trace.measure(step, turning=step > 3)

    assert ROOM // 2 <= len(trace.steps) == len(trace.nbytes) <= ROOM
    assert (trace.steps[0], trace.steps[-1]) == (0, 10 * ROOM - 1)
    assert (np.diff(trace.steps) > 0).all()
    assert trace.full_at == 4


def test_a_trace_is_due_by_steps_and_by_time(monkeypatch):
    """A measurement is due a hundredth of the run, or half a second, after the last one."""
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    trace = Trace(steps=1000)
    assert trace.due(0)
    trace.measure(0)

    assert not trace.due(9)
    assert trace.due(10)
    now = 0.5
    assert trace.due(1)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        """Say so."""
        return True


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_progress_on_a_terminal_stays_on_one_line(monkeypatch, columns):
    """However narrow the terminal, the live line does not wrap, and nothing of it is left behind."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    progress = Progress(steps=2_000_000, capacity=1_000_000)
    progress.stage("warming up")
    progress.update(500_000, 185 * MIB, 500_000)
    progress.close()

    shown = terminal.getvalue().split("\r\x1b[K")
    assert shown[1] == "warming up"
    assert "25% 500,000 steps, " in shown[2]
    assert columns < 80 or "resident 185.00 MiB, ring 50%, " in shown[2]
    assert len(shown[2]) < columns
    assert shown[3:] == [""]


def walked(turns, num_envs, **options):
    """Walk so many turns; give the replay and the counts that were yielded."""
    env = gymnasium.make_vec("CartPole-v1", num_envs) if num_envs else gymnasium.make("CartPole-v1")
    replay = rf.Replay(rf.Schema.from_env(env), capacity=4000, streams=num_envs or 1, seed=0)
    counts = list(islice(walk(Recorder(env, replay), **options), turns))
    return replay, counts


@pytest.mark.parametrize("num_envs", [0, 3])
def test_a_walk_is_repeated_by_its_seed(num_envs):
    """The same seed gives the same environment, actions and draws; another one does not."""
    first, again, other = (walked(300, num_envs, sample_every=4, seed=seed)[0].sample(64) for seed in (1, 1, 2))

    assert (first.obs == again.obs).all()
    assert (first.action == again.action).all()
    assert (first.obs != other.obs).any()


@pytest.mark.parametrize(("num_envs", "every", "batches"), [(0, 4, 25), (0, 1, 100), (3, 4, 75), (3, 1, 300)])
def test_a_walk_samples_as_often_as_told(monkeypatch, num_envs, every, batches):
    """A batch of 256 is drawn every so many steps of all environments together."""
    drawn = []
    sample = rf.Replay.sample
    monkeypatch.setattr(rf.Replay, "sample", lambda self, count: drawn.append(count) or sample(self, count))

    _, counts = walked(100, num_envs, sample_every=every, seed=0)

    assert counts == list(range(num_envs or 1, 100 * (num_envs or 1) + 1, num_envs or 1))
    assert drawn == [BATCH] * batches
