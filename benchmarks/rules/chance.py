# ruff: noqa: D401 - a rule states a behaviour, it commands nothing
"""Priorities and seeds."""

import random
import sys
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.rules.base import CAPACITY, Rule, Verdict, excess, fed, kind, refusal
from benchmarks.subjects.base import Priorities, Step


def _shift(seed: int) -> None:
    """Move every generator that a library may share with the program."""
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    if "torch" in sys.modules:  # what nobody has imported nobody draws from
        sys.modules["torch"].manual_seed(seed)


def _repeats(build: Any) -> Verdict:
    """Draw from two rings of one seed, the shared generators moved between them."""
    draws = []
    for shift in (1, 2):
        ring = build(seed=7)
        fed(ring)
        _shift(shift)
        draws.append([ring.draw(32)["obs"].tolist() for _ in range(3)])
    same = draws[0] == draws[1]
    fresh = draws[0][0] != draws[0][1]
    return Verdict(same and fresh, "equal draws" if same else "two rings of seed 7 drew differently")


def seed(subject: ModuleType) -> Verdict:
    """A ring's own seed makes its draws repeat, whatever the global generators do."""
    return _repeats(lambda seed: kind(subject, "ring", CAPACITY, seed=seed))


def seed_priorities(subject: ModuleType) -> Verdict:
    """A ring's own seed makes draws by priority repeat, whatever the global generators do."""
    return _repeats(lambda seed: kind(subject, "priorities", CAPACITY, seed=seed))


def _all(ring: Priorities) -> dict[int, Any]:
    """Find how to name each step that is held, by drawing."""
    names: dict[int, Any] = {}
    for _ in range(60):
        batch = ring.draw(50)
        names.update(zip(batch["obs"].tolist(), batch["where"], strict=True))
    return names


def _counts(ring: Priorities, steps: list[Step], times: int = 80) -> Any:
    obs = np.concatenate([ring.draw(250)["obs"] for _ in range(times)])
    return np.array([np.count_nonzero(obs == step.obs) for step in steps])


def law(subject: ModuleType) -> Verdict:
    """A step is drawn in proportion to its priority."""
    ring = kind(subject, "priorities", CAPACITY)
    truth, names = fed(ring), _all(ring)
    priorities = np.linspace(0.5, 4.0, CAPACITY)
    ring.update(np.array([names[step.obs] for step in truth.steps]), priorities)
    worst = excess(_counts(ring, truth.steps), priorities**ring.alpha)
    return Verdict(worst < 1, f"chi-squared {worst:.2f} of the bound")


def invalid(subject: ModuleType) -> Verdict:
    """A priority that is NaN, infinite or negative is refused."""
    accepted = []
    for bad in (np.nan, np.inf, -1.0):
        ring = kind(subject, "priorities", CAPACITY)
        fed(ring)
        where = ring.draw(8)["where"]
        priorities = np.ones(8)
        priorities[3] = bad
        if refusal(lambda: ring.update(where, priorities)) is None:  # noqa: B023 - called at once
            accepted.append(str(bad))
    return Verdict(not accepted, f"accepted {', '.join(accepted)}" if accepted else "all three refused")


def late(subject: ModuleType) -> Verdict:
    """A late priority, of a step that was overwritten since it was drawn, does not go to the step in its place."""
    ring = kind(subject, "priorities", CAPACITY)
    truth = fed(ring)
    names = _all(ring)
    where = np.array([names[step.obs] for step in truth.steps])
    newer = [Step(300 + at, 0, 0.0, 301 + at, False, False) for at in range(CAPACITY)]
    for step in newer:
        ring.add(step)
    priorities = np.ones(CAPACITY)
    priorities[: CAPACITY // 2] = 100.0
    refused = refusal(lambda: ring.update(where, priorities))
    worst = excess(_counts(ring, newer))
    told = f"chi-squared of the newer steps {worst:.2f} of the bound"
    return Verdict(worst < 1, f"{told}; refused: {refused}" if refused else told)


RULES: tuple[Rule, ...] = (seed, seed_priorities, law, invalid, late)
