"""An actor in a process of its own that lets go of what it has sent."""

import multiprocessing
import sys

import gymnasium as gym
import numpy as np


def act(pipe):
    """Send rollouts, for ever."""
    env = gym.make("CartPole-v1")
    obs, _ = env.reset(seed=0)
    while True:
        rollout = []
        for _ in range(16):
            rollout.append(np.tile(obs, 32))
            obs, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                obs, _ = env.reset()
        pipe.send(np.array(rollout))


def main(updates):
    """Learn from what the actor sends."""
    here, there = multiprocessing.Pipe()
    multiprocessing.Process(target=act, args=(there,), daemon=True).start()
    mean = np.zeros(128)
    for _ in range(updates):
        mean += 0.01 * (here.recv().mean(0) - mean)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
