# ruff: noqa: D102, D103 - base.py and works.py say what each of these does
"""The buffer everyone has written once: one zeros array a field, random indices, fancy indexing."""

from typing import Any

import numpy as np

from benchmarks.data import ACTION, FRAME, OBS, STACK, Array
from benchmarks.peers import base
from benchmarks.screens import LENGTH, SCREEN

PACKAGES = ("numpy",)


class Ring(base.Ring):
    """No episode ends, no checks: a floor for what plain NumPy costs."""

    def __init__(self, capacity: int, streams: int, obs: tuple[int, ...], action: tuple[int, ...], dtype: str) -> None:
        act_dtype = "f4" if action else "i8"
        flags = {"terminated": ((), "?"), "truncated": ((), "?")}
        shapes = {"obs": (obs, dtype), "action": (action, act_dtype), "reward": ((), "f4"), "next_obs": (obs, dtype)}
        self.capacity = capacity // streams * streams
        self.arrays = {
            name: np.zeros((self.capacity, *shape), kind) for name, (shape, kind) in (shapes | flags).items()
        }
        self.columns = tuple(self.arrays.values())
        self.at, self.full, self.rng = 0, False, np.random.default_rng(0)
        self.nbytes = sum(array.nbytes for array in self.columns)

    def add(self, *row: Any) -> None:
        at, columns = self.at, self.columns
        columns[0][at], columns[1][at], columns[2][at], columns[3][at], columns[4][at], columns[5][at] = row
        self.moved(1)

    def extend(self, *rows: Array) -> None:
        at = slice(self.at, self.at + len(rows[0]))
        for column, values in zip(self.columns, rows, strict=True):
            column[at] = values
        self.moved(len(rows[0]))

    def moved(self, count: int) -> None:
        self.at += count
        if self.at == self.capacity:
            self.at, self.full = 0, True

    def numpy(self, count: int) -> dict[str, Array]:
        at = self.rng.integers(0, self.capacity if self.full else self.at, count)
        return {name: array[at] for name, array in self.arrays.items()}


def ring(capacity: int, streams: int = 1) -> Ring:
    return Ring(capacity, streams, (OBS,), (ACTION,), "f4")


def frames(capacity: int) -> Ring:
    return Ring(capacity, 1, (STACK, *FRAME), (), "u1")


class WindowRing(base.WindowRing):
    """Takes consecutive rows, whatever lies between them; only the newest and the oldest never meet."""

    def __init__(self, capacity: int) -> None:
        shapes = {"obs": (SCREEN, "u1"), "action": ((ACTION,), "f4"), "reward": ((), "f4")}
        shapes |= {"terminated": ((), "?"), "truncated": ((), "?")}
        self.capacity = capacity
        self.arrays = {name: np.zeros((capacity, *shape), kind) for name, (shape, kind) in shapes.items()}
        self.count, self.rng = 0, np.random.default_rng(0)
        self.nbytes = sum(array.nbytes for array in self.arrays.values())

    def add(self, obs: Array, action: Any, reward: float, _next_obs: Array, terminated: bool, truncated: bool) -> None:
        at, row = self.count % self.capacity, (obs, action, reward, terminated, truncated)
        for array, value in zip(self.arrays.values(), row, strict=True):
            array[at] = value
        self.count += 1

    def numpy(self, count: int) -> dict[str, Array]:
        held = min(self.count, self.capacity)
        first = self.count - held + self.rng.integers(0, held - LENGTH + 1, count)
        rows = (first[:, None] + np.arange(LENGTH)) % self.capacity
        return {name: np.take(array, rows, axis=0) for name, array in self.arrays.items()}


def windows(capacity: int) -> base.WindowRing:
    return WindowRing(capacity)
