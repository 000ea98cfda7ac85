# ruff: noqa: D102, D103 - base.py says what each of these does
"""ReplayBuffer (next_of, stack_compress, Nstep) and PrioritizedReplayBuffer (check_for_update), told of each end."""

from typing import Any

import numpy as np
from cpprb import PrioritizedReplayBuffer, ReplayBuffer

from benchmarks.peers import Unsupported
from benchmarks.subjects import base
from benchmarks.subjects.base import WIDTH, Array, numbers, value

PACKAGES = ("cpprb", "numpy")
REST = {"action": {"dtype": np.int64}, "reward": {}, "done": {"dtype": np.bool_}, "truncated": {"dtype": np.bool_}}
VECTOR = {"obs": {"shape": WIDTH}, "next_obs": {"shape": WIDTH}}
BYTES = {name: {"shape": WIDTH, "dtype": np.uint8} for name in VECTOR}


class Ring(base.Ring):
    """``done`` is told for terminations alone, so that a truncated step is bootstrapped."""

    def __init__(self, buffer: ReplayBuffer, dtype: Any = np.float32) -> None:
        self.buffer, self.dtype = buffer, dtype

    def put(self, obs: Any, action: Any, reward: Any, next_obs: Any, terminated: bool, truncated: bool) -> None:
        rest = {"done": terminated, "truncated": truncated}
        self.buffer.add(obs=obs, action=action, reward=reward, next_obs=next_obs, **rest)
        if terminated or truncated:
            self.buffer.on_episode_end()

    def draw(self, n: int) -> dict[str, Array]:
        batch = self.buffer.sample(n)
        found = {"obs": numbers(batch["obs"]), "next_obs": numbers(batch["next_obs"]), "stop": batch["done"]}
        return found | {"action": batch["action"], "reward": batch["reward"], "where": batch.get("indexes")}

    def arrays(self, n: int) -> list[Any]:
        batch = self.buffer.sample(n)
        return [batch[name] for name in ("obs", "action", "reward", "next_obs")]

    def size(self) -> int:
        return int(self.buffer.get_stored_size())


class NStep(Ring):
    """Discounts, where the buffer gives them; else ``gamma ** n``, as its manual says."""

    def __init__(self, buffer: ReplayBuffer, n: int, gamma: float) -> None:
        super().__init__(buffer)
        self.discount = gamma**n

    def draw(self, n: int) -> dict[str, Array]:
        batch = self.buffer.sample(n)
        factor = (1 - batch["done"].ravel()) * batch.get("discounts", np.full((n, 1), self.discount)).ravel()
        target = batch["reward"].ravel() + factor * value(numbers(batch["next_obs"]))
        return {"obs": numbers(batch["obs"]), "target": target}


class Stacks(base.Stacks, Ring):
    """Stacks have their frames on the last axis."""

    def stack(self, frames: tuple[int, ...]) -> Array:
        return np.moveaxis(super().stack(frames), 0, -1)

    def draw(self, n: int) -> dict[str, Array]:
        batch = self.buffer.sample(n)
        found = {name: numbers(np.moveaxis(batch[name], -1, 1), 2) for name in ("obs", "next_obs")}
        return found | {"action": batch["action"]}


class Priorities(base.Priorities, Ring):
    """With the check for steps that were overwritten since they were drawn."""

    def update(self, where: Any, priorities: Array) -> None:
        self.buffer.update_priorities(where, priorities)


def ring(capacity: int, seed: int | None = None) -> Ring:
    if seed is not None:
        raise Unsupported("has no seed: NumPy's global generator decides")
    return Ring(ReplayBuffer(capacity, VECTOR | REST))


def lean(capacity: int) -> Ring:
    return Ring(ReplayBuffer(capacity, {"obs": VECTOR["obs"]} | REST, next_of="obs"))


def pixels(capacity: int) -> Ring:
    return Ring(ReplayBuffer(capacity, BYTES | REST), np.uint8)


def nstep(capacity: int, n: int, gamma: float) -> Ring:
    options = {"size": n, "gamma": gamma, "rew": "reward", "next": "next_obs"}
    return NStep(ReplayBuffer(capacity, VECTOR | REST, Nstep=options), n, gamma)


def stacks(capacity: int, k: int, side: int) -> Stacks:
    frames = {"obs": {"shape": (side, side, k), "dtype": np.uint8}}
    return Stacks(ReplayBuffer(capacity, frames | REST, next_of="obs", stack_compress="obs"), np.uint8)


def priorities(capacity: int, seed: int | None = None) -> Priorities:
    if seed is not None:
        raise Unsupported("has no seed: the operating system's entropy decides")
    return Priorities(PrioritizedReplayBuffer(capacity, VECTOR | REST, alpha=1.0, check_for_update=True))


def big(nbytes: int) -> None:
    frame = {"shape": (84, 84, 4), "dtype": np.uint8}
    buffer = ReplayBuffer(nbytes // (2 * 84 * 84 * 4), {"obs": frame, "next_obs": frame})
    buffer.add(obs=np.zeros((84, 84, 4), np.uint8), next_obs=np.zeros((84, 84, 4), np.uint8))
