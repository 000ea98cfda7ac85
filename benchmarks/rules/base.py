"""What rules are made of: a story to feed, the truth about it, and a verdict."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers import Unsupported
from benchmarks.subjects.base import Array, Ring, Step

Rule = Callable[[ModuleType], "Verdict"]
"""Judge a subject. The first line of the docstring is the rule."""
PAGE = 4096
CAPACITY = 40
LENGTHS = (7, 12, 5, 3, 9, 14, 1, 6, 11, 8, 2, 10)
"""Of the episodes of a story; every second one ends by truncation."""
PLACES = ("inside", "termination", "truncation", "newest")


class Verdict(NamedTuple):
    """Whether a rule is kept, and what was measured."""

    keeps: bool
    detail: str


def kind(subject: ModuleType, name: str, *arguments: Any, **options: Any) -> Any:
    """Build a ring of a kind, or tell that the subject has none."""
    build = getattr(subject, name, None)
    if build is None:
        raise Unsupported(f"has no {name}")
    return build(*arguments, **options)


def story(steps: int = 100) -> Iterator[Step]:
    """Tell episodes one after the other; numbers stay below 256, and the last episode goes on."""
    number, told = 0, 0
    for episode in range(1000):
        length = LENGTHS[episode % len(LENGTHS)]
        for at in range(length):
            last = at + 1 == length
            yield Step(number, number, number / 8, number + 1, last and episode % 2 == 0, last and episode % 2 == 1)
            number, told = number + (2 if last else 1), told + 1
            if told == steps:
                return


class Truth:
    """What was told, and the steps that a ring must hold of it."""

    def __init__(self, steps: list[Step], capacity: int = CAPACITY) -> None:
        self.told = steps
        self.steps = steps[-capacity:]
        self.by_obs = {step.obs: step for step in self.steps}

    def place(self, step: Step) -> str:
        """Say where a step lies."""
        if step.terminated:
            return "termination"
        if step.truncated:
            return "truncation"
        return "newest" if step is self.steps[-1] else "inside"

    def windows(self, length: int) -> list[int]:
        """List the first observations of all windows inside one episode."""
        ends = [step.terminated or step.truncated for step in self.steps]
        starts = range(len(self.steps) - length + 1)
        return [self.steps[at].obs for at in starts if not any(ends[at : at + length - 1])]

    def target(self, obs: int, n: int, gamma: float, value: Callable[[int], float]) -> tuple[float, str]:
        """Work out the n-step target of a step, and say where its window ends."""
        at = next(at for at, step in enumerate(self.steps) if step.obs == obs)
        total, factor = 0.0, 1.0
        for step in self.steps[at : at + n]:
            total, factor = total + factor * step.reward, factor * gamma
            last = step
            if step.terminated or step.truncated:
                break
        place = self.place(last)
        return total + (0.0 if last.terminated else factor * float(value(last.next_obs))), place


def fed(ring: Ring, steps: int = 100, capacity: int = CAPACITY) -> Truth:
    """Tell a ring the story; give what it must hold."""
    told = list(story(steps))
    for step in told:
        ring.add(step)
    return Truth(told, capacity)


def drawn(ring: Ring, times: int = 12, n: int = 250) -> dict[str, Array]:
    """Draw many times and join the batches."""
    batches = [ring.draw(n) for _ in range(times)]
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0] if name in NUMBERS}


NUMBERS = ("obs", "next_obs", "action", "reward", "stop", "target")


def share(bad: int, of: int) -> str:
    """Say how many of how many."""
    return f"{bad} of {of} wrong" if bad else f"{of} right"


def excess(counts: Array, probabilities: Array | None = None) -> float:
    """Give Pearson's statistic over what a right draw stays below once in 300,000 times (Wilson & Hilferty 1931)."""
    weights = np.ones(len(counts)) if probabilities is None else probabilities
    expected = weights / weights.sum() * counts.sum()
    degrees = len(counts) - 1
    spread = 2 / (9 * degrees)
    bound = degrees * (1 - spread + 4.5 * spread**0.5) ** 3
    return float(((counts - expected) ** 2 / expected).sum() / bound)


def refusal(act: Callable[[], Any]) -> str | None:
    """Do what should be refused; give the error's words, or None where it was not."""
    try:
        act()
    except Exception as error:  # noqa: BLE001 - an error of any kind is a refusal
        return f"{type(error).__name__}: {error}".splitlines()[0][:90]
    return None


def resident() -> int:
    """Give the bytes that this process has in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE
