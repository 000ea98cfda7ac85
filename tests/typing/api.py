"""The public API as typed callers write it. mypy checks this file; pytest does not collect it.

A value of a wrong type would be an error at its annotation. Each ``type: ignore`` marks what must be refused: mypy
complains of one that is not needed.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import ringfence as rf

Ids = NDArray[np.int64]


def describe() -> rf.Schema:
    """Declare a step: shapes as numbers or tuples, dtypes as NumPy takes them, nests of fields."""
    image = rf.Field((84, 84), np.uint8, stack=4, stack_axis=-1, pad="zero")
    state = rf.Field(17, "float32", stored=np.float16, finite=True)
    number: rf.Field = rf.Field((), np.int64)
    shape: tuple[int, ...] = image.presented
    kept: np.dtype[Any] = state.kept
    nbytes: int = image.nbytes + len(shape) + kept.itemsize
    extras: dict[str, rf.Field] = {"log_prob": rf.Field((), np.dtype(np.float32))}
    schema = rf.Schema(obs={"image": image, "pair": (state, state)}, action=number, extras=extras)
    stack: int = schema.stack + nbytes
    return schema if stack else rf.Schema(obs=image, action=(number,), reward=rf.Field([2], float))


def describe_environment(env: object, space: object) -> rf.Schema:
    """Describe what Gymnasium says of an environment; the core knows none of its classes."""
    schema: rf.Schema = rf.Schema.from_env(env, keep_float64=True)
    other: rf.Schema = rf.Schema.from_spaces(space, space, stack=4, stack_axis=-1, pad="first", extras=None)
    return schema if schema == other else other


def price(schema: rf.Schema) -> list[tuple[str, float, int, str]]:
    """Plan a ring and read the plan."""
    plan: rf.Plan = rf.plan(schema, capacity=1_000_000, budget="2 GiB", streams=8)
    limit: rf.MemoryLimit = rf.memory_limit()
    whole: int = plan.bytes + plan.capacity + plan.full_at + plan.fitting + limit.headroom
    step: float = plan.step_bytes + whole
    fits: bool = plan.fits and step > 0
    text: str = str(plan) + str(limit)
    names: list[str] = [line.name for line in plan.lines]
    return plan.rows() if fits and text else [(names[0], 0.0, 0, "")]


def build(schema: rf.Schema) -> rf.Replay:
    """Build rings in every way that is offered."""
    replay = rf.Replay(schema, capacity=1_000_000, streams=8, seed=0)
    replay = rf.Replay(schema, "1e6", seed=np.random.default_rng(0), store="ram")
    replay = rf.Replay(schema, budget="2 GiB", seed=np.random.SeedSequence(0), episode_length=100)
    figures: dict[str, Any] = replay.stats()
    count: int = len(replay) + replay.capacity + replay.nbytes + replay.streams + len(figures)
    lengths: list[int] = replay.episode_lengths(stream=count)
    known: rf.Schema = replay.schema
    plan: rf.Plan = replay.plan
    return replay if known is schema and plan.capacity and lengths else rf.Replay(known, 1)


def record(replay: rf.Replay, obs: NDArray[np.float32], tensor: object) -> Ids:
    """Add single steps and rows of them; values may be of any kind that becomes an array."""
    one: int = replay.add(obs, 1, 0.5, tensor, terminated=True, truncated=False, stream=3, log_prob=-1.0)
    one = replay.add(obs, np.int64(1), np.float32(0.5), [1.0, 2.0], np.bool_(False))
    ids: Ids = replay.extend(obs, obs, obs, obs, obs > 0, obs > 0, streams=[0, 2], log_prob=obs)
    held: NDArray[np.bool_] = replay.holds(ids)
    held = replay.holds([one])
    replay.cut()
    replay.cut(stream=1)
    replay.clear()
    return ids[held]


def learn(replay: rf.Replay) -> Iterator[Mapping[str, Any]]:
    """Sample, by attribute and by name, from the default view and from others."""
    view = replay.transitions(n_step=3, gamma=0.99, draw=rf.Uniform(seed=7))
    batch: rf.Batch = replay.sample(256)
    batch = view.sample(32)
    enough: bool = view.can_sample(64)
    every: Ids = view.ids()
    reward: NDArray[np.float32] = batch.reward
    names: list[str] = list(batch)
    by_name: dict[str, Any] = dict(batch)
    tensors: rf.Batch = batch.torch(device="cuda:0")
    yield {"names": names, "reward": reward, "ids": every, "enough": enough}
    yield by_name
    yield tensors


class Sampler(Protocol):
    """What a learner may ask of any view or replay."""

    def sample(self, count: int, /) -> rf.Batch:
        """Draw a batch."""
        ...


def samplers(replay: rf.Replay) -> list[Sampler]:
    """A replay and its views serve wherever something that samples is wanted."""
    return [replay, replay.transitions(), replay.transitions(5)]


def handle(error: Exception) -> str:
    """Each error is one of Python's own kinds, so that code that knows nothing of ours can catch it."""
    value: type[ValueError] = rf.SchemaError
    value = rf.NotEnoughData
    memory: type[MemoryError] = rf.BudgetExceeded
    runtime: type[RuntimeError] = rf.MemoryPressure
    system: type[OSError] = rf.CheckpointError
    return repr((value, memory, runtime, system, error, rf.__version__))


def mistakes(schema: rf.Schema, replay: rf.Replay) -> None:
    """What a type checker can refuse before the program runs, it does refuse."""
    rf.Field((3,), np.uint8, pad="edge")  # type: ignore[arg-type]
    rf.Field((3,), np.uint8, depth=4)  # type: ignore[call-arg]
    rf.Replay(schema, 10, store="disk")  # type: ignore[arg-type]
    rf.Replay(schema, 10, streams="2")  # type: ignore[arg-type]
    rf.Replay(schema, 10, 20)  # type: ignore[call-arg]
    rf.Replay(schema, 10, seed="a")  # type: ignore[arg-type]
    replay.add(1, 2, 3.0, 4)  # type: ignore[call-arg]
    replay.sample("3")  # type: ignore[arg-type]
    replay.transitions(n_step=1.5)  # type: ignore[arg-type]
    replay.transitions(draw=3)  # type: ignore[arg-type]
    replay.capacity = 5  # type: ignore[misc]
    rf.plan(schema, limit=3)  # type: ignore[arg-type]
    rf.Packed()  # type: ignore[attr-defined]
