"""A replay that stores one frame of bytes for each step, and stacks when it samples."""

import sys

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import FrameStackObservation

CAPACITY = 1_500


class Blocks(gym.Env):
    """Falling blocks in grey."""

    observation_space = gym.spaces.Box(0, 255, (24, 24), np.uint8)
    action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        """Clear the picture."""
        super().reset(seed=seed)
        self.picture, self.time = np.zeros((24, 24), np.uint8), 0
        return self.picture.copy(), {}

    def step(self, action):
        """Let all blocks fall by one row."""
        self.picture = np.roll(self.picture, 1, axis=0)
        self.picture[0] = self.np_random.integers(0, 255, 24)
        self.time += 1
        return self.picture.copy(), float(action == 1), False, self.time == 100, {}


class Ring:
    """Hold the newest frames."""

    def __init__(self):
        self.frames = np.full((CAPACITY, 24, 24), 1, np.uint8)
        self.count = 0

    def add(self, frame):
        """Write over the oldest frame."""
        self.frames[self.count % CAPACITY] = frame
        self.count += 1


def main(steps):
    """Fill the ring again and again."""
    env, ring = FrameStackObservation(Blocks(), 4), Ring()
    obs, _ = env.reset(seed=0)
    for _ in range(steps):
        new, _, terminated, truncated, _ = env.step(env.action_space.sample())
        ring.add(obs[-1])
        obs = env.reset()[0] if terminated or truncated else new


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
