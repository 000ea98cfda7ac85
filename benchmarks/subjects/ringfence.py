# ruff: noqa: D102, D103 - base.py says what each of these does
"""This project: transitions and sequences, uniform or Prioritized."""

from typing import Any

import numpy as np

import ringfence as rf
from benchmarks.subjects import base
from benchmarks.subjects.base import WIDTH, Array, numbers, value

PACKAGES = ("ringfence", "numpy")


class Ring(base.Ring):
    """One step is one ``add``; what a view draws is what it says."""

    def __init__(self, schema: rf.Schema, capacity: int, seed: int | None = None, **view: Any) -> None:
        self.replay = rf.Replay(schema, capacity, seed=seed)
        self.view = self.replay.transitions(**view)

    def put(self, obs: Any, action: Any, reward: Any, next_obs: Any, terminated: Any, truncated: Any) -> None:
        self.replay.add(obs, action, reward, next_obs, terminated, truncated)

    def draw(self, n: int) -> dict[str, Array]:
        batch = self.view.sample(n)
        found = {"obs": numbers(batch.obs), "next_obs": numbers(batch.next_obs), "stop": batch.discount == 0}
        return found | {"action": batch.action, "reward": batch.reward, "where": batch.ids, "batch": batch}

    def arrays(self, n: int) -> list[Any]:
        batch = self.view.sample(n)
        return [batch.obs, batch.action, batch.reward, batch.next_obs]

    def size(self) -> int:
        return len(self.replay)


class Pixels(Ring):
    """Observations of bytes."""

    dtype = np.uint8


class NStep(Ring):
    """The target is what the batch says: return and discount."""

    def draw(self, n: int) -> dict[str, Array]:
        found = super().draw(n)
        batch = found["batch"]
        return found | {"target": batch.reward + batch.discount * value(found["next_obs"])}


class Stacks(base.Stacks, Ring):
    """Each frame is kept once; stacks come back on the axis where they were given."""

    def draw(self, n: int) -> dict[str, Array]:
        batch = self.view.sample(n)
        return {"obs": numbers(batch.obs, 2), "next_obs": numbers(batch.next_obs, 2), "action": batch.action}


class Sequences(Ring):
    """Windows inside one episode."""

    def __init__(self, schema: rf.Schema, capacity: int, length: int) -> None:
        super().__init__(schema, capacity, 0)
        self.view = self.replay.sequences(length)

    def draw(self, n: int) -> dict[str, Array]:
        return {"obs": numbers(self.view.sample(n).obs, 2)}


class Priorities(base.Priorities, Ring):
    """Updates carry ids, which tell the time of a step."""

    def update(self, where: Any, priorities: Array) -> None:
        self.view.update_priorities(where, priorities)


def schema(dtype: Any = np.float32) -> rf.Schema:
    return rf.Schema(obs=rf.Field((WIDTH,), dtype), action=rf.Field((), np.int64))


def ring(capacity: int, seed: int | None = None) -> Ring:
    return Ring(schema(), capacity, seed)


lean = ring


def pixels(capacity: int) -> Ring:
    return Pixels(schema(np.uint8), capacity)


def nstep(capacity: int, n: int, gamma: float) -> Ring:
    return NStep(schema(), capacity, 0, n_step=n, gamma=gamma)


def stacks(capacity: int, k: int, side: int) -> Stacks:
    frames = rf.Schema(obs=rf.Field((side, side), np.uint8, stack=k), action=rf.Field((), np.int64))
    return Stacks(frames, capacity, 0)


def sequences(capacity: int, length: int) -> Ring:
    return Sequences(schema(), capacity, length)


def priorities(capacity: int, seed: int | None = None) -> Priorities:
    return Priorities(schema(), capacity, seed, draw=rf.Prioritized(alpha=1.0, beta=1.0, eps=0.0))


def big(nbytes: int) -> None:
    shape = (nbytes // 2 // 1000,)
    replay = rf.Replay(rf.Schema(obs=rf.Field(shape, np.uint8), action=rf.Field((), np.int64)), 2000)
    replay.add(np.zeros(shape, np.uint8), 0, 0.0, np.zeros(shape, np.uint8), False)
