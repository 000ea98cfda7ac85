"""A loop that collects the errors of bad batches: each holds its traceback, its frames and the arrays in them."""

import sys

import numpy as np

ERRORS = []


def normalise(batch):
    """Divide by the spread, which some columns do not have."""
    spread = batch.max(0) - batch.min(0)
    if (spread == 0).any():
        raise ValueError("a column is constant")
    return batch / spread


def train(rng):
    """Draw a batch and normalise it."""
    batch = rng.normal(size=(64, 16))
    if rng.random() < 0.5:
        batch[:, 3] = 0
    return normalise(batch).mean()


def main(steps):
    """Train whatever comes."""
    rng = np.random.default_rng(0)
    total = 0.0
    for _ in range(steps):
        for _ in range(4):
            rng.normal(size=1000).sort()
        try:
            total += train(rng)
        except ValueError as error:
            ERRORS.append(error)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
