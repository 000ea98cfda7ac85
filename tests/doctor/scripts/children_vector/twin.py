"""Two environments in processes of their own, in which each step adds to a trail of fifty."""

import sys
from collections import deque

import gymnasium as gym
import numpy as np


class Trail(gym.Wrapper):
    """Remember where the environment has been."""

    def __init__(self, env):
        super().__init__(env)
        self.trail = deque(maxlen=50)

    def step(self, action):
        """Step and remember."""
        result = self.env.step(action)
        self.trail.append(np.tile(result[0], 128))
        return result


def make():
    """Make one environment."""
    return Trail(gym.make("CartPole-v1"))


def main(steps):
    """Play at random."""
    envs = gym.vector.AsyncVectorEnv([make, make])
    envs.reset(seed=0)
    for _ in range(steps):
        envs.step(envs.action_space.sample())
    envs.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
