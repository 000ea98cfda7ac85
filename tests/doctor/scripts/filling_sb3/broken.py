"""Stable-Baselines3 DQN on small images with its default of a million transitions: two gigabytes, reached late."""

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
    """Train with a replay of SB3's default size, each observation stored once."""
    once = {"optimize_memory_usage": True, "replay_buffer_kwargs": {"handle_timeout_termination": False}}
    model = DQN("MlpPolicy", Dots(), train_freq=16, policy_kwargs={"net_arch": [32]}, seed=0, **once)
    model.learn(steps)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
