"""Steps of a schema that has one of everything, and the proof that a refused one changed nothing."""

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from ringfence import Field, Replay, Schema, SchemaError

STREAMS = 4
SCHEMA = Schema(
    obs={
        "image": Field((6, 6), np.uint8, stack=4, stack_axis=-1),
        "vector": Field((4, 3), np.float32),
        "half": Field((2,), np.float32, stored=np.float16),
        "pixel": Field((), np.uint8),
        "exact": Field((3,), np.float64, finite=True),
        "pair": (Field((5,), np.int64, stored=np.int16), Field((), np.bool_)),
    },
    action=Field((), np.int64),
    extras={"log_prob": Field((), np.float32, finite=True), "hidden": Field((200,), np.float32)},
)


def step(tag: int) -> dict[str, Any]:
    """Give a good step, each value a function of its number; its observation continues the step before."""
    return {
        "obs": observation(tag),
        "action": np.int64(tag % 5),
        "reward": np.float32(tag / 4),
        "next_obs": observation(tag + 1),
        "terminated": tag % 7 == 6,
        "truncated": False,
        "log_prob": np.float32(-tag),
        "hidden": np.full(200, tag, np.float32),
    }


def observation(tag: int) -> dict[str, Any]:
    """Give a good observation; of the stack, only the newest frame is given."""
    return {
        "image": np.full((6, 6), tag % 256, np.uint8),
        "vector": np.arange(12, dtype=np.float32).reshape(4, 3) + tag,
        "half": np.array([tag, -tag], np.float32),
        "pixel": np.uint8(tag % 256),
        "exact": np.array([tag, 0.1, -0.1]),
        "pair": (np.arange(5) - tag, np.bool_(tag % 2)),
    }


def rows(tag: int) -> dict[str, Any]:
    """Give one good step of every stream."""
    return merged(lambda *parts: np.stack(parts), *(step(tag + 10 * stream) for stream in range(STREAMS)))


def merged(join: Callable[..., Any], *trees: Any) -> Any:
    """Join equal nests leaf by leaf."""
    if isinstance(trees[0], dict):
        return {key: merged(join, *(tree[key] for tree in trees)) for key in trees[0]}
    if isinstance(trees[0], tuple):
        return tuple(merged(join, *parts) for parts in zip(*trees, strict=True))
    return join(*trees)


def replaced(given: Any, path: str, value: Any) -> Any:
    """Give the same nest with another value at a dotted path."""
    key, _, rest = path.partition(".")
    if isinstance(given, tuple):
        parts = list(given)
        parts[int(key)] = replaced(parts[int(key)], rest, value) if rest else value
        return tuple(parts)
    return {**given, key: replaced(given[key], rest, value) if rest else value}


def part(given: Any, path: str) -> Any:
    """Give what a nest holds at a dotted path."""
    for key in path.split("."):
        given = given[int(key)] if isinstance(given, tuple) else given[key]
    return given


def filled(count: int = 9) -> Replay:
    """Build a ring of four streams that has wrapped around and ended episodes, with one open in each."""
    replay = Replay(SCHEMA, capacity=6 * STREAMS, streams=STREAMS, seed=0)
    for tag in range(count):
        replay.extend(**rows(tag))
    return replay


def state(replay: Replay) -> dict[str, Any]:
    """Take down all that an add could change: the counts, each byte of the ring, and what the writers keep aside."""
    return {
        "len": len(replay),
        "stats": replay.stats(),
        "lengths": [replay.episode_lengths(stream) for stream in range(replay.streams)],
        "ids": replay.transitions().ids().tolist(),
        "ring": hashlib.sha256(replay._store._map[:]).hexdigest(),
        "open": replay._writer._open.tolist(),
    }


@contextlib.contextmanager
def refused(replay: Replay, *words: str) -> Iterator[None]:
    """Demand a SchemaError that begins with the first words, holds the others, and left everything as it was."""
    before = state(replay)
    with pytest.raises(SchemaError, match="^" + re.escape(words[0])) as refusal:
        yield
    text = str(refusal.value)
    assert not [word for word in words if word not in text], text
    assert state(replay) == before
