# ruff: noqa: D102, D103 - base.py and works.py say what each of these does
"""ringfence: this project."""

from typing import Any

import numpy as np

import ringfence as rf
from benchmarks.data import ACTION, FRAME, OBS, STACK, Array
from benchmarks.peers import base
from benchmarks.priorities import ALPHA, BETA
from benchmarks.screens import FIELDS, LENGTH, SCREEN
from ringfence.kernels import load

PACKAGES = ("ringfence", "numpy")


class Ring(base.Ring):
    """Adds and draws go straight to the library: raw values are what it takes, fields are what it gives."""

    fields = base.FIELDS

    def __init__(self, replay: Any, view: Any) -> None:
        self.replay = replay
        self.add, self.extend, self.sample = replay.add, replay.extend, view.sample

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        return int(self.replay.nbytes)

    def numpy(self, count: int) -> dict[str, Array]:
        batch = self.sample(count)
        return {name: getattr(batch, name) for name in self.fields}

    def torch(self, count: int) -> dict[str, Any]:
        batch = self.sample(count).torch()
        return {name: getattr(batch, name) for name in self.fields}


class NStepRing(Ring):
    """Also reads the discount, without which an n-step return is of no use."""

    fields = (*base.FIELDS, "discount")


class PrioritizedRing(Ring, base.PrioritizedRing):
    """Knows steps by their ids."""

    def __init__(self, replay: Any, view: Any) -> None:
        super().__init__(replay, view)
        self.view, self.update = view, view.update_priorities

    def numpy(self, count: int) -> dict[str, Array]:
        batch = self.sample(count)
        found = {name: getattr(batch, name) for name in self.fields}
        return found | {"at": batch.ids, "weights": batch.weights}

    def assign(self, priorities: Array) -> None:
        self.update(self.view.ids(), priorities)


class WindowRing(Ring, base.WindowRing):
    """Reads the fields that all peers have; first steps, masks and ids come with them."""

    fields = FIELDS


def steps(capacity: int, streams: int = 1) -> Any:
    schema = rf.Schema(obs=rf.Field((OBS,), np.float32), action=rf.Field((ACTION,), np.float32))
    return rf.Replay(schema, capacity, streams=streams, seed=0)


def ring(capacity: int, streams: int = 1) -> Ring:
    replay = steps(capacity, streams)
    return Ring(replay, replay)


def nstep(capacity: int, n: int, gamma: float) -> Ring:
    replay = steps(capacity)
    return NStepRing(replay, replay.transitions(n_step=n, gamma=gamma))


def frames(capacity: int) -> Ring:
    schema = rf.Schema(obs=rf.Field(FRAME, np.uint8, stack=STACK), action=rf.Field((), np.int64))
    replay = rf.Replay(schema, capacity, seed=0)
    return Ring(replay, replay)


def per(capacity: int, streams: int = 1) -> base.PrioritizedRing:
    replay = steps(capacity, streams)
    return PrioritizedRing(replay, replay.transitions(draw=rf.Prioritized(ALPHA, BETA)))


def pure_per(capacity: int, streams: int = 1) -> base.PrioritizedRing:
    """Build the same, but refuse to where the compiled loops would run."""
    if load.native is not None:
        raise RuntimeError("RINGFENCE_PURE=1 must be in the environment before ringfence is imported")
    return per(capacity, streams)


def views(capacity: int, streams: int, n: int, gamma: float) -> dict[str, Ring]:
    """Look at one ring in three ways."""
    replay = steps(capacity, streams)
    return {
        "uniform": Ring(replay, replay),
        "prioritized": PrioritizedRing(replay, replay.transitions(draw=rf.Prioritized(ALPHA, BETA))),
        "3-step": NStepRing(replay, replay.transitions(n_step=n, gamma=gamma)),
    }


def windows(capacity: int) -> base.WindowRing:
    schema = rf.Schema(obs=rf.Field(SCREEN, np.uint8), action=rf.Field((ACTION,), np.float32))
    replay = rf.Replay(schema, capacity, seed=0)
    return WindowRing(replay, replay.sequences(LENGTH))
