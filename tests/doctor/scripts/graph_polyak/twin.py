"""SAC in small: its target critic is kept as tensors that follow the critic, and they follow it under `no_grad`."""

import sys

import gymnasium as gym
import torch
from torch import nn

TAU = 0.005


def worth(weights, obs, action):
    """Judge an action with the target's weights."""
    hidden = torch.relu(torch.cat([obs, action], -1) @ weights[0].T + weights[1])
    return hidden @ weights[2].T + weights[3]


def main(steps):
    """Train on Pendulum."""
    torch.set_num_threads(1)
    env = gym.make("Pendulum-v1")
    actor = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1), nn.Tanh())
    critic = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
    target = [weight.detach().clone() for weight in critic.parameters()]
    to_critic, to_actor = torch.optim.Adam(critic.parameters()), torch.optim.Adam(actor.parameters())
    obs, _ = env.reset(seed=0)
    for _ in range(steps):
        now = torch.as_tensor(obs)[None]
        with torch.no_grad():
            action = actor(now)
        obs, reward, terminated, truncated, _ = env.step(2 * action[0].numpy())
        with torch.no_grad():
            then = torch.as_tensor(obs)[None]
            goal = float(reward) + 0.99 * worth(target, then, actor(then))
        loss = (critic(torch.cat([now, action], -1)) - goal).square().mean()
        to_critic.zero_grad()
        loss.backward()
        to_critic.step()
        to_actor.zero_grad()
        (-critic(torch.cat([now, actor(now)], -1)).mean()).backward()
        to_actor.step()
        with torch.no_grad():
            for weight, old in zip(critic.parameters(), target, strict=True):
                old.lerp_(weight, TAU)
        if terminated or truncated:
            obs, _ = env.reset()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
