"""A trainer whose callbacks are dropped once they were called."""

import sys

import gymnasium as gym
import numpy as np


class Events:
    """Call back whoever asked for it."""

    def __init__(self):
        self.listeners = []

    def on_episode(self, listener):
        """Call this whenever an episode ends."""
        self.listeners.append(listener)

    def fire(self):
        """An episode has ended."""
        while self.listeners:
            self.listeners.pop()()


def main(steps):
    """Play at random, and report on each batch when the episode ends."""
    env, events = gym.make("CartPole-v1"), Events()
    rng = np.random.default_rng(0)
    recent = np.full((256, 4), 0.0, np.float32)
    largest = [0.0]
    obs, _ = env.reset(seed=0)
    for step in range(steps):
        obs, _, terminated, truncated, _ = env.step(env.action_space.sample())
        recent[step % 256] = obs
        batch = recent[rng.integers(256, size=8)]

        def report(batch=batch):
            largest[0] = max(largest[0], float(batch.max()))

        events.on_episode(report)
        if terminated or truncated:
            events.fire()
            obs, _ = env.reset()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
