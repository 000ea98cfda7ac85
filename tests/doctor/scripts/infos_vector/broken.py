"""Sixteen environments whose info dicts are all kept, with the lidar scans that the environment puts into them."""

import sys

import gymnasium as gym
import numpy as np


class Lidar(gym.Wrapper):
    """Report a scan with each step."""

    def step(self, action):
        """Step, and put a scan into the info."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        info["scan"] = np.full(90, obs[0], np.float32)
        return obs, reward, terminated, truncated, info


def main(steps):
    """Play at random and count goals."""
    envs = gym.vector.SyncVectorEnv([lambda: Lidar(gym.make("MountainCar-v0"))] * 16)
    envs.reset(seed=0)
    infos = []
    rewards = 0.0
    for _ in range(steps):
        _, reward, _, _, info = envs.step(envs.action_space.sample())
        rewards += reward.sum()
        infos.append(info)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
