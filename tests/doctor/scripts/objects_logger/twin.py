"""A REINFORCE loop whose logger keeps a running mean of each metric."""

import sys

import gymnasium as gym
import torch


class Logger:
    """Collect figures by name."""

    def __init__(self):
        self.history = {}

    def log(self, step, **figures):
        """Note figures of a step."""
        for name, value in figures.items():
            _, mean = self.history.get(name, (0, value))
            self.history[name] = (step, 0.99 * mean + 0.01 * value)


def main(steps):
    """Train on CartPole."""
    torch.set_num_threads(1)
    env, logger = gym.make("CartPole-v1"), Logger()
    policy = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(policy.parameters(), 1e-2)
    obs, _ = env.reset(seed=0)
    for step in range(steps):
        chance = torch.distributions.Categorical(logits=policy(torch.as_tensor(obs)))
        action = chance.sample()
        obs, reward, terminated, truncated, _ = env.step(action.item())
        loss = -chance.log_prob(action) * reward
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logger.log(
            step,
            loss=loss.item(),
            reward=reward,
            entropy=chance.entropy().item(),
            position=float(obs[0]),
            speed=float(obs[1]),
            angle=float(obs[2]),
        )
        if terminated or truncated:
            obs, _ = env.reset()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
