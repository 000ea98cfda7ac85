"""Monte Carlo control on CartPole that keeps every episode since the first, though it learns from the last hundred."""

import sys

import gymnasium as gym
import numpy as np


class Episode:
    """The steps of one episode."""

    def __init__(self):
        self.obs, self.actions, self.rewards = [], [], []

    def add(self, obs, action, reward):
        """Note a step."""
        self.obs.append(obs)
        self.actions.append(action)
        self.rewards.append(reward)


class Agent:
    """Prefer the actions of long episodes."""

    def __init__(self):
        self.episodes = []
        self.weights = np.zeros(4)

    def act(self, obs):
        """Choose a side."""
        return int(obs @ self.weights + np.random.default_rng().normal() > 0)

    def learn(self, episode):
        """Keep an episode and lean towards what the last hundred did."""
        self.episodes.append(episode)
        recent = self.episodes[-100:]
        episode = max(recent, key=lambda item: len(item.rewards))
        self.weights += 0.01 * (np.array(episode.actions) - 0.5) @ np.array(episode.obs)


def main(steps):
    """Play and learn."""
    env, agent, episode = gym.make("CartPole-v1"), Agent(), Episode()
    obs, _ = env.reset(seed=0)
    for _ in range(steps):
        action = agent.act(obs)
        new, reward, terminated, truncated, _ = env.step(action)
        episode.add(obs, action, reward)
        obs = new
        if terminated or truncated:
            agent.learn(episode)
            episode = Episode()
            obs, _ = env.reset()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
