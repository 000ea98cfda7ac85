"""A trainer that keeps a copy of one row of each of the last hundred batches."""

import sys
from collections import deque

import numpy as np


class Trainer:
    """Fit a linear model to batches from a ring."""

    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.ring = self.rng.normal(size=(20_000, 48)).astype(np.float32)
        self.weights = np.zeros(48, np.float32)
        self.examples = deque(maxlen=100)

    def update(self):
        """Make one step of gradient descent."""
        batch = self.ring[self.rng.integers(len(self.ring), size=16)]
        error = batch @ self.weights - batch[:, 0]
        self.weights -= 0.01 * (error @ batch) / len(batch)
        self.examples.append(batch[0].copy())


def main(steps):
    """Train."""
    trainer = Trainer()
    for step in range(steps):
        trainer.update()
        row = step % len(trainer.ring)
        trainer.ring[row] = trainer.rng.normal(size=48)
        for _ in range(10):
            trainer.weights.sum()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
