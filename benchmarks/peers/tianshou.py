# ruff: noqa: D102, D103 - base.py and works.py say what each of these does
"""tianshou: ReplayBuffer, VectorReplayBuffer, frame stacking and the n-step return of its algorithms."""

from typing import Any

import numpy as np
import torch
from tianshou.algorithm.algorithm_base import Algorithm
from tianshou.data import Batch, PrioritizedReplayBuffer, ReplayBuffer, VectorReplayBuffer

from benchmarks.data import STACK, Array, Frames, Steps
from benchmarks.peers import base
from benchmarks.priorities import ALPHA, BETA

PACKAGES = ("tianshou", "torch", "numpy")
COLUMNS = ("obs", "act", "rew", "obs_next", "terminated", "truncated", "done")


class Ring(base.Ring):
    """Wraps each step in a Batch; so does `extend`."""

    def __init__(self, buffer: ReplayBuffer) -> None:
        self.buffer = buffer

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        return sum(getattr(self.buffer, name).nbytes for name in COLUMNS)

    def add(self, obs: Array, action: Any, reward: Any, next_obs: Array, terminated: Any, truncated: Any) -> None:
        flags = {"terminated": terminated, "truncated": truncated}
        self.buffer.add(Batch(obs=obs, act=action, rew=reward, obs_next=next_obs, **flags))

    extend = add

    def fill(self, data: Steps | Frames) -> None:
        """One stream at full size goes in whole, as from a file: step by step it takes half a minute."""
        if not isinstance(data, Steps) or data.streams > 1 or len(data) != self.buffer.maxsize:
            super().fill(data)
            return
        obs, action, reward, next_obs, terminated, truncated = (column.copy() for column in data.fields)
        flags = {"terminated": terminated, "truncated": truncated, "done": terminated | truncated}
        self.buffer = ReplayBuffer.from_data(obs, action, reward.astype(np.float64), obs_next=next_obs, **flags)
        self.buffer.last_index[0] = len(data) - 1  # from_data leaves it at 0, which cuts the n-step windows there

    def numpy(self, count: int) -> dict[str, Array]:
        batch, _ = self.buffer.sample(count)
        found = {"obs": batch.obs, "action": batch.act, "reward": batch.rew, "next_obs": batch.obs_next}
        return found | {"terminated": batch.terminated, "truncated": batch.truncated}


class NStepRing(Ring):
    """The return comes with a target value; the target's callback is where the last next observation is read."""

    def __init__(self, buffer: ReplayBuffer, n: int, gamma: float) -> None:
        super().__init__(buffer)
        self.n, self.gamma = n, gamma

    def numpy(self, count: int) -> dict[str, Array]:
        batch, at = self.buffer.sample(count)
        found = {"obs": batch.obs, "action": batch.act}
        nothing = torch.zeros(count)

        def target(buffer: ReplayBuffer, last: Array) -> torch.Tensor:
            found["next_obs"] = buffer.obs_next[last]
            found["terminated"], found["truncated"] = buffer.terminated[last], buffer.truncated[last]
            return nothing.clone()

        Algorithm.compute_nstep_return(batch, self.buffer, at, target, self.gamma, self.n)
        return found | {"reward": batch.returns.numpy()}


class PrioritizedRing(Ring, base.PrioritizedRing):
    """Reads weights with the batch; its tree is compiled by numba at the first call."""

    def fill(self, data: Steps | Frames) -> None:
        """Move the rows of a plain buffer, which can take them whole, into the prioritized one."""
        buffer = self.buffer
        super().fill(data)
        plain = self.buffer
        if plain is not buffer:
            buffer.set_batch(plain._meta)  # noqa: SLF001 - `from_data` cannot make a prioritized one
            buffer._size, buffer.last_index = len(data), plain.last_index  # noqa: SLF001
            buffer.init_weight(np.arange(len(data)))
            self.buffer = buffer

    def numpy(self, count: int) -> dict[str, Array]:
        batch, at = self.buffer.sample(count)
        found = {"obs": batch.obs, "action": batch.act, "reward": batch.rew, "next_obs": batch.obs_next}
        found |= {"terminated": batch.terminated, "truncated": batch.truncated}
        return found | {"at": at, "weights": batch.weight}

    def update(self, at: Array, priorities: Array) -> None:
        self.buffer.update_weight(at, priorities)


def ring(capacity: int, streams: int = 1) -> Ring:
    return Ring(ReplayBuffer(capacity) if streams == 1 else VectorReplayBuffer(capacity, streams))


def nstep(capacity: int, n: int, gamma: float) -> Ring:
    return NStepRing(ReplayBuffer(capacity), n, gamma)


def frames(capacity: int) -> Ring:
    """One frame for each observation: two a step."""
    return Ring(ReplayBuffer(capacity, stack_num=STACK, save_only_last_obs=True))


def lean_frames(capacity: int) -> Ring:
    """One frame a step, the next observation read from the step that follows."""
    return Ring(ReplayBuffer(capacity, stack_num=STACK, save_only_last_obs=True, ignore_obs_next=True))


def per(capacity: int, _streams: int = 1) -> base.PrioritizedRing:
    return PrioritizedRing(PrioritizedReplayBuffer(capacity, ALPHA, BETA))
