# ruff: noqa: D401 - a rule states a behaviour, it commands nothing
"""What must not get in, and what cannot be answered."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.rules.base import CAPACITY, Rule, Verdict, drawn, fed, kind, refusal
from benchmarks.subjects.base import Ring, Step

NEW = Step(200, 200, 0.0, 201, False, False)


def empty(subject: ModuleType) -> Verdict:
    """An empty ring refuses to be drawn from, at once."""
    ring = kind(subject, "ring", CAPACITY)
    error = refusal(lambda: ring.draw(4))
    return Verdict(error is not None, error or "gave a batch of nothing")


def _put(ring: Ring, **changed: Any) -> Callable[[], None]:
    """Make an add whose step differs in one thing."""
    step = {
        "obs": ring.encode(NEW.obs),
        "action": NEW.action,
        "reward": NEW.reward,
        "next_obs": ring.encode(NEW.next_obs),
    }
    values = {**step, **changed}
    return lambda: ring.put(*values.values(), False, False)


def shape(subject: ModuleType) -> Verdict:
    """An observation of another shape is refused: a single number, one axis of 1, twice as long, a batch of four."""
    accepted = []
    for name, bend in {
        "a single number": lambda obs: obs.ravel()[0],
        "an axis of 1": lambda obs: obs[:1],
        "twice as long": lambda obs: np.concatenate([obs, obs]),
        "a batch of four": lambda obs: np.stack([obs] * 4),
    }.items():
        ring = kind(subject, "ring", CAPACITY)
        fed(ring, 20)
        obs = ring.encode(NEW.obs)
        if refusal(_put(ring, obs=bend(obs), next_obs=bend(obs))) is None:
            accepted.append(name)
    return Verdict(not accepted, f"accepted {', '.join(accepted)}" if accepted else "all four refused")


def lossy(subject: ModuleType) -> Verdict:
    """A value that the ring's dtype cannot hold is refused: 300.7, 0.5 and -3 for a byte."""
    accepted = []
    for number in (300.7, 0.5, -3):
        ring = kind(subject, "pixels", CAPACITY)
        fed(ring, 20)
        obs = np.full(ring.encode(0).shape, number)
        if refusal(_put(ring, obs=obs)) is None:
            accepted.append(str(number))
    return Verdict(not accepted, f"accepted {', '.join(accepted)}" if accepted else "all three refused")


def unchanged(subject: ModuleType) -> Verdict:
    """A refused step leaves the ring as it was: its size, and all that is drawn."""
    ring = kind(subject, "ring", CAPACITY)
    truth = fed(ring, 100)
    size = ring.size()
    error = refusal(_put(ring, next_obs=np.zeros(7, ring.dtype)))
    if error is None:
        return Verdict(False, "a next_obs of 7 numbers was accepted")
    batch = drawn(ring)
    bad = 0
    for obs, later in zip(batch["obs"].tolist(), batch["next_obs"].tolist(), strict=True):
        step = truth.by_obs.get(obs)
        bad += step is None or later != step.next_obs
    missing = len(truth.by_obs.keys() - set(batch["obs"].tolist()))
    told = f"size {size} is now {ring.size()}, {bad} of {len(batch['obs'])} rows wrong, {missing} steps gone"
    return Verdict(ring.size() == size and not bad and not missing, told)


RULES: tuple[Rule, ...] = (empty, shape, lossy, unchanged)
