"""What `nbytes` says is what the process pays, all of it from the start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.memory.measure import MIB, fresh, on_linux, usage

from ringfence.replay import Replay
from ringfence.schema import Field, Schema

pytestmark = on_linux

SMALL = Schema(obs=Field((17,), np.float32), action=Field((6,), np.float32))
ATARI = Schema(obs=Field((84, 84), np.uint8, stack=4), action=Field((), np.int64))
MIXED = Schema(
    obs={"image": Field((64, 64, 3), np.uint8), "state": (Field((5,), np.float64, stored=np.float32), Field((), bool))},
    action=Field((2,), np.float32),
    extras={"log_prob": Field((), np.float32), "hidden": Field((300,), np.float32)},
)
RINGS: dict[str, tuple[Schema, int, int]] = {
    "small records": (SMALL, 350_000, 1),
    "Atari frames, stack of 4": (ATARI, 8_000, 1),
    "Atari frames, 64 streams": (ATARI, 6_400, 64),
    "64 streams": (SMALL, 640_000, 64),
    "very many very short streams": (SMALL, 65_536, 16_384),
    "columns and records": (MIXED, 4_000, 1),
}


def zeros(fields: Any, *lead: int) -> Any:
    """Give zeros of this nesting, with these axes in front."""
    if isinstance(fields, dict):
        return {key: zeros(part, *lead) for key, part in fields.items()}
    if isinstance(fields, tuple):
        return tuple(zeros(part, *lead) for part in fields)
    return np.zeros((*lead, *fields.shape), fields.kept)


def step(schema: Schema, *lead: int) -> dict[str, Any]:
    """Give a step of zeros."""
    parts = {"obs": schema.obs, "action": schema.action, "reward": schema.reward, "next_obs": schema.obs}
    ends = {"terminated": np.zeros(lead, bool), "truncated": np.zeros(lead, bool)}
    return zeros({**parts, **schema.extras}, *lead) | ends


def fill(replay: Replay) -> None:
    """Turn a ring once; the last step of every hundred ends the episode."""
    one, wide = step(replay.schema), step(replay.schema, replay.streams)
    for number in range(replay.capacity // replay.streams + 1):
        end = number % 100 == 99
        if replay.streams == 1:
            replay.add(**{**one, "terminated": end, "truncated": False})
        else:
            replay.extend(**{**wide, "truncated": np.full(replay.streams, end)})


def life(name: str) -> dict[str, int]:
    """Make a ring and fill it; give what the process paid for each."""
    schema, capacity, streams = RINGS[name]
    small = Replay(schema, capacity=4 * streams, streams=streams, seed=0)
    fill(small)
    small.sample(8)  # what Python loads and keeps for a first ring is no ring
    before = usage()
    replay = Replay(schema, capacity=capacity, streams=streams, seed=0)
    made = usage()
    fill(replay)
    filled = usage()
    return {
        "nbytes": replay.nbytes,
        "planned": replay.plan.bytes,
        "rss": made.rss - before.rss,
        "shmem": made.shmem - before.shmem,
        "filling": filled.rss - made.rss,
        "heap": filled.anonymous - before.anonymous,
        "size": len(replay),
    }


@pytest.mark.parametrize("name", RINGS)
def test_the_process_pays_what_nbytes_says_and_pays_it_at_once(name):
    """Making a ring takes `nbytes` within 2 %, the plan said so to the byte, and filling it takes nothing."""
    paid = fresh(life, name)

    nbytes = paid["nbytes"]
    assert nbytes > 32 * MIB  # less would drown in what Python itself takes
    assert paid["planned"] == nbytes
    assert paid["size"] == RINGS[name][1]
    assert abs(paid["rss"] - nbytes) <= 0.02 * nbytes, paid
    assert paid["shmem"] == nbytes, paid
    assert paid["filling"] <= MIB // 2, paid
    assert paid["heap"] <= MIB, paid


def lazy(name: str) -> dict[str, int]:
    """Live as above on a mapping that nothing was written to."""
    import mmap

    from ringfence.store import ram

    ram._committed = lambda size: mmap.mmap(-1, size)
    return life(name)


def test_a_mapping_that_is_not_committed_is_noticed():
    """The measurement above sees a ring that the kernel hands over only when it is written."""
    paid = fresh(lazy, "Atari frames, stack of 4")

    assert paid["rss"] < 0.1 * paid["nbytes"]
    assert paid["filling"] > 0.9 * paid["nbytes"]
