# ruff: noqa: D102, ARG002, ARG005 - subjects/base.py says what each of these does
"""ringfence keeps every rule that it judges others by, and the rules do tell a careless ring from a careful one."""

from __future__ import annotations

import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks import conformance, judge
from benchmarks.rules import RULES, statement
from benchmarks.subjects import base, subject
from typer.testing import CliRunner


@pytest.mark.parametrize("rule", RULES)
def test_ringfence_keeps_the_rule(rule):
    """Our own adapter, by the same judge as all others."""
    outcome = judge.attempt(subject("ringfence"), rule)
    assert outcome.verdict == "keeps", outcome.detail


class Careless(base.Ring):
    """What is written in an afternoon: zeros, random indices, no checks, the next observation in the next row."""

    def __init__(self, capacity, seed=None, dtype=np.float32):
        self.obs = np.zeros((capacity, base.WIDTH), dtype)
        self.rest = np.zeros((capacity, 3))
        self.at, self.full, self.infos = 0, False, []

    def put(self, obs, action, reward, next_obs, terminated, truncated):
        self.obs[self.at] = obs
        self.rest[self.at] = action, reward, terminated or truncated
        following = (self.at + 1) % len(self.obs)
        self.obs[following] = next_obs
        self.full |= following == 0
        self.at = following

    def put_info(self, step, info):
        self.infos.append(info)
        self.add(step)

    def places(self, n):
        return np.random.randint(0, len(self.obs) - 1 if self.full else max(self.at, 1), n)  # noqa: NPY002

    def draw(self, n):
        at = self.places(n)
        action, reward, done = self.rest[at].T
        found = {"action": action, "reward": reward, "stop": done > 0, "obs": base.numbers(self.obs[at])}
        return found | {"next_obs": base.numbers(self.obs[(at + 1) % len(self.obs)])}

    def arrays(self, n):
        return [self.obs]

    def size(self):
        return len(self.obs) if self.full else self.at


class Windows(Careless):
    """Any rows that lie side by side."""

    length = 0

    def draw(self, n):
        at = self.places(n)[:, None] + np.arange(self.length)
        return {"obs": base.numbers(self.obs[at % len(self.obs)], 2)}


def windows(capacity, length):
    """Make a ring of sequences."""
    ring = Windows(capacity)
    ring.length = length
    return ring


CARELESS = SimpleNamespace(
    ring=Careless,
    lean=Careless,
    pixels=lambda capacity: Careless(capacity, dtype=np.uint8),
    sequences=windows,
    big=lambda nbytes: Careless(nbytes // 100),
)


@pytest.mark.parametrize(
    ("rule", "detail"),
    [
        ("stop", "wrong"),
        ("next_truncated", "wrong"),
        ("lean_truncated", "wrong"),
        ("uniform", "never drawn"),
        ("sequence_ends", "cross an end"),
        ("sequence_head", "spliced"),
        ("sequence_uniform", "bound"),
        ("sequence_short", "gave a batch"),
        ("empty", "gave a batch of nothing"),
        ("shape", "accepted a single number, an axis of 1"),
        ("lossy", "accepted 300.7, 0.5"),
        ("unchanged", "wrong"),
        ("seed", "drew differently"),
        ("committed", "0 MB when built"),
        ("info", "10 of 10 objects"),
        ("copies", "wrong"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast", "ignore:NumPy will stop")
def test_a_careless_ring_breaks_the_rule(rule, detail):
    """Each fault of an afternoon's ring is found, and said in figures."""
    outcome = judge.attempt(CARELESS, rule)

    assert outcome.verdict == "breaks", outcome
    assert detail in outcome.detail


@pytest.mark.parametrize("rule", ["nstep_inside", "stack_once", "law", "late"])
def test_what_is_not_offered_is_not_judged(rule):
    """A subject without a kind of ring can neither keep nor break its rules."""
    outcome = judge.attempt(CARELESS, rule)
    assert outcome.verdict == "cannot"
    assert outcome.detail.startswith("has no ")


def test_an_unexpected_error_is_no_verdict():
    """Where the adapter fails, the table says so, and counts it neither way."""
    outcome = judge.attempt(SimpleNamespace(ring=lambda capacity: 1 / 0), "fields")
    assert (outcome.verdict, outcome.detail) == ("failed", "ZeroDivisionError: division by zero")


def test_every_rule_is_one_line():
    """The table's words are the first line of each rule: one sentence that fits a row."""
    words = [statement(rule) for rule in RULES.values()]
    assert len(set(words)) == len(words)
    assert all(line.endswith(".") and len(line) < 120 for line in words)


def test_a_rule_that_hangs_or_fills_memory_is_stopped(monkeypatch):
    """The judge waits no longer than its patience and lends no more memory than its room; then it goes on."""
    monkeypatch.setattr(judge, "PATIENCE", 0.0)
    report = judge.judge("ringfence", ["committed"], lambda _: None)
    assert (report.failed, report.outcomes["committed"].detail) == ("", "no answer within 0 s")
    assert report.modes == "This project: transitions and sequences, uniform or Prioritized."
    assert "numpy" in report.versions

    monkeypatch.setattr(judge, "PATIENCE", 60.0)
    monkeypatch.setattr(judge, "ROOM", 10_000_000)
    outcomes = judge.judge("ringfence", ["committed", "fields"], lambda _: None).outcomes
    assert outcomes["committed"].detail.startswith("did not refuse: stopped")
    assert outcomes["fields"].verdict == "keeps"


def test_a_library_that_is_missing_is_not_tried():
    """What cannot be imported is named with the reason, and has no column."""
    report = judge.judge("nosuch", ["fields"], lambda _: None)
    assert report.outcomes == {}
    assert "No module named" in report.failed


def test_the_command_prints_and_saves_what_was_run(tmp_path):
    """A table of the rules asked for, what was measured, and the same as JSON; an unknown rule is named."""
    run = partial(CliRunner().invoke, conformance.app)
    path = tmp_path / "out.json"
    printed = run(["--peers", "ringfence", "--rules", "fields,empty", "--markdown", "--verbose", "--json", str(path)])

    assert printed.exit_code == 0, printed.output
    assert "| An empty ring refuses to be drawn from, at once. | keeps |" in printed.output
    assert "NotEnoughData" in printed.output
    assert list(json.loads(path.read_text())["reports"][0]["outcomes"]) == ["fields", "empty"]
    assert "'nosuch' is not one of" in run(["--rules", "nosuch"]).output
