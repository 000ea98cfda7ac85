# ruff: noqa: D102, D103 - base.py and works.py say what each of these does
"""stable-baselines3: ReplayBuffer and NStepReplayBuffer. Draws torch tensors; truncated is folded into its dones."""

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer

from benchmarks.data import ACTION, FRAME, OBS, STACK, Array
from benchmarks.peers import base

PACKAGES = ("stable-baselines3", "torch", "numpy")
CONTROL = spaces.Box(-np.inf, np.inf, (OBS,), np.float32), spaces.Box(-1, 1, (ACTION,), np.float32)
SCREEN = spaces.Box(0, 255, (STACK, *FRAME), np.uint8), spaces.Discrete(6)


class Ring(base.Ring):
    """Converts what the environment gave to the arrays with a leading axis that its `add` takes."""

    def __init__(self, buffer: ReplayBuffer) -> None:
        self.buffer = buffer
        self.nbytes = sum(array.nbytes for array in vars(buffer).values() if isinstance(array, np.ndarray))

    def add(self, obs: Array, action: Any, reward: float, next_obs: Array, terminated: bool, truncated: bool) -> None:
        done, infos = np.array([terminated or truncated]), [{"TimeLimit.truncated": truncated and not terminated}]
        self.buffer.add(
            obs[None], next_obs[None], np.asarray(action)[None], np.array([reward], np.float32), done, infos
        )

    def extend(
        self, obs: Array, action: Array, reward: Array, next_obs: Array, terminated: Array, truncated: Array
    ) -> None:
        infos = [{"TimeLimit.truncated": flag} for flag in truncated.tolist()]
        self.buffer.add(obs, next_obs, action, reward, terminated | truncated, infos)

    def torch(self, count: int) -> dict[str, Any]:
        batch = self.buffer.sample(count)
        found = {"obs": batch.observations, "action": batch.actions, "reward": batch.rewards}
        found |= {"next_obs": batch.next_observations, "terminated": batch.dones}
        return found if batch.discounts is None else found | {"discount": batch.discounts}

    def numpy(self, count: int) -> dict[str, Array]:
        return {name: tensor.numpy() for name, tensor in self.torch(count).items()}


def ring(capacity: int, streams: int = 1) -> Ring:
    return Ring(ReplayBuffer(capacity, *CONTROL, device="cpu", n_envs=streams))


def nstep(capacity: int, n: int, gamma: float) -> Ring:
    return Ring(NStepReplayBuffer(capacity, *CONTROL, device="cpu", n_steps=n, gamma=gamma))


def frames(capacity: int) -> Ring:
    return Ring(ReplayBuffer(capacity, *SCREEN, device="cpu"))


def lean_frames(capacity: int) -> Ring:
    """One stack a step; this mode refuses to tell time limits from terminations."""
    options = {"optimize_memory_usage": True, "handle_timeout_termination": False}
    return Ring(ReplayBuffer(capacity, *SCREEN, device="cpu", **options))
