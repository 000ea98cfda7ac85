"""A replay of Python objects behind a DataLoader: a worker that reads it writes reference counts, and so copies it."""

import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Replay(Dataset):
    """Hold transitions as dicts in a list."""

    def __init__(self, size):
        rng = np.random.default_rng(0)
        self.steps = [
            {"obs": rng.normal(size=16).tolist(), "reward": float(number), "done": number % 50 == 0}
            for number in range(size)
        ]

    def __len__(self):
        return len(self.steps)

    def __getitem__(self, index):
        step = self.steps[index]
        return torch.tensor(step["obs"]), step["reward"]


def main(epochs):
    """Go through the replay in random order, as training does."""
    torch.set_num_threads(1)
    loader = DataLoader(Replay(120_000), batch_size=64, shuffle=True, num_workers=2)
    total = 0.0
    for _ in range(epochs):
        for obs, reward in loader:
            total += float(obs.sum() + reward.sum())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
