# ruff: noqa: D102, D103 - base.py and works.py say what each of these does
"""cpprb: ReplayBuffer with n-step, and with its two ways to keep a frame once. The user reports episode ends."""

from typing import Any

import numpy as np
from cpprb import PrioritizedReplayBuffer, ReplayBuffer

from benchmarks.data import ACTION, FRAME, OBS, STACK, Array, Frames, Steps
from benchmarks.peers import base
from benchmarks.priorities import ALPHA, BETA

PACKAGES = ("cpprb", "numpy")
FLAGS = {"done": {"dtype": np.bool_}, "truncated": {"dtype": np.bool_}}
CONTROL = {"obs": {"shape": OBS}, "action": {"shape": ACTION}, "reward": {}, "next_obs": {"shape": OBS}}
SCREEN = {"obs": {"shape": (*FRAME, STACK), "dtype": np.uint8}, "action": {"dtype": np.int64}, "reward": {}}


class Ring(base.Ring):
    """Takes raw values and many rows at once; nothing to convert."""

    def __init__(self, buffer: ReplayBuffer, nbytes: int) -> None:
        self.buffer, self.nbytes = buffer, nbytes

    def add(self, obs: Array, action: Any, reward: Any, next_obs: Array, terminated: Any, truncated: Any) -> None:
        flags = {"done": terminated, "truncated": truncated}
        self.buffer.add(obs=obs, action=action, reward=reward, next_obs=next_obs, **flags)

    extend = add

    def fill(self, data: Steps | Frames) -> None:
        assert isinstance(data, Steps)
        for at in range(0, len(data), 64_000):
            self.extend(*(column[at : at + 64_000] for column in data.fields))

    def numpy(self, count: int) -> dict[str, Array]:
        batch: dict[str, Array] = self.buffer.sample(count)
        batch["terminated"] = batch.pop("done")
        return batch


class EpisodeRing(Ring):
    """Tells the buffer where episodes end, which its n-step needs, and copies the rewards it would overwrite."""

    def add(self, obs: Array, action: Any, reward: Any, next_obs: Array, terminated: Any, truncated: Any) -> None:
        super().add(obs, action, reward, next_obs, terminated, truncated)
        if terminated or truncated:
            self.buffer.on_episode_end()

    def fill(self, data: Steps | Frames) -> None:
        assert isinstance(data, Steps)
        begin = 0
        for end in np.flatnonzero(data.terminated | data.truncated) + 1:
            obs, action, reward, *rest = (column[begin:end] for column in data.fields)
            Ring.add(self, obs, action, reward.copy(), *rest)
            self.buffer.on_episode_end()
            begin = end


class FrameRing(EpisodeRing):
    """Moves the stack to the last axis, where the buffer wants it, and back: views of the same memory."""

    def add(self, obs: Array, action: Any, reward: Any, next_obs: Array, terminated: Any, truncated: Any) -> None:
        super().add(np.moveaxis(obs, 0, -1), action, reward, np.moveaxis(next_obs, 0, -1), terminated, truncated)

    def fill(self, data: Steps | Frames) -> None:
        base.Ring.fill(self, data)

    def numpy(self, count: int) -> dict[str, Array]:
        batch = super().numpy(count)
        batch["obs"], batch["next_obs"] = np.moveaxis(batch["obs"], -1, 1), np.moveaxis(batch["next_obs"], -1, 1)
        return batch


class PrioritizedRing(Ring, base.PrioritizedRing):
    """Copies the weights and indices: the next draw would overwrite them."""

    def numpy(self, count: int) -> dict[str, Array]:
        batch: dict[str, Array] = self.buffer.sample(count, beta=BETA)
        batch["terminated"], batch["at"] = batch.pop("done"), batch.pop("indexes").copy()
        batch["weights"] = batch["weights"].copy()
        return batch

    def update(self, at: Array, priorities: Array) -> None:
        self.buffer.update_priorities(at, priorities)


def ring(capacity: int, _streams: int = 1) -> Ring:
    row = 4 * (2 * OBS + ACTION + 1) + 2
    return Ring(ReplayBuffer(capacity, CONTROL | FLAGS), row * capacity)


def nstep(capacity: int, n: int, gamma: float) -> Ring:
    options = {"size": n, "gamma": gamma, "rew": "reward", "next": "next_obs"}
    return EpisodeRing(ReplayBuffer(capacity, CONTROL | FLAGS, Nstep=options), 0)


def frames(capacity: int) -> Ring:
    return FrameRing(ReplayBuffer(capacity, SCREEN | FLAGS, next_of="obs", stack_compress="obs"), 0)


def per(capacity: int, _streams: int = 1) -> base.PrioritizedRing:
    return PrioritizedRing(PrioritizedReplayBuffer(capacity, CONTROL | FLAGS, alpha=ALPHA), 0)
