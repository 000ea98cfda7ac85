# ruff: noqa: D102, D103 - base.py says what each of these does
"""TensorDictReplayBuffer; kept once: Sequence(bootstrap=1); MultiStepTransform; SliceSampler; stacks whole.

CatFrames at sampling time, which would keep two frames a step, is not run.
"""

import warnings
from typing import Any

import numpy as np
import torch

from benchmarks.peers import Unsupported
from benchmarks.subjects import base
from benchmarks.subjects.base import Array, numbers, value

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tensordict import TensorDict
    from torchrl.data import (
        LazyTensorStorage,
        Sequence,
        SliceSampler,
        TensorDictPrioritizedReplayBuffer,
        TensorDictReplayBuffer,
    )
    from torchrl.envs.transforms import MultiStepTransform

PACKAGES = ("torchrl", "tensordict", "torch", "numpy")


class Ring(base.Ring):
    """Wraps each step in a TensorDict, as its collectors do."""

    def __init__(self, capacity: int, dtype: Any = np.float32, **options: Any) -> None:
        kind = options.pop("kind", TensorDictReplayBuffer)
        self.buffer = kind(storage=LazyTensorStorage(capacity), batch_size=options.pop("batch_size", 32), **options)
        self.dtype = dtype

    def step(self, obs: Any, action: Any, reward: Any, next_obs: Any, terminated: bool, truncated: bool) -> TensorDict:
        flags = {"terminated": terminated, "truncated": truncated, "done": terminated or truncated}
        later = {"observation": torch.as_tensor(next_obs), "reward": torch.tensor([reward], dtype=torch.float32)}
        later |= {name: torch.tensor([flag]) for name, flag in flags.items()}
        now = {"observation": torch.as_tensor(obs), "action": torch.tensor(action)}
        return TensorDict({**now, "next": TensorDict(later, [])}, [])

    def put(self, obs: Any, action: Any, reward: Any, next_obs: Any, terminated: bool, truncated: bool) -> None:
        self.buffer.add(self.step(obs, action, reward, next_obs, terminated, truncated))

    def draw(self, n: int) -> dict[str, Array]:
        batch = self.buffer.sample(n)
        later = batch["next"]
        found = {"obs": numbers(batch["observation"]), "next_obs": numbers(later["observation"])}
        found |= {"action": batch["action"].numpy(), "reward": later["reward"].numpy()}
        return found | {"stop": later["terminated"].numpy(), "where": batch["index"].numpy()}

    def arrays(self, n: int) -> list[Any]:
        batch = self.buffer.sample(n)
        return [batch["observation"], batch["action"], batch["next", "observation"], batch["next", "reward"]]

    def size(self) -> int:
        return len(self.buffer)


class Lean(Ring):
    """One observation a step; a sequence of one step and the observation to bootstrap from is drawn."""

    def step(self, obs: Any, action: Any, reward: Any, next_obs: Any, terminated: bool, truncated: bool) -> TensorDict:
        step = super().step(obs, action, reward, next_obs, terminated, truncated)
        return step.exclude(("next", "observation"))

    def draw(self, n: int) -> dict[str, Array]:
        pairs = self.buffer.sample(n)["observation"].reshape(n, 2, -1)
        return {"obs": numbers(pairs[:, 0]), "next_obs": numbers(pairs[:, 1])}


class NStep(Ring):
    """Several steps are added up as they come; its losses multiply by ``gamma ** steps_to_next_obs``."""

    def __init__(self, capacity: int, n: int, gamma: float) -> None:
        super().__init__(capacity, transform=MultiStepTransform(n_steps=n, gamma=gamma))
        self.gamma = gamma

    def put(self, obs: Any, action: Any, reward: Any, next_obs: Any, terminated: bool, truncated: bool) -> None:
        self.buffer.extend(self.step(obs, action, reward, next_obs, terminated, truncated)[None])

    def draw(self, n: int) -> dict[str, Array]:
        batch = self.buffer.sample(n)
        later = batch["next"]
        steps = batch["steps_to_next_obs"].numpy().ravel()
        factor = ~later["terminated"].numpy().ravel() * self.gamma**steps
        target = later["reward"].numpy().ravel() + factor * value(numbers(later["observation"]))
        return {"obs": numbers(batch["observation"]), "target": target}


class Stacks(base.Stacks, Ring):
    """Whole stacks."""

    def draw(self, n: int) -> dict[str, Array]:
        batch = self.buffer.sample(n)
        found = {"obs": numbers(batch["observation"], 2), "next_obs": numbers(batch["next", "observation"], 2)}
        return found | {"action": batch["action"].numpy()}


class Sequences(Ring):
    """Slices of trajectories, which come flat."""

    def __init__(self, capacity: int, length: int) -> None:
        sampler = SliceSampler(slice_len=length, end_key=("next", "done"), strict_length=True)
        super().__init__(capacity, sampler=sampler, batch_size=length)
        self.length = length

    def draw(self, n: int) -> dict[str, Array]:
        batch = self.buffer.sample(n * self.length)
        return {"obs": numbers(batch["observation"].reshape(n, self.length, -1), 2)}


class Priorities(base.Priorities, Ring):
    """Priorities go to places in the buffer."""

    def update(self, where: Any, priorities: Array) -> None:
        self.buffer.update_priority(torch.from_numpy(where), torch.from_numpy(priorities))


def _seeded(seed: int | None) -> dict[str, Any]:
    return {} if seed is None else {"generator": torch.Generator().manual_seed(seed)}


def ring(capacity: int, seed: int | None = None) -> Ring:
    return Ring(capacity, **_seeded(seed))


def lean(capacity: int) -> Ring:
    return Lean(capacity, sample_unit=Sequence(length=1, bootstrap=1, episode_boundary="pad"))


def pixels(capacity: int) -> Ring:
    return Ring(capacity, np.uint8)


def nstep(capacity: int, n: int, gamma: float) -> Ring:
    return NStep(capacity, n, gamma)


def stacks(capacity: int, k: int, side: int) -> Stacks:
    del k, side
    return Stacks(capacity, np.uint8)


def sequences(capacity: int, length: int) -> Ring:
    return Sequences(capacity, length)


def priorities(capacity: int, seed: int | None = None) -> Priorities:
    options = {"alpha": 1.0, "beta": 1.0, "priority_key": "td_error", **_seeded(seed)}
    try:
        return Priorities(capacity, kind=TensorDictPrioritizedReplayBuffer, **options)
    except Exception as error:
        raise Unsupported(f"priorities do not load here: {error}") from error


def big(nbytes: int) -> None:
    obs = np.zeros((84, 84, 4), np.uint8)
    Ring(nbytes // (2 * obs.nbytes), np.uint8).put(obs, 0, 0.0, obs, False, False)
