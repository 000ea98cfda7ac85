"""A small DQN whose replay lies in tensors that are small and paid for at once."""

import sys

import gymnasium as gym
import torch

CAPACITY = 50_000


def main(steps):
    """Train on CartPole with a ring of tensors."""
    torch.set_num_threads(1)
    env = gym.make("CartPole-v1")
    obs_ring = torch.full((CAPACITY, 64), torch.nan)
    action_ring = torch.zeros(CAPACITY, dtype=torch.int64)
    reward_ring = torch.zeros(CAPACITY)
    lift = torch.randn(4, 64)
    net = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    obs, _ = env.reset(seed=0)
    for step in range(steps):
        features = torch.tanh(torch.as_tensor(obs) @ lift)
        with torch.no_grad():
            action = int(net(features).argmax()) if torch.rand(()) > 0.1 else env.action_space.sample()
        obs, reward, terminated, truncated, _ = env.step(action)
        slot = step % CAPACITY
        obs_ring[slot], action_ring[slot], reward_ring[slot] = features, action, reward
        if terminated or truncated:
            obs, _ = env.reset()
        if step % 8 == 7:
            rows = torch.randint(0, min(step, CAPACITY), (32,))
            chosen = net(obs_ring[rows]).gather(1, action_ring[rows, None])[:, 0]
            loss = (chosen - reward_ring[rows]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
