"""Prioritized draws: the round trip of a learner, and whether steps come as often as their priorities say."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.data import Array, Row, Steps
from benchmarks.peers.base import PrioritizedRing

ALPHA, BETA = 0.6, 0.4
LOWEST, HIGHEST = 0.1, 1.0
"""Of random priorities. No peer lets a new step enter below 1, so it enters at 1 everywhere."""

DOUBT = 5.0
"""Standard errors from which on a mean is wrong: one in two million right samplers is called so."""


@dataclass
class Trip:
    """One turn of a learner after the other: draw a batch, give it new priorities, add a step."""

    ring: PrioritizedRing
    rows: Iterator[Row]

    def of(self, count: int) -> Callable[[], None]:
        """Return the turn with batches of this size."""
        rng = np.random.default_rng(1)
        fresh = [some(rng, count) for _ in range(64)]
        turn = 0

        def run() -> None:
            nonlocal turn
            batch = self.ring.numpy(count)
            self.ring.update(batch["at"], fresh[turn % 64])
            self.ring.add(*next(self.rows))
            turn += 1

        return run


def some(rng: np.random.Generator, count: int) -> Array:
    """Make random priorities, exactly what a float32 library keeps of them."""
    return rng.uniform(LOWEST, HIGHEST, count).astype(np.float32).astype(np.float64)


def faults(ring: PrioritizedRing, data: Steps, rows: Iterator[Row], turns: int) -> list[str]:
    """Give all steps random priorities, follow them over some turns, and hold draws and weights against the law.

    The ring must hold exactly the rows of the data, and takes the same ones again.
    """
    rng = np.random.default_rng(2)
    known = some(rng, len(data))
    ring.assign(known)
    found = law(ring, data, known, "as first given")
    for turn in range(turns):
        batch = ring.numpy(256)
        fresh = some(rng, 256)
        _, last = np.unique(batch["at"][::-1], return_index=True)  # of a step that is named twice the last one counts
        last = 255 - last
        ring.update(batch["at"][last], fresh[last])
        known[data.ids(batch)[last]] = fresh[last]
        ring.add(*next(rows))
        known[turn % len(data)] = 1.0
    return found + law(ring, data, known, "after updates")


def law(ring: PrioritizedRing, data: Steps, known: Array, when: str, times: int = 200) -> list[str]:
    """Compare the mean priority of draws with the exact one, and the weights with what corrects the bias."""
    chances = known**ALPHA / (known**ALPHA).sum()
    mean = float(chances @ known)
    spread = float(chances @ (known - mean) ** 2) ** 0.5
    drawn, found = [], []
    for _ in range(times):
        batch = ring.numpy(256)
        drawn.append(known[data.ids(batch)])
        level = batch["weights"].reshape(-1) * drawn[-1] ** (ALPHA * BETA)  # the same for all of a batch
        if np.ptp(level) > 1e-3 * level.mean():
            found = [f"weights {when} do not correct the bias"]
    off = (np.mean(drawn) - mean) / (spread / (256 * times) ** 0.5)
    if abs(off) > DOUBT:
        found.append(f"the mean priority drawn, {when}, is {off:+.0f} standard errors off the law")
    return found
