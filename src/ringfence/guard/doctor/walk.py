"""A walk over what the script holds, from its modules and its running functions down, with the bytes below each object.

Nothing is changed and nothing kept: a walk refers to what it has seen until it is dropped, well within a second.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ringfence.guard.doctor.branches import LEAVES, branches, class_branches
from ringfence.guard.doctor.contents import Contents, tensor_class

MOST = 120_000  # objects; a walk of so many takes about half a second
BIG = 2**20  # bytes, from which on an array is a buffer that is watched by itself
HEADER, TENSOR = 112, 200  # bytes of an array and of a tensor beside their data
COLUMNS = ("nbytes", "arrays", "pictures", "pinned", "infos", "graphs")


@dataclass(slots=True)
class Walk:
    """What was reached: one row an object, parents before children."""

    user: Callable[[type], bool]
    """Tells whether a class is the script's own."""
    contents: Contents
    things: list[Any] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    rows: dict[int, int] = field(default_factory=dict)
    big: list[int] = field(default_factory=list)
    graphs: list[int] = field(default_factory=list)
    figures: Any = None
    """Below each row, itself included: bytes, and how many of them are what."""
    cut: bool = False

    def run(self, roots: Iterable[tuple[str, Any]]) -> Walk:
        """Walk from the roots, breadth first."""
        for label, thing in roots:
            self._reach(thing, -1, label, 1.0)
        own: list[tuple[float, ...]] = []
        tensor = tensor_class()
        row = 0
        while row < len(self.things):
            thing = self.things[row]
            own.append(self._measure(row, thing, tensor))
            if len(self.things) < MOST:
                self._descend(row, thing)
            else:
                self.cut = True
            row += 1
        self._sum(own)
        return self

    def _descend(self, row: int, thing: Any) -> None:
        cls = type(thing)
        if cls in LEAVES or issubclass(cls, (np.ndarray, np.generic)):
            if cls is np.ndarray and thing.dtype.hasobject:
                for value in thing.flat[:: max(1, thing.size // 64)]:
                    self._reach(value, row, "[...]", self.weights[row] * max(1, thing.size // 64))
            return
        found = branches(thing) if not issubclass(cls, type) else class_branches(thing) if self.user(thing) else ()
        for label, value, share in found:
            self._reach(value, row, label, self.weights[row] * share)

    def _reach(self, thing: Any, parent: int, label: str, weight: float) -> None:
        if thing is None or thing is True or thing is False or id(thing) in self.rows:
            return
        cls = type(thing)
        if issubclass(cls, type) and not self.user(thing):
            return
        if cls.__module__.startswith("ringfence.guard.doctor"):
            return
        self.rows[id(thing)] = len(self.things)
        self.things.append(thing)
        self.parents.append(parent)
        self.labels.append(label)
        self.weights.append(weight)

    def _measure(self, row: int, thing: Any, tensor: type | None) -> tuple[float, ...]:
        """Give the bytes of one object alone, and what they are."""
        cls = type(thing)
        if issubclass(cls, np.ndarray):
            return self._array(row, thing)
        if tensor is not None and issubclass(cls, tensor):
            return self._tensor(row, thing)
        try:
            nbytes = sys.getsizeof(thing)
        except Exception:  # noqa: BLE001  # a class may compute its size, and fail
            nbytes = 64
        return nbytes, 0, 0, 0, float(issubclass(cls, dict) and self.contents.is_info(thing)), 0

    def _array(self, row: int, array: Any) -> tuple[float, ...]:
        nbytes, pinned = self.contents.array(array, lambda base: id(base) in self.rows)
        if nbytes >= BIG or (array.nbytes >= BIG and not isinstance(array.base, np.ndarray)):
            self.big.append(row)
        pictures = nbytes if self.contents.is_picture(array) else 0
        return nbytes + HEADER, nbytes + HEADER, pictures, pinned, 0, 0

    def _tensor(self, row: int, tensor: Any) -> tuple[float, ...]:
        nbytes, pinned, graph = self.contents.tensor(tensor)
        if nbytes >= BIG:
            self.big.append(row)
        if graph:
            self.graphs.append(row)
        return nbytes + TENSOR, nbytes + TENSOR, 0, pinned, 0, float(graph)

    def _sum(self, own: list[tuple[float, ...]]) -> None:
        table = np.array(own, np.float64).reshape(len(own), len(COLUMNS)) * np.array(self.weights[: len(own)])[:, None]
        below = table.tolist()
        for row in range(len(below) - 1, -1, -1):
            parent = self.parents[row]
            if parent >= 0:
                above, mine = below[parent], below[row]
                for column in range(len(COLUMNS)):
                    above[column] += mine[column]
        self.figures = below

    def path(self, row: int) -> str:
        """Say how an object is reached."""
        labels = []
        while row >= 0:
            labels.append(self.labels[row])
            row = self.parents[row]
        return "".join(reversed(labels)).strip()

    def ancestors(self, row: int) -> list[int]:
        """Give the rows that lead to an object, itself first."""
        found = []
        while row >= 0:
            found.append(row)
            row = self.parents[row]
        return found
