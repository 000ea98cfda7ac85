# ruff: noqa: D401 - a rule states a behaviour, it commands nothing
"""Steps and their successors: what a learner is fed."""

from types import ModuleType

import numpy as np

from benchmarks.rules.base import CAPACITY, Rule, Verdict, drawn, excess, fed, kind, share
from benchmarks.subjects.base import Ring, value

N, GAMMA = 3, 0.9


def fields(subject: ModuleType) -> Verdict:
    """Observation, action and reward of a row belong together."""
    ring = kind(subject, "ring", CAPACITY)
    truth, batch = fed(ring), drawn(ring)
    steps = [truth.by_obs.get(obs) for obs in batch["obs"].tolist()]
    rows = zip(steps, batch["action"].ravel().tolist(), batch["reward"].ravel().tolist(), strict=True)
    bad = sum(step is None or (action, reward) != (step.action, step.reward) for step, action, reward in rows)
    return Verdict(not bad, share(bad, len(steps)))


def stop(subject: ModuleType) -> Verdict:
    """A truncated step is told from a terminated one: only the latter stops bootstrapping."""
    ring = kind(subject, "ring", CAPACITY)
    truth, batch = fed(ring), drawn(ring)
    steps = [truth.by_obs.get(obs) for obs in batch["obs"].tolist()]
    rows = zip(steps, batch["stop"].ravel().tolist(), strict=True)
    bad = sum(step is None or step.terminated != bool(told) for step, told in rows)
    return Verdict(not bad, share(bad, len(steps)))


def _successors(ring: Ring, place: str, *, drawn_at_all: bool = True) -> Verdict:
    truth, batch = fed(ring), drawn(ring)
    bad = of = 0
    for obs, later in zip(batch["obs"].tolist(), batch["next_obs"].tolist(), strict=True):
        step = truth.by_obs.get(obs)
        if step is not None and truth.place(step) == place:
            of, bad = of + 1, bad + (later != step.next_obs)
    return Verdict(not bad and (of > 0 or not drawn_at_all), share(bad, of) if of else "never drawn")


def next_inside(subject: ModuleType) -> Verdict:
    """The next observation is the true one: inside an episode."""
    return _successors(kind(subject, "ring", CAPACITY), "inside")


def next_terminated(subject: ModuleType) -> Verdict:
    """The next observation is the true one: at a termination."""
    return _successors(kind(subject, "ring", CAPACITY), "termination")


def next_truncated(subject: ModuleType) -> Verdict:
    """The next observation is the true one: at a truncation."""
    return _successors(kind(subject, "ring", CAPACITY), "truncation")


def next_newest(subject: ModuleType) -> Verdict:
    """The next observation is the true one: of the newest step."""
    return _successors(kind(subject, "ring", CAPACITY), "newest")


def lean_inside(subject: ModuleType) -> Verdict:
    """With each observation kept once, the next one is true: inside an episode."""
    return _successors(kind(subject, "lean", CAPACITY), "inside")


def lean_truncated(subject: ModuleType) -> Verdict:
    """With each observation kept once, the next one is true: at a truncation."""
    return _successors(kind(subject, "lean", CAPACITY), "truncation")


def lean_newest(subject: ModuleType) -> Verdict:
    """With each observation kept once, the next one is true, or the step not drawn: of the newest step."""
    return _successors(kind(subject, "lean", CAPACITY), "newest", drawn_at_all=False)


def uniform(subject: ModuleType) -> Verdict:
    """Every held step, the oldest and the newest too, is equally likely."""
    ring = kind(subject, "ring", CAPACITY)
    truth, batch = fed(ring), drawn(ring, 80)
    counts = np.array([np.count_nonzero(batch["obs"] == step.obs) for step in truth.steps])
    never = int(np.count_nonzero(counts == 0))
    strange = len(batch["obs"]) - int(counts.sum())
    worst = excess(counts)
    told = f"chi-squared {worst:.2f} of the bound; {never} of {CAPACITY} never drawn, {strange} rows not held"
    return Verdict(worst < 1 and not never and not strange, told)


def _targets(subject: ModuleType, place: str) -> Verdict:
    ring = kind(subject, "nstep", CAPACITY, N, GAMMA)
    truth, batch = fed(ring), drawn(ring)
    bad = of = 0
    for obs, target in zip(batch["obs"].tolist(), batch["target"].ravel().tolist(), strict=True):
        if obs not in truth.by_obs:
            continue  # a buffer that sums rewards as they come is n - 1 steps behind, and may hold older ones
        expected, where = truth.target(obs, N, GAMMA, value)
        if where == place:
            of, bad = of + 1, bad + (not np.isclose(target, expected, rtol=1e-4))
    if not of:
        return Verdict(place == "newest", "never drawn")
    return Verdict(not bad, share(bad, of))


def nstep_inside(subject: ModuleType) -> Verdict:
    """The n-step target is right: inside an episode."""
    return _targets(subject, "inside")


def nstep_terminated(subject: ModuleType) -> Verdict:
    """The n-step target is right: where the n steps meet a termination."""
    return _targets(subject, "termination")


def nstep_truncated(subject: ModuleType) -> Verdict:
    """The n-step target is right: where the n steps meet a truncation."""
    return _targets(subject, "truncation")


def nstep_newest(subject: ModuleType) -> Verdict:
    """The n-step target is right, or the step not drawn: where fewer than n steps have come yet."""
    return _targets(subject, "newest")


RULES: tuple[Rule, ...] = (
    fields,
    stop,
    next_inside,
    next_terminated,
    next_truncated,
    next_newest,
    uniform,
    lean_inside,
    lean_truncated,
    lean_newest,
    nstep_inside,
    nstep_terminated,
    nstep_truncated,
    nstep_newest,
)
