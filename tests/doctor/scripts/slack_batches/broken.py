"""Batches as lists of small arrays, of which one in many is kept for a while: the heap between the kept ones stays."""

import sys
import time

import numpy as np


def batch(rng, size):
    """Make a batch row by row, as a collate function does."""
    return [rng.normal(size=int(width)) for width in rng.integers(100, 400, size)]


def main(steps):
    """Work on ever larger curricula of batches."""
    rng = np.random.default_rng(0)
    kept = []
    total = 0.0
    for step in range(steps):
        rows = batch(rng, 2_000 + 150 * step)
        total += sum(row.sum() for row in rows)
        kept = [*kept[-200:], *rows[:: len(rows) // 8]]
        del rows
        time.sleep(0.05)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
