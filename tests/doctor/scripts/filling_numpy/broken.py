"""Random steps into a ring of a million, made with np.zeros: its pages are paid for one by one, for hours."""

import sys

import gymnasium as gym
import numpy as np

CAPACITY = 1_000_000


class Ring:
    """Hold the newest steps in preallocated arrays."""

    def __init__(self, size):
        self.obs = np.zeros((CAPACITY, size), np.float32)
        self.reward = np.zeros(CAPACITY, np.float32)
        self.count = 0

    def add(self, obs, reward):
        """Write a step over the oldest one."""
        slot = self.count % CAPACITY
        self.obs[slot], self.reward[slot] = obs, reward
        self.count += 1


def main(steps):
    """Fill the ring."""
    env = gym.make("Acrobot-v1")
    features = np.random.default_rng(0).normal(size=(6, 128)).astype(np.float32)
    ring = Ring(128)
    obs, _ = env.reset(seed=0)
    for _ in range(steps):
        new, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        ring.add(np.tanh(obs @ features), reward)
        obs = env.reset()[0] if terminated or truncated else new


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
