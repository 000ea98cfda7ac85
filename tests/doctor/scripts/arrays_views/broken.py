"""A trainer that keeps one row of each sampled batch for a histogram: each row is a view that pins the whole batch."""

import sys

import numpy as np


class Trainer:
    """Fit a linear model to batches from a ring."""

    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.ring = self.rng.normal(size=(20_000, 48)).astype(np.float32)
        self.weights = np.zeros(48, np.float32)
        self.examples = []

    def update(self):
        """Make one step of gradient descent."""
        batch = self.ring[self.rng.integers(len(self.ring), size=16)]
        error = batch @ self.weights - batch[:, 0]
        self.weights -= 0.01 * (error @ batch) / len(batch)
        self.examples.append(batch[0])


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
