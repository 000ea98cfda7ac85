"""An environment around a C simulation that allocates a contact buffer in each step and never frees one."""

import ctypes
import sys

import gymnasium as gym
import numpy as np

LIBC = ctypes.CDLL(None)
LIBC.malloc.restype = ctypes.c_void_p
LIBC.memset.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
LIBC.free.argtypes = (ctypes.c_void_p,)


class Simulation(gym.Env):
    """A bouncing ball, the contacts of which are computed in C."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        """Drop the ball."""
        super().reset(seed=seed)
        self.state, self.time = np.array([1, 0], np.float32), 0
        return self.state.copy(), {}

    def step(self, action):
        """Let it fall, and push it up now and then."""
        contacts = LIBC.malloc(512)
        LIBC.memset(contacts, 1, 512)
        height, speed = self.state
        speed = -speed if height < 0 else speed - 0.1 + 0.15 * action
        self.state = np.array([height + 0.1 * speed, speed], np.float32)
        self.time += 1
        return self.state.copy(), float(height), False, self.time == 200, {}


def main(steps):
    """Push at random."""
    env = Simulation()
    env.reset(seed=0)
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
