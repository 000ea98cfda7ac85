"""A Stable-Baselines3 callback that collects the infos of every step, to be looked at some day."""

import sys

import gymnasium as gym
import numpy as np
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback


class Told(gym.Wrapper):
    """Tell the contacts of each step in the info."""

    def step(self, action):
        """Step, and tell."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        info["contacts"] = np.full(128, obs[0], np.float32)
        info["height"] = float(obs[0])
        return obs, reward, terminated, truncated, info


class Collect(BaseCallback):
    """Collect what the environment says."""

    def __init__(self):
        super().__init__()
        self.collected = []

    def _on_step(self):
        self.collected.extend(self.locals["infos"])
        return True


def main(steps):
    """Train with the callback."""
    model = DQN(
        "MlpPolicy", Told(gym.make("MountainCar-v0")), buffer_size=500, train_freq=64, policy_kwargs={"net_arch": [32]}
    )
    model.learn(steps, callback=Collect())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
