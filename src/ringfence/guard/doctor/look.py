"""One look at the heap: what is kept of a walk so that the next one can be compared with it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ringfence.guard.doctor.branches import CACHE, LEAVES
from ringfence.guard.doctor.evidence import Sample
from ringfence.guard.doctor.graphs import nodes
from ringfence.guard.doctor.pages import resident
from ringfence.guard.doctor.walk import Walk

Key = tuple[int, str]
SIZED = (list, dict, set, frozenset, tuple, deque)


@dataclass(slots=True)
class Look:
    """The bytes below each object that is no sample, by identity and type; costs some 200 bytes for each of them."""

    sample: Sample
    below: dict[Key, float] = field(default_factory=dict)
    lengths: dict[Key, int] = field(default_factory=dict)
    resident: dict[Key, int] = field(default_factory=dict)
    graphs: dict[str, tuple[int, str]] = field(default_factory=dict)
    children: dict[int, tuple[int, int]] = field(default_factory=dict)

    def take(self, walk: Walk) -> None:
        """Note what a walk has seen."""
        for row, thing in enumerate(walk.things[: len(walk.figures)]):
            if walk.weights[row] == 1.0 and type(thing) not in LEAVES:
                key = key_of(thing)
                self.below[key] = walk.figures[row][0]
                count = length(thing)
                if count is not None:
                    self.lengths[key] = count
        for row in walk.big:
            place = address(walk.things[row])
            present = None if place is None else resident(*place)
            if present is not None:
                self.resident[key_of(walk.things[row])] = present
        seen: set[int] = set()
        for row in walk.graphs[:64]:
            count, operation = nodes(walk.things[row], seen)
            path = walk.path(row)
            before = self.graphs.get(path, (0, operation))[0]
            self.graphs[path] = (before + count, operation)


def key_of(thing: Any) -> Key:
    """Know an object again: by its address and its type, or by its storage if it is a tensor."""
    return id(thing), type(thing).__name__


def length(thing: Any) -> int | None:
    """Count the entries of a container."""
    if isinstance(thing, SIZED):
        return len(thing)
    return int(thing.cache_info().currsize) if type(thing) is CACHE else None


def address(thing: Any) -> tuple[int, int] | None:
    """Say where the data of an array or a tensor lies."""
    try:
        if isinstance(thing, np.ndarray):
            return thing.__array_interface__["data"][0], thing.nbytes
        storage = thing.untyped_storage()
        return int(storage.data_ptr()), int(storage.nbytes())
    except Exception:  # noqa: BLE001  # a tensor without a storage
        return None
