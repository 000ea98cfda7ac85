"""A replay on disk through np.memmap: resident memory climbs with each page, and the kernel may take it back."""

import sys
import tempfile

import gymnasium as gym
import numpy as np

CAPACITY = 2_000_000


def main(steps):
    """Write observations into the mapped file."""
    env = gym.make("CartPole-v1")
    lift = np.random.default_rng(0).normal(size=(4, 64)).astype(np.float32)
    with tempfile.NamedTemporaryFile(suffix=".ring") as file:
        ring = np.memmap(file.name, np.float32, "w+", shape=(CAPACITY, 64))
        obs, _ = env.reset(seed=0)
        for step in range(steps):
            ring[step % CAPACITY] = np.tanh(obs @ lift)
            obs, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                obs, _ = env.reset()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
