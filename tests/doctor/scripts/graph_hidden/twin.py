"""A recurrent policy that carries its hidden state from step to step, cut off from the graph of the steps before."""

import sys

import gymnasium as gym
import torch
from torch import nn


def main(steps):
    """Act on Pendulum with a memory."""
    torch.set_num_threads(1)
    env = gym.make("Pendulum-v1")
    cell, head = nn.GRUCell(3, 8), nn.Linear(8, 1)
    hidden = torch.zeros(8)
    obs, _ = env.reset(seed=0)
    for _ in range(steps):
        hidden = cell(torch.as_tensor(obs), hidden)
        action = head(hidden).tanh()
        hidden = hidden.detach()
        obs, _, terminated, truncated, _ = env.step(2 * action.detach().numpy())
        if terminated or truncated:
            obs, _ = env.reset()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
