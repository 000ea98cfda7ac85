"""Batches as lists of small arrays, all of one size and in one block, of which copies of a few rows are kept."""

import sys
import time

import numpy as np


def batch(rng, size):
    """Make a batch in one block."""
    return rng.normal(size=(size, 250))


def main(steps):
    """Work on batch after batch."""
    rng = np.random.default_rng(0)
    kept = []
    total = 0.0
    for _ in range(steps):
        rows = batch(rng, 2_000)
        total += rows.sum()
        kept = [*kept[-200:], *(row.copy() for row in rows[:: len(rows) // 8])]
        del rows
        time.sleep(0.05)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
