"""A collector that starts a new episode on `terminated` alone: Pendulum only truncates, so the first never ends."""

import sys

import gymnasium as gym
import numpy as np


def learn(weights, episode):
    """Regress rewards on observations."""
    obs = np.array([step[0] for step in episode])
    rewards = np.array([step[2] for step in episode])
    weights += 1e-4 * (rewards - obs @ weights) @ obs


def main(steps):
    """Collect episodes and learn from each when it is over."""
    env = gym.make("Pendulum-v1")
    weights = np.zeros(3)
    episode = []
    obs, _ = env.reset(seed=0)
    for _ in range(steps):
        action = env.action_space.sample()
        new, reward, terminated, truncated, _ = env.step(action)
        episode.append((obs, action, float(reward), new))
        obs = new
        if terminated:
            learn(weights, episode)
            episode.clear()
        if terminated or truncated:
            obs, _ = env.reset()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
