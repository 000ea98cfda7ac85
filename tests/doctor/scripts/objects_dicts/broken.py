"""Tabular Q-learning on FrozenLake that logs every step as a dict, for a plot that nobody draws."""

import sys
import time

import gymnasium as gym
import numpy as np

LOG = []


def main(steps):
    """Learn the table."""
    env = gym.make("FrozenLake-v1")
    rng = np.random.default_rng(0)
    table = np.zeros((16, 4))
    state, _ = env.reset(seed=0)
    for step in range(steps):
        action = int(rng.integers(4)) if rng.random() < 0.1 else int(table[state].argmax())
        new, reward, terminated, truncated, _ = env.step(action)
        error = reward + 0.99 * (not terminated) * table[new].max() - table[state, action]
        table[state, action] += 0.1 * error
        LOG.append({"step": step, "time": time.time(), "state": state, "reward": reward, "error": float(error)})
        state = env.reset()[0] if terminated or truncated else new


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
