# ruff: noqa: D102, D103 - base.py says what each of these does
"""ReplayBuffer, NStepReplayBuffer; kept once: optimize_memory_usage; stacks whole, as VecFrameStack gives them."""

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer

from benchmarks.peers import Unsupported
from benchmarks.subjects import base
from benchmarks.subjects.base import WIDTH, Array, Step, numbers, value

PACKAGES = ("stable-baselines3", "torch", "numpy")
VECTOR = spaces.Box(-np.inf, np.inf, (WIDTH,), np.float32)
BYTES = spaces.Box(0, 255, (WIDTH,), np.uint8)
ACTIONS = spaces.Discrete(512)


class Ring(base.Ring):
    """Adds the leading axis of environments; time limits are told in the info dict, as its wrappers do."""

    def __init__(self, buffer: ReplayBuffer, dtype: Any = np.float32) -> None:
        self.buffer, self.dtype = buffer, dtype

    def put(
        self,
        obs: Any,
        action: Any,
        reward: Any,
        next_obs: Any,
        terminated: bool,
        truncated: bool,
        info: dict[str, Any] | None = None,
    ) -> None:
        infos = [{"TimeLimit.truncated": truncated and not terminated, **(info or {})}]
        done = np.array([terminated or truncated])
        arrays = np.asarray(obs)[None], np.asarray(next_obs)[None], np.array([action]), np.array([reward])
        self.buffer.add(*arrays, done, infos)

    def put_info(self, step: Step, info: dict[str, Any]) -> None:
        self.put(self.encode(step.obs), *step[1:3], self.encode(step.next_obs), *step[4:], info)

    def draw(self, n: int) -> dict[str, Array]:
        batch = self.buffer.sample(n)
        later = numbers(batch.next_observations)
        found = {"obs": numbers(batch.observations), "next_obs": later, "stop": batch.dones.numpy() > 0}
        found |= {"action": batch.actions.numpy(), "reward": batch.rewards.numpy()}
        if batch.discounts is not None:
            factor = (1 - batch.dones.numpy()) * batch.discounts.numpy()
            found["target"] = batch.rewards.numpy() + factor * value(later)[:, None]
        return found

    def arrays(self, n: int) -> list[Any]:
        batch = self.buffer.sample(n)
        return [batch.observations, batch.actions, batch.rewards, batch.next_observations]

    def size(self) -> int:
        return int(self.buffer.size())


class Stacks(base.Stacks, Ring):
    """Whole stacks, as VecFrameStack gives them."""

    def draw(self, n: int) -> dict[str, Array]:
        batch = self.buffer.sample(n)
        found = {"obs": numbers(batch.observations, 2), "next_obs": numbers(batch.next_observations, 2)}
        return found | {"action": batch.actions.numpy()}


def ring(capacity: int, seed: int | None = None) -> Ring:
    if seed is not None:
        raise Unsupported("has no seed: NumPy's global generator decides")
    return Ring(ReplayBuffer(capacity, VECTOR, ACTIONS, device="cpu"))


def lean(capacity: int) -> Ring:
    """One observation a step; this mode refuses to tell time limits from terminations."""
    options = {"optimize_memory_usage": True, "handle_timeout_termination": False}
    return Ring(ReplayBuffer(capacity, VECTOR, ACTIONS, device="cpu", **options))


def pixels(capacity: int) -> Ring:
    return Ring(ReplayBuffer(capacity, BYTES, ACTIONS, device="cpu"), np.uint8)


def nstep(capacity: int, n: int, gamma: float) -> Ring:
    return Ring(NStepReplayBuffer(capacity, VECTOR, ACTIONS, device="cpu", n_steps=n, gamma=gamma))


def stacks(capacity: int, k: int, side: int) -> Stacks:
    frames = spaces.Box(0, 255, (k, side, side), np.uint8)
    return Stacks(ReplayBuffer(capacity, frames, ACTIONS, device="cpu"), np.uint8)


def big(nbytes: int) -> None:
    frames = spaces.Box(0, 255, (84, 84, 4), np.uint8)
    ring = Ring(ReplayBuffer(nbytes // (2 * 84 * 84 * 4), frames, ACTIONS, device="cpu"))
    obs = np.zeros(frames.shape, np.uint8)
    ring.put(obs, 0, 0.0, obs, False, False)
