"""Forked readers share the ring: it is paid once, and they see what is added after the fork."""

from __future__ import annotations

import mmap
from multiprocessing import Pipe, get_context
from typing import Any

import numpy as np
import pytest
from tests.memory.measure import MIB, fresh, on_linux, usage

from ringfence.replay import Replay
from ringfence.schema import Field, Schema

pytestmark = on_linux

SCHEMA = Schema(obs=Field((17,), np.float32), action=Field((6,), np.float32), extras={"number": Field((), np.int64)})
STREAMS, EACH = 64, 8000
BATCH = 8192


def turn(replay: Replay, first: int, count: int) -> None:
    """Add ``count`` steps to each stream, whose content follows from their number."""
    action, never = np.zeros((STREAMS, 6), np.float32), np.zeros(STREAMS, bool)
    obs = np.zeros((STREAMS, 17), np.float32)
    for number in range(first, first + count):
        last = np.full(STREAMS, number % 100 == 99)
        numbers = np.full(STREAMS, number)
        replay.extend(obs + number, action, numbers / 2, obs + number + 1, last, never, number=numbers)


def look_around(replay: Replay) -> dict[str, Any]:
    """Sample until nearly every page of the ring was read; give the range of ids and what was wrong.

    A page holds 35 records: half as many draws as there are steps leave out one page in e ** 17.
    """
    numbers, wrong = [], 0
    for _ in range(replay.capacity // 2 // BATCH):
        batch = replay.sample(BATCH)
        numbers += [batch.number.min(), batch.number.max()]
        wrong += np.count_nonzero(batch.obs != batch.number[:, None])
        wrong += np.count_nonzero(batch.next_obs != batch.number[:, None] + 1)
        wrong += np.count_nonzero((batch.ids & (2**44 - 1)) != batch.number)
    return {"oldest": int(min(numbers)), "newest": int(max(numbers)), "wrong": int(wrong), "rss": usage().rss}


def work(replay: Replay, pipe: Any) -> None:
    """Read the whole ring whenever told to, until told to stop."""
    while pipe.recv():
        pipe.send(look_around(replay))


def tree(workers: int) -> dict[str, Any]:
    """Fork workers that read the ring before and after the parent turns it twice; give what all of them pay."""
    replay = Replay(SCHEMA, capacity=STREAMS * EACH, streams=STREAMS, seed=0)
    turn(replay, 0, EACH)
    replay.sample(BATCH)
    alone = usage()
    children = []
    for _ in range(workers):
        here, there = Pipe()
        child = get_context("fork").Process(target=work, args=(replay, there), daemon=True)
        child.start()
        children.append((child, here))

    def ask() -> list[dict[str, Any]]:
        answers = []
        for _, pipe in children:  # one after the other: two processors read no faster for being asked by eight
            pipe.send(True)
            answers.append(pipe.recv())
        return answers

    before = ask()
    turn(replay, EACH, 2 * EACH)
    after = ask()
    used = [usage(child.pid) for child, _ in children]
    own = usage()
    for child, pipe in children:
        pipe.send(False)
        child.join()
    return {
        "nbytes": replay.nbytes,
        "before": before,
        "after": after,
        "dirty": [one.dirty for one in used],
        "shmem": own.shmem + sum(one.shmem for one in used),
        "growth": own.pss + sum(one.pss for one in used) - alone.pss,
    }


@pytest.fixture(name="paid", scope="module")
def _paid() -> dict[str, Any]:
    """Run eight workers once, for all that is asked of them."""
    return fresh(tree, 8)


def test_eight_forked_readers_do_not_multiply_the_ring(paid):
    """Eight workers read all of a ring that turns twice; what they own is small, and the ring is paid once."""
    nbytes = paid["nbytes"]
    assert nbytes > 48 * MIB
    assert min(answer["rss"] for answer in paid["after"]) > nbytes, "they did not read it: nothing was tested"
    assert max(paid["dirty"]) < 8 * MIB, paid
    assert abs(paid["shmem"] - nbytes) < MIB, paid
    # eight rings would be eight times nbytes; half of one leaves room for the pages of Python that are counted twice
    assert paid["growth"] < sum(paid["dirty"]) + nbytes // 2, paid


def test_a_forked_reader_sees_what_is_added_after_the_fork(paid):
    """Steps that the parent adds later are what a worker draws, whole and under their own ids."""
    for answer in paid["before"]:
        assert answer["oldest"] >= 0
        assert answer["newest"] < EACH
        assert answer["wrong"] == 0
    for answer in paid["after"]:
        assert answer["oldest"] >= 2 * EACH, "older than all that is held"
        assert answer["newest"] == 3 * EACH - 1
        assert answer["wrong"] == 0


def private() -> dict[str, Any]:
    """Fork on a ring in a private mapping."""
    from ringfence.store import ram

    def committed(size: int) -> mmap.mmap:
        mapping = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        np.frombuffer(mapping, np.uint8)[:: mmap.PAGESIZE] = 0
        return mapping

    ram._committed = committed
    return tree(2)


def test_a_private_ring_is_noticed():
    """The measurements above see a ring that is copied page by page as it turns."""
    paid = fresh(private)

    assert paid["growth"] > 0.9 * paid["nbytes"]
    assert paid["after"][0]["newest"] < EACH
