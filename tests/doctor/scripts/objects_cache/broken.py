"""Features of observations behind a cache without a size: each observation is new, so the cache only grows."""

import sys
from functools import cache

import gymnasium as gym
import numpy as np

WEIGHTS = np.random.default_rng(0).normal(size=(2, 200))


@cache
def features(obs):
    """Lift an observation into random features."""
    return tuple(np.cos(np.frombuffer(obs, np.float32) @ WEIGHTS).tolist())


def main(steps):
    """Learn a linear worth of states."""
    env = gym.make("MountainCar-v0")
    worth = np.zeros(200)
    obs, _ = env.reset(seed=0)
    for _ in range(steps):
        new, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        now, then = np.array(features(obs.tobytes())), np.array(features(new.tobytes()))
        worth += 1e-4 * (float(reward) + 0.99 * then @ worth - now @ worth) * now
        obs = env.reset()[0] if terminated or truncated else new


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
