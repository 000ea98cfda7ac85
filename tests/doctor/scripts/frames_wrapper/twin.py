"""A home-made recorder: a wrapper that renders each step, and throws the film away when a new episode begins."""

import sys

import gymnasium as gym
import numpy as np


class Track(gym.Env):
    """A car on a line."""

    observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        """Start in the middle."""
        super().reset(seed=seed)
        self.place, self.time = 0.0, 0
        return np.array([self.place], np.float32), {}

    def step(self, action):
        """Drive."""
        self.place = float(np.clip(self.place + 0.1 * action[0], -1, 1))
        self.time += 1
        return np.array([self.place], np.float32), -abs(self.place), False, self.time == 100, {}

    def render(self):
        """Draw the line and the car."""
        picture = np.full((12, 24, 3), 255, np.uint8)
        picture[6, int(12 + 11 * self.place)] = 0
        return picture


class Recorder(gym.Wrapper):
    """Keep pictures of what happens."""

    def __init__(self, env):
        super().__init__(env)
        self.film = []

    def step(self, action):
        """Step and take a picture."""
        result = self.env.step(action)
        self.film.append(self.env.render())
        return result

    def reset(self, *, seed=None, options=None):
        """Throw the film away and start anew."""
        self.film.clear()
        return super().reset(seed=seed, options=options)


def main(steps):
    """Drive at random."""
    env = Recorder(Track())
    env.reset(seed=0)
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
