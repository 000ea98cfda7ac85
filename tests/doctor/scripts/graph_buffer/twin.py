"""An actor-critic that puts the log-probabilities of its actions into a ring of five hundred, as plain numbers."""

import sys
from collections import deque

import gymnasium as gym
import torch
from torch import nn


class Buffer:
    """Hold what was done."""

    def __init__(self):
        self.steps = deque(maxlen=500)

    def add(self, obs, action, log_prob, reward):
        """Note a step."""
        self.steps.append((obs, action, log_prob, reward))


def main(steps):
    """Act on CartPole, and learn from the newest step."""
    torch.set_num_threads(1)
    env, buffer = gym.make("CartPole-v1"), Buffer()
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(policy.parameters(), 1e-3)
    obs, _ = env.reset(seed=0)
    for step in range(steps):
        chance = torch.distributions.Categorical(logits=policy(torch.as_tensor(obs)))
        action = chance.sample()
        log_prob = chance.log_prob(action)
        new, reward, terminated, truncated, _ = env.step(int(action))
        buffer.add(obs, int(action), log_prob.item(), reward)
        obs = new
        if step % 16 == 0:
            optimizer.zero_grad()
            (-log_prob * reward).backward(retain_graph=True)
            optimizer.step()
        if terminated or truncated:
            obs, _ = env.reset()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
