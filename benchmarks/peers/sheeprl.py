# ruff: noqa: D102, D103 - base.py and works.py say what each of these does
"""sheeprl: ReplayBuffer, SequentialReplayBuffer and EpisodeBuffer. Rows have leading axes of time and environment."""

import warnings
from typing import Any

import numpy as np

from benchmarks.data import Array, Frames, Steps
from benchmarks.peers import base
from benchmarks.screens import FIELDS, LENGTH, Screens

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from sheeprl.data.buffers import EpisodeBuffer, ReplayBuffer, SequentialReplayBuffer

PACKAGES = ("sheeprl", "torch", "numpy")
NAMES = {"obs": "observations", "action": "actions", "reward": "rewards", "next_obs": "next_observations"}
NAMES |= {"terminated": "terminated", "truncated": "truncated"}


class Ring(base.Ring):
    """Keeps both observations of a step: right at every end."""

    reads_ahead = False

    def __init__(self, buffer: ReplayBuffer) -> None:
        self.buffer = buffer

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        return sum(array.nbytes for array in self.buffer.buffer.values())

    def add(self, obs: Array, action: Any, reward: float, next_obs: Array, terminated: bool, truncated: bool) -> None:
        self.put(
            obs[None, None],
            np.asarray(action)[None, None],
            np.array([[[reward]]], np.float32),
            next_obs[None, None],
            np.array([[[terminated]]], np.uint8),
            np.array([[[truncated]]], np.uint8),
        )

    def extend(
        self, obs: Array, action: Array, reward: Array, next_obs: Array, terminated: Array, truncated: Array
    ) -> None:
        flags = terminated[None, :, None].astype(np.uint8), truncated[None, :, None].astype(np.uint8)
        self.put(obs[None], action[None], reward[None, :, None], next_obs[None], *flags)

    def put(
        self, obs: Array, action: Array, reward: Array, next_obs: Array, terminated: Array, truncated: Array
    ) -> None:
        self.buffer.add(
            {
                "observations": obs,
                "actions": action,
                "rewards": reward,
                "next_observations": next_obs,
                "terminated": terminated,
                "truncated": truncated,
            }
        )

    def fill(self, data: Steps | Frames) -> None:
        if not isinstance(data, Steps) or data.streams > 1:
            super().fill(data)
            return
        obs, action, reward, next_obs, *flags = (column[:, None] for column in data.fields)
        self.put(obs, action, reward[..., None], next_obs, *(flag[..., None].astype(np.uint8) for flag in flags))

    def numpy(self, count: int) -> dict[str, Array]:
        batch = self.buffer.sample(count, sample_next_obs=self.reads_ahead)
        return {name: batch[theirs][0] for name, theirs in NAMES.items()}


class LeanRing(Ring):
    """Keeps one stack a step and reads the next observation from the row that follows."""

    reads_ahead = True

    def put(
        self,
        obs: Array,
        action: Array,
        reward: Array,
        next_obs: Array,  # noqa: ARG002 - the next row has it
        terminated: Array,
        truncated: Array,
    ) -> None:
        rows = {"observations": obs, "actions": action, "rewards": reward}
        self.buffer.add(rows | {"terminated": terminated, "truncated": truncated})


class WindowRing(base.WindowRing):
    """Adds an episode at once; draws are (1, time, batch, ...), views of arrays in the order that is returned here."""

    def __init__(self, buffer: SequentialReplayBuffer | EpisodeBuffer) -> None:
        self.buffer, self.nbytes = buffer, 0

    def add(self, obs: Array, action: Any, reward: float, _next_obs: Array, terminated: bool, truncated: bool) -> None:
        flags = np.array([terminated], np.uint8), np.array([truncated], np.uint8)
        self.put(obs[None], action[None], np.array([reward], np.float32), *flags)

    def put(self, *columns: Array) -> None:
        obs, action, *rest = (column[:, None] for column in columns)
        columns = obs, action, *(column[..., None] for column in rest)
        self.buffer.add({NAMES[name]: column for name, column in zip(FIELDS, columns, strict=True)})

    def fill_screens(self, data: Screens) -> None:
        for begin in range(0, len(data), data.episode):
            obs, action, reward, *flags = data.columns(np.arange(begin, min(begin + data.episode, len(data))))
            self.put(obs, action, reward, *(flag.astype(np.uint8) for flag in flags))

    def numpy(self, count: int) -> dict[str, Array]:
        batch = self.buffer.sample(count, sequence_length=LENGTH)
        return {name: np.moveaxis(batch[NAMES[name]][0], 0, 1) for name in FIELDS}


def ring(capacity: int, streams: int = 1) -> Ring:
    return Ring(ReplayBuffer(capacity // streams, n_envs=streams, seed=0))


def frames(capacity: int) -> Ring:
    return Ring(ReplayBuffer(capacity, seed=0))


def lean_frames(capacity: int) -> Ring:
    return LeanRing(ReplayBuffer(capacity, seed=0))


def windows(capacity: int) -> base.WindowRing:
    """Take steps in a row, over the ends of episodes too."""
    return WindowRing(SequentialReplayBuffer(capacity, seed=0))


def episodes_windows(capacity: int) -> base.WindowRing:
    """Take steps of one episode, which must have ended."""
    return WindowRing(EpisodeBuffer(capacity, LENGTH))
