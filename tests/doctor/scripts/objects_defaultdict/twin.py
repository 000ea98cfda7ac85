"""Q-learning on Pendulum with a table of a few hundred coarse states."""

import sys
from collections import defaultdict

import gymnasium as gym
import numpy as np

TORQUES = np.linspace(-2, 2, 5)


class Learner:
    """Learn the worth of actions by state."""

    def __init__(self):
        self.table = defaultdict(lambda: [0.0] * len(TORQUES))
        self.rng = np.random.default_rng(0)

    def key(self, obs):
        """Give the state that an observation belongs to."""
        return tuple(obs.round(0).tolist())

    def act(self, obs):
        """Choose an action, mostly the best one."""
        return int(self.rng.integers(5)) if self.rng.random() < 0.2 else int(np.argmax(self.table[self.key(obs)]))

    def learn(self, obs, action, reward, new):
        """Move the worth of an action towards what it brought."""
        row = self.table[self.key(obs)]
        row[action] += 0.1 * (reward + 0.9 * max(self.table[self.key(new)]) - row[action])


def main(steps):
    """Learn for a while."""
    env, learner = gym.make("Pendulum-v1"), Learner()
    obs, _ = env.reset(seed=0)
    for _ in range(steps):
        action = learner.act(obs)
        new, reward, terminated, truncated, _ = env.step(TORQUES[action : action + 1])
        learner.learn(obs, action, float(reward), new)
        obs = env.reset()[0] if terminated or truncated else new


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
