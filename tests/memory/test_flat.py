"""Memory does not move while a ring is used, whatever is done with it and for how long."""

from __future__ import annotations

import collections
import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.memory.measure import MIB, fresh, on_linux, usage

from ringfence.errors import SchemaError
from ringfence.replay import Replay
from ringfence.schema import Field, Schema

pytestmark = on_linux

SCHEMA = Schema(obs=Field((17,), np.float32), action=Field((6,), np.float32))
LENGTH = 1000
Rows = list[tuple[Any, ...]]


def rows(length: int = LENGTH) -> Rows:
    """Make one episode of steps, and pass it round after round: the arrays exist beforehand."""
    obs = np.random.default_rng(0).normal(size=(length + 1, 17)).astype(np.float32)
    action = np.zeros(6, np.float32)
    return [(obs[at], action, 0.5, obs[at + 1], at + 1 == length) for at in range(length)]


def add(replay: Replay, steps: Rows, count: int) -> None:
    """Add ``count`` steps."""
    for _ in range(count // len(steps)):
        for step in steps:
            replay.add(*step)


def full(capacity: int, streams: int = 1, steps: Rows | None = None) -> Replay:
    """Make a ring that has turned once."""
    replay = Replay(SCHEMA, capacity=capacity, streams=streams, seed=0)
    if streams == 1:
        add(replay, steps or rows(), capacity + LENGTH)
    return replay


def growth(work: Callable[[int], None], rounds: int) -> dict[str, int]:
    """Do a tenth of some work, then all of it; give what the second time added."""
    work(rounds // 10)
    gc.collect()
    before = usage()
    work(rounds)
    gc.collect()
    after = usage()
    return {"rss": after.rss - before.rss, "heap": after.anonymous - before.anonymous}


def three_million() -> dict[str, Any]:
    """Fill a ring of a million, then turn it three times."""
    steps = rows()
    replay = full(10**6, steps=steps)
    before = usage()
    add(replay, steps, 3 * 10**6)
    return {"rss": usage().rss - before.rss, "size": len(replay), "early": replay.stats()["early"]}


def test_three_million_adds_to_a_full_ring_of_a_million_move_nothing():
    """Three turns of a full ring of a million small records move resident memory by less than a MiB."""
    assert_flat(paid := fresh(three_million))
    assert paid["size"] == 10**6
    assert paid["early"] == 0


def samples() -> dict[str, int]:
    """Add and sample by turns; read every field, and keep the last few batches, as a queue of a learner does."""
    steps, replay = rows(), full(100_000)
    view = replay.transitions(n_step=3)
    kept: collections.deque[Any] = collections.deque(maxlen=8)

    def work(rounds: int) -> None:
        for _ in range(rounds):
            add(replay, steps, 1000)
            for sample in (replay.sample, view.sample):
                batch = sample(256)
                kept.append((batch, dict(batch)))

    return growth(work, 300)


def test_batches_that_are_read_kept_and_dropped_leave_nothing():
    """Adding 300 thousand steps while batches are drawn, kept for a while and dropped takes no memory."""
    assert_flat(fresh(samples))


def frames() -> dict[str, int]:
    """Draw stacks of frames in batches of several sizes, from two views, and keep the last few."""
    schema = Schema(obs=Field((84, 84), np.uint8, stack=4), action=Field((), np.int64))
    replay = Replay(schema, capacity=500, seed=0)
    for number in range(1000):
        replay.add(np.full((84, 84), number % 256), 0, 0.0, np.full((84, 84), (number + 1) % 256), number % 100 == 99)
    views = [replay, replay.transitions(n_step=3)]
    kept: collections.deque[Any] = collections.deque(maxlen=3)

    def work(rounds: int) -> None:
        for number in range(rounds):
            for view in views:
                batch = view.sample((8, 32, 100)[number % 3])
                kept.append(batch.next_obs if number % 2 else dict(batch))

    return growth(work, 600)


def test_stacks_of_frames_that_are_kept_and_dropped_leave_nothing():
    """Over a thousand batches of frames, of three sizes by turns, take no more memory than the first hundred did."""
    paid = fresh(frames)

    assert paid["rss"] < 4 * MIB, paid  # which sizes lie ready to be used again is chance


def hoard() -> dict[str, int]:
    """Keep many batches, then let them go."""
    replay = full(100_000)
    dict(replay.sample(4096))
    before = usage()
    kept = [replay.sample(4096) for _ in range(40)]
    unread = usage().rss - before.rss
    nbytes = sum(array.nbytes for batch in kept for array in dict(batch).values())
    read = usage().rss - before.rss
    kept.clear()
    return {"unread": unread, "read": read, "nbytes": nbytes, "left": usage().rss - before.rss}


def test_a_batch_that_is_kept_costs_its_own_bytes_and_no_more():
    """Kept batches take their fields and the copy that these are cut from; all of it goes when they go."""
    paid = fresh(hoard)

    assert paid["unread"] < 1.5 * paid["nbytes"], paid
    assert paid["read"] < 2.5 * paid["nbytes"], paid
    assert abs(paid["left"]) < 4 * MIB, paid


def streams() -> dict[str, int]:
    """Add to 64 streams at once, to some of them, and to one; some end at every step."""
    replay = full(64_000, streams=64)
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(101, 64, 17)).astype(np.float32)
    action, reward, never = np.zeros((64, 6), np.float32), np.zeros(64, np.float32), np.zeros(64, bool)
    some = np.arange(0, 64, 3)

    def work(rounds: int) -> None:
        for number in range(rounds):
            now, after = obs[number % 100], obs[number % 100 + 1]
            end = (np.arange(64) + number) % 100 == 0
            replay.extend(now, action, reward, after, end, never)
            replay.extend(after[some], action[some], reward[some], now[some], never[some], never[some], streams=some)
            replay.add(now[5], action[5], 0.5, after[5], False, stream=5)

    return growth(work, 3000)


def test_many_streams_leave_nothing():
    """Hundreds of thousands of steps of 64 streams, with ends and breaks at every call, take no memory."""
    assert_flat(fresh(streams))


def one_step_episodes(capacity: int) -> dict[str, int]:
    """Add episodes of one step, each of which has a final observation to be kept."""
    steps = [(now, action, reward, after, True) for now, action, reward, after, _ in rows()]
    replay = full(capacity, steps=steps)
    return growth(lambda rounds: add(replay, steps, rounds * 1000), 100)


@pytest.mark.parametrize("capacity", [64, 50_000])
def test_one_step_episodes_leave_nothing(capacity):
    """A hundred thousand episodes of one step take no memory, in rings that can keep all their ends and that cannot."""
    assert_flat(fresh(one_step_episodes, capacity))


def breaks() -> dict[str, int]:
    """Add steps that never continue the one before, cut, and clear."""
    steps = rows()[::2]
    replay = full(10_000)

    def work(rounds: int) -> None:
        for _ in range(rounds):
            add(replay, steps, 2500)
            replay.cut()
            replay.clear()

    return growth(work, 40)


def test_breaks_cuts_and_clears_leave_nothing():
    """A hundred thousand episodes that were cut off take no memory."""
    assert_flat(fresh(breaks))


def refusals() -> dict[str, int]:
    """Try steps that do not match the schema."""
    replay = full(1000)
    obs, action, *rest = rows()[0]

    def work(rounds: int) -> None:
        for _ in range(rounds):
            for wrong in (obs[:5], obs.astype(object), "text", None, np.full(17, 1e300)):
                with pytest.raises(SchemaError, match="obs"):
                    replay.add(wrong, action, *rest)

    return growth(work, 4000)


def test_refused_steps_leave_nothing():
    """Twenty thousand refused steps take no memory: no error keeps what it refused."""
    assert_flat(fresh(refusals))


def objects() -> dict[str, int]:
    """Count what the collector tracks, and what Python has allocated, around many adds and samples."""
    steps, replay = rows(), full(10_000)
    view = replay.transitions(n_step=3)

    def work(rounds: int) -> None:
        for _ in range(rounds):
            add(replay, steps, 1000)
            dict(replay.sample(64)), dict(view.sample(64))
        gc.collect()

    work(1)
    tracked = len(gc.get_objects())
    work(100)
    more = len(gc.get_objects()) - tracked
    tracemalloc.start()
    work(1)
    traced, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    work(20)
    after, peak = tracemalloc.get_traced_memory()
    return {"tracked": more, "traced": after - traced, "peak": peak - traced}


def test_no_object_is_made_for_a_step():
    """Over 100 thousand adds the collector comes to track nothing more; over 20 thousand Python allocates no more."""
    paid = fresh(objects)

    assert paid["tracked"] <= 0, paid
    assert paid["traced"] < 4096, paid
    assert paid["peak"] < MIB // 2, paid


def leak() -> dict[str, int]:
    """Keep a few bytes of each step."""
    steps, replay = rows(), full(1000)
    kept: list[bytes] = []

    def work(rounds: int) -> None:
        for _ in range(rounds):
            add(replay, steps, 1000)
            kept.extend(bytes(16) + index.to_bytes(2, "big") for index in range(1000))

    return growth(work, 100)


def test_a_few_bytes_a_step_are_noticed():
    """The measurement above sees a leak of 18 bytes a step."""
    with pytest.raises(AssertionError, match="rss"):
        assert_flat(fresh(leak))


def assert_flat(paid: dict[str, int]) -> None:
    """Require that less than a MiB was added; the allocator's own slack is some hundred kB."""
    assert paid["rss"] < MIB, paid
