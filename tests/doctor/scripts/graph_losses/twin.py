"""A DQN that adds up its losses for a mean to print, as plain numbers."""

import sys

import gymnasium as gym
import torch
from torch import nn


def main(steps):
    """Train on CartPole, one transition at a time."""
    torch.set_num_threads(1)
    env = gym.make("CartPole-v1")
    net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(net.parameters(), 1e-3)
    total = 0.0
    obs, _ = env.reset(seed=0)
    for _ in range(steps):
        values = net(torch.as_tensor(obs))
        action = int(values.argmax())
        obs, reward, terminated, truncated, _ = env.step(action)
        with torch.no_grad():
            goal = reward + 0.99 * (not terminated) * net(torch.as_tensor(obs)).max()
        loss = (values[action] - goal).square()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        if terminated or truncated:
            obs, _ = env.reset()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
