"""An actor thread that feeds a learner through a queue of eight, and waits when it is full."""

import queue
import sys
import threading
import time

import gymnasium as gym
import numpy as np


def act(rollouts):
    """Make rollouts of 32 steps, for ever."""
    env = gym.make("CartPole-v1")
    obs, _ = env.reset(seed=0)
    while True:
        rollout = np.empty((32, 64), np.float32)
        for row in rollout:
            obs, _, terminated, truncated, _ = env.step(env.action_space.sample())
            row[:] = np.resize(obs, 64)
            if terminated or truncated:
                obs, _ = env.reset()
        rollouts.put(rollout)
        time.sleep(0.001)


def main(updates):
    """Learn from rollouts, more slowly than they come."""
    rollouts = queue.Queue(maxsize=8)
    threading.Thread(target=act, args=(rollouts,), daemon=True).start()
    mean = np.zeros(64, np.float32)
    for _ in range(updates):
        mean += 0.01 * (rollouts.get().mean(0) - mean)
        time.sleep(0.02)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9)
