# ruff: noqa: D102, D103 - base.py says what each of these does
"""ReplayBuffer, PrioritizedReplayBuffer; frames as in its Atari examples; n steps by its algorithms' own function."""

from typing import Any

import numpy as np
import torch
from tianshou.algorithm.algorithm_base import Algorithm
from tianshou.data import Batch, PrioritizedReplayBuffer, ReplayBuffer

from benchmarks.subjects import base
from benchmarks.subjects.base import Array, Step, numbers, value

PACKAGES = ("tianshou", "torch", "numpy")


class Ring(base.Ring):
    """Wraps each step in a Batch."""

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
        rest = {"terminated": terminated, "truncated": truncated, "info": info or {}}
        self.buffer.add(Batch(obs=obs, act=action, rew=reward, obs_next=next_obs, **rest))

    def put_info(self, step: Step, info: dict[str, Any]) -> None:
        self.put(self.encode(step.obs), *step[1:3], self.encode(step.next_obs), *step[4:], info)

    def draw(self, n: int) -> dict[str, Array]:
        batch, where = self.buffer.sample(n)
        found = {"obs": numbers(batch.obs), "next_obs": numbers(batch.obs_next), "stop": batch.terminated}
        return found | {"action": batch.act, "reward": batch.rew, "where": where}

    def arrays(self, n: int) -> list[Any]:
        batch, _ = self.buffer.sample(n)
        return [batch.obs, batch.act, batch.rew, batch.obs_next]

    def size(self) -> int:
        return len(self.buffer)


class NStep(Ring):
    """The algorithms' own target, with the critic that the rule asks for."""

    def __init__(self, buffer: ReplayBuffer, n: int, gamma: float) -> None:
        super().__init__(buffer)
        self.n, self.gamma = n, gamma

    def draw(self, n: int) -> dict[str, Array]:
        batch, where = self.buffer.sample(n)
        found = {"obs": numbers(batch.obs)}

        def critic(buffer: ReplayBuffer, last: Array) -> torch.Tensor:
            return torch.from_numpy(value(numbers(buffer[last].obs_next)))

        Algorithm.compute_nstep_return(batch, self.buffer, where, critic, self.gamma, self.n)
        return found | {"target": batch.returns.numpy()}


class Stacks(base.Stacks, Ring):
    """Hands whole stacks over; the buffer keeps the last frame of each."""

    def draw(self, n: int) -> dict[str, Array]:
        batch, _ = self.buffer.sample(n)
        return {"obs": numbers(batch.obs, 2), "next_obs": numbers(batch.obs_next, 2), "action": batch.act}


class Priorities(base.Priorities, Ring):
    """Priorities go to places in the buffer."""

    def update(self, where: Any, priorities: Array) -> None:
        self.buffer.update_weight(where, priorities)


def _seeded(seed: int | None) -> dict[str, int]:
    return {} if seed is None else {"random_seed": seed}


def ring(capacity: int, seed: int | None = None) -> Ring:
    return Ring(ReplayBuffer(capacity, **_seeded(seed)))


def lean(capacity: int) -> Ring:
    return Ring(ReplayBuffer(capacity, ignore_obs_next=True))


def pixels(capacity: int) -> Ring:
    return Ring(ReplayBuffer(capacity), np.uint8)


def nstep(capacity: int, n: int, gamma: float) -> Ring:
    return NStep(ReplayBuffer(capacity), n, gamma)


def stacks(capacity: int, k: int, side: int) -> Stacks:
    del side
    return Stacks(ReplayBuffer(capacity, stack_num=k, save_only_last_obs=True, ignore_obs_next=True), np.uint8)


def priorities(capacity: int, seed: int | None = None) -> Priorities:
    return Priorities(PrioritizedReplayBuffer(capacity, alpha=1.0, beta=1.0, **_seeded(seed)))


def big(nbytes: int) -> None:
    obs = np.zeros((84, 84, 4), np.uint8)
    Ring(ReplayBuffer(nbytes // (2 * obs.nbytes))).put(obs, 0, 0.0, obs, False, False)
