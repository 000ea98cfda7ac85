# ruff: noqa: D102, D103 - base.py says what each of these does
"""The DIAMOND buffer for steps, IRIS for steps kept once, Dreamer for sequences; observations are images."""

from typing import Any

import numpy as np
from simulusion import IRISReplayBuffer, ReplayBuffer
from simulusion.datasets import diamond_dataset

from benchmarks.peers import Unsupported
from benchmarks.subjects import base
from benchmarks.subjects.base import Array, numbers

PACKAGES = ("simulusion", "torch", "numpy")
SIDE = 8


class Ring(base.Ring):
    """DIAMOND: images come back in [-1, 1]."""

    dtype = np.uint8

    def __init__(self, capacity: int) -> None:
        self.buffer = diamond_dataset.ReplayBuffer(capacity, (SIDE, SIDE, 3), 1, device="cpu")

    def encode(self, number: int) -> Array:
        return np.full((SIDE, SIDE, 3), number, np.uint8)

    def put(self, obs: Any, action: Any, reward: Any, next_obs: Any, terminated: bool, truncated: bool) -> None:
        self.buffer.add(obs, action, reward, terminated, next_obs, truncated)

    def draw(self, n: int) -> dict[str, Array]:
        batch = self.buffer.sample(n)
        found = {name: self.pixels(batch[name]) for name in ("obs", "next_obs")}
        rest = {"action": "actions", "reward": "rewards", "stop": "dones"}
        return found | {name: batch[theirs].numpy() for name, theirs in rest.items()}

    @staticmethod
    def pixels(images: Any) -> Array:
        return numbers(np.round((images.numpy() + 1) * 127.5))

    def arrays(self, n: int) -> list[Any]:
        batch = self.buffer.sample(n)
        return [batch[name] for name in ("obs", "actions", "rewards", "next_obs")]

    def size(self) -> int:
        return len(self.buffer)


class Channels(Ring):
    """Images have their channels first."""

    def encode(self, number: int) -> Array:
        return np.full((3, SIDE, SIDE), number, np.uint8)


class Lean(Channels):
    """IRIS: sequences of one step, with the observation that follows."""

    def __init__(self, capacity: int) -> None:
        self.buffer = IRISReplayBuffer(capacity, (3, SIDE, SIDE), 1, seq_len=1)

    def put(self, obs: Any, action: Any, reward: Any, next_obs: Any, terminated: bool, truncated: bool) -> None:
        del next_obs
        self.buffer.add(obs, np.array([action]), reward, terminated or truncated)

    def draw(self, n: int) -> dict[str, Array]:
        self.buffer.batch_size = n
        pairs = self.buffer.sample_sequence()[0]
        return {"obs": numbers(pairs[:, 0]), "next_obs": numbers(pairs[:, 1])}


class Sequences(Channels):
    """Dreamer: sequences inside an episode, as its manual says; time comes first."""

    def __init__(self, capacity: int, length: int) -> None:
        self.buffer = ReplayBuffer(capacity, (3, SIDE, SIDE), 1, seq_len=length, batch_size=1)

    def put(self, obs: Any, action: Any, reward: Any, next_obs: Any, terminated: bool, truncated: bool) -> None:
        del next_obs
        self.buffer.add({"image": obs}, np.array([action]), reward, float(terminated or truncated), float(terminated))

    def draw(self, n: int) -> dict[str, Array]:
        self.buffer.batch_size = n
        return {"obs": numbers(self.buffer.sample()[0], 2).T}


def ring(capacity: int, seed: int | None = None) -> Ring:
    if seed is not None:
        raise Unsupported("has no seed: NumPy's global generator decides")
    return Ring(capacity)


def lean(capacity: int) -> Ring:
    return Lean(capacity)


pixels = ring


def sequences(capacity: int, length: int) -> Ring:
    return Sequences(capacity, length)


def big(nbytes: int) -> None:
    obs = np.zeros((84, 84, 4), np.uint8)
    buffer = diamond_dataset.ReplayBuffer(nbytes // (2 * obs.nbytes), obs.shape, 1, device="cpu")
    buffer.add(obs, 0, 0.0, False, obs)
