"""An environment that keeps every state since it was made, because `reset` starts a list but `step` adds to another."""

import sys

import gymnasium as gym
import numpy as np
import torch


class Drift(gym.Env):
    """A point pushed about in 32 dimensions."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (32,), np.float32)
    action_space = gym.spaces.Discrete(32)

    def __init__(self):
        self.visited = []

    def reset(self, *, seed=None, options=None):
        """Start at the origin."""
        super().reset(seed=seed)
        self.path = []
        self.point = np.zeros(32, np.float32)
        self.time = 0
        return self.point.copy(), {}

    def step(self, action):
        """Push one coordinate."""
        self.point = self.point + self.np_random.normal(size=32).astype(np.float32) * 0.01
        self.point[action] += 0.1
        self.visited.append((self.time, self.point.copy(), self.np_random.normal(size=64)))
        self.time += 1
        return self.point.copy(), -float(abs(self.point).sum()), False, self.time == 50, {}


def main(steps):
    """Let a small network act."""
    torch.set_num_threads(1)
    env = Drift()
    policy = torch.nn.Linear(32, 32)
    obs, _ = env.reset(seed=0)
    for _ in range(steps):
        with torch.no_grad():
            action = int(torch.multinomial(policy(torch.from_numpy(obs)).softmax(0), 1))
        obs, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            obs, _ = env.reset()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
