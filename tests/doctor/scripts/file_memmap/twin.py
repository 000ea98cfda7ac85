"""A replay on disk that is written with plain writes: its pages are the kernel's and never this process's."""

import sys
import tempfile

import gymnasium as gym
import numpy as np

CAPACITY = 2_000_000


def main(steps):
    """Write observations into the file."""
    env = gym.make("CartPole-v1")
    lift = np.random.default_rng(0).normal(size=(4, 64)).astype(np.float32)
    with tempfile.NamedTemporaryFile(suffix=".ring") as file:
        obs, _ = env.reset(seed=0)
        for step in range(steps):
            file.seek(step % CAPACITY * 256)
            file.write(np.tanh(obs @ lift).tobytes())
            obs, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                obs, _ = env.reset()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
