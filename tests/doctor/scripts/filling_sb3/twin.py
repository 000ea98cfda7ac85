"""Stable-Baselines3 DQN on small images with a buffer that is full after a thousand steps."""

import sys

import gymnasium as gym
import numpy as np
from stable_baselines3 import DQN


class Dots(gym.Env):
    """A dot that wanders over a small image."""

    observation_space = gym.spaces.Box(0, 255, (32, 32), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        """Put the dot at the left."""
        super().reset(seed=seed)
        self.column = self.time = 0
        return self._draw(), {}

    def step(self, action):
        """Move the dot."""
        self.column = (self.column + 2 * int(action) - 1) % 32
        self.time += 1
        return self._draw(), float(self.column == 16), False, self.time == 100, {}

    def _draw(self):
        image = np.full((32, 32), 40, np.uint8)
        image[:, self.column] = 255
        return image


def main(steps):
    """Train with a small buffer."""
    model = DQN("MlpPolicy", Dots(), buffer_size=1_000, train_freq=16, policy_kwargs={"net_arch": [32]}, seed=0)
    model.learn(steps)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
