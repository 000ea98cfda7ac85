"""An agent that looks through Gymnasium's RenderCollection, which is told never to let go of a frame."""

import sys

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import RenderCollection


class Maze(gym.Env):
    """A point that walks over a small picture."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012  # as gymnasium asks
    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(4)
    render_mode = "rgb_array"

    def reset(self, *, seed=None, options=None):
        """Go to the middle."""
        super().reset(seed=seed)
        self.place, self.time = np.array([8, 8]), 0
        return (self.place / 16).astype(np.float32), {}

    def step(self, action):
        """Go one step in one of four directions."""
        self.place[action // 2] = (self.place[action // 2] + 2 * (action % 2) - 1) % 16
        self.time += 1
        return (self.place / 16).astype(np.float32), 0.0, False, self.time == 200, {}

    def render(self):
        """Draw the point."""
        picture = np.full((16, 16, 3), 200, np.uint8)
        picture[tuple(self.place)] = 0
        return picture


def main(steps):
    """Walk at random, and glance at the pictures now and then."""
    env = RenderCollection(Maze(), pop_frames=False, reset_clean=False)
    env.reset(seed=0)
    brightness = 0.0
    for step in range(steps):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if step % 50 == 0:
            brightness = max(brightness, env.render()[-1].mean())
        if terminated or truncated:
            env.reset()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
