# ruff: noqa: D102, D103 - base.py says what each of these does
"""ReplayBuffer with validate_args=True; kept once: sample_next_obs; EpisodeBuffer for sequences; stacks whole."""

import warnings
from typing import Any

import numpy as np

from benchmarks.subjects import base
from benchmarks.subjects.base import Array, numbers

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from sheeprl.data.buffers import EpisodeBuffer, ReplayBuffer

PACKAGES = ("sheeprl", "torch", "numpy")
THEIRS = {"obs": "obs", "action": "actions", "reward": "rewards", "next_obs": "next_obs", "stop": "terminated"}


class Ring(base.Ring):
    """Everything has leading axes of time and environment."""

    ahead = False

    def __init__(self, buffer: Any, dtype: Any = np.float32) -> None:
        self.buffer, self.dtype = buffer, dtype

    def put(self, obs: Any, action: Any, reward: Any, next_obs: Any, terminated: bool, truncated: bool) -> None:
        step = {"obs": obs, "actions": [action], "rewards": [reward], "next_obs": next_obs}
        if self.ahead:
            del step["next_obs"]
        flags = {"terminated": [terminated], "truncated": [truncated]}
        arrays = {name: np.asarray(leaf)[None, None] for name, leaf in (step | flags).items()}
        self.buffer.add(arrays, validate_args=True)

    def draw(self, n: int) -> dict[str, Array]:
        batch = self.buffer.sample(n, sample_next_obs=self.ahead)
        found = {name: batch[theirs][0] for name, theirs in THEIRS.items()}
        return found | {name: numbers(found[name]) for name in ("obs", "next_obs")}

    def arrays(self, n: int) -> list[Any]:
        return list(self.buffer.sample(n).values())

    def size(self) -> int:
        """Count what its arrays hold: ``len`` is the capacity here."""
        return int(self.buffer.buffer_size if self.buffer.full else self.buffer._pos)  # noqa: SLF001


class Lean(Ring):
    """Reads the next observation from the row that follows."""

    ahead = True


class Stacks(base.Stacks, Ring):
    """Whole stacks."""

    def draw(self, n: int) -> dict[str, Array]:
        batch = self.buffer.sample(n)
        found = {name: numbers(batch[name][0], 2) for name in ("obs", "next_obs")}
        return found | {"action": batch["actions"][0]}


class Sequences(Ring):
    """Whole episodes, of which windows are drawn: (1, time, window) come back."""

    def __init__(self, buffer: EpisodeBuffer, length: int) -> None:
        super().__init__(buffer)
        self.length = length

    def draw(self, n: int) -> dict[str, Array]:
        batch = self.buffer.sample(n, sequence_length=self.length)
        return {"obs": numbers(batch["obs"][0], 2).T}


def ring(capacity: int, seed: int | None = None) -> Ring:
    return Ring(ReplayBuffer(capacity, obs_keys=("obs",), seed=seed))


def lean(capacity: int) -> Ring:
    return Lean(ReplayBuffer(capacity, obs_keys=("obs",)))


def pixels(capacity: int) -> Ring:
    return Ring(ReplayBuffer(capacity, obs_keys=("obs",)), np.uint8)


def stacks(capacity: int, k: int, side: int) -> Stacks:
    del k, side
    return Stacks(ReplayBuffer(capacity, obs_keys=("obs",)), np.uint8)


def sequences(capacity: int, length: int) -> Ring:
    return Sequences(EpisodeBuffer(capacity, minimum_episode_length=length, obs_keys=("obs",)), length)


def big(nbytes: int) -> None:
    obs = np.zeros((84, 84, 4), np.uint8)
    ring = Ring(ReplayBuffer(nbytes // (2 * obs.nbytes), obs_keys=("obs",)))
    ring.put(obs, 0, 0.0, obs, False, False)
