"""A replay sized from the memory of the host, in a process that is allowed a fraction of it."""

import sys
from collections import deque

import gymnasium as gym
import numpy as np
import psutil


def main(steps):
    """Fill what psutil says is there."""
    env = gym.make("CartPole-v1")
    lift = np.random.default_rng(0).normal(size=(4, 256)).astype(np.float32)
    step_bytes = 256 * 4 + 200
    ring = deque(maxlen=int(0.4 * psutil.virtual_memory().total) // step_bytes)
    obs, _ = env.reset(seed=0)
    for _ in range(steps):
        ring.append((obs @ lift, 1.0))
        obs, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            obs, _ = env.reset()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
