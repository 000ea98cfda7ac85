"""A replay of two arrays behind a DataLoader: the workers read it without a copy."""

import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Replay(Dataset):
    """Hold transitions in arrays."""

    def __init__(self, size):
        rng = np.random.default_rng(0)
        self.obs = rng.normal(size=(size, 16))
        self.reward = np.arange(size, dtype=np.float64)

    def __len__(self):
        return len(self.obs)

    def __getitem__(self, index):
        return self.obs[index], self.reward[index]


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
