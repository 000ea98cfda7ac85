"""A reader that samples sequences while a writer adds sees whole windows only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.model import test_threads as threads
from tests.model.test_sequences import BOUNDARIES, Asked

from ringfence.replay import Replay


def torn(batch: Any, boundary: str) -> str:
    """Describe the first of these windows, with successors and stored state, that is not whole; empty if all are."""
    for row, id in enumerate(batch.ids.tolist()):
        number, stream = divmod(int(batch.obs["small"][row, 0, 0]), 10)
        count = int(batch.mask[row].sum())
        numbers = number + np.arange(count)
        firsts = [threads.first_of(n) for n in numbers.tolist()]
        marks = [threads.mark_before(n, stream) for n in numbers.tolist()]
        after = threads.mark_after(int(numbers[-1]), stream)
        stacks = [
            [threads.mark_before(max(n - back, first), stream) for back in reversed(range(threads.STACK))]
            for n, first in zip(numbers.tolist(), firsts, strict=True)
        ]
        obs = {name: part[row, : count + 1] for name, part in batch.obs.items()}
        ends = [threads.ends(n) for n in numbers.tolist()]
        wanted = {
            "length": boundary == "pad" or count == batch.mask.shape[1],
            "one episode": boundary == "cross" or len(set(firsts)) == 1,
            "ids": batch.step_ids[row, :count].tolist() == (id + np.arange(count)).tolist(),
            "big": (obs["big"] == np.array([*marks, after])[:, None]).all(),
            "small": (obs["small"] == np.array([*marks, after])[:, None]).all(),
            "stacks": obs["frame"][:count].tolist() == stacks,
            "last stack": obs["frame"][count].tolist()[-1] == after,
            "action": batch.action[row, :count].tolist() == marks,
            "state": (batch.extra[row] == marks[0]).all(),
            "reward": batch.reward[row, :count].tolist() == numbers.tolist(),
            "ends": list(zip(batch.terminated[row, :count], batch.truncated[row, :count], strict=True)) == ends,
            "is_first": batch.is_first[row, :count].tolist() == [n == f for n, f in zip(numbers, firsts, strict=True)],
        }
        wrong = [name for name, right in wanted.items() if not right]
        if wrong:
            return f"stream {stream}, steps {numbers.tolist()}: wrong {wrong}"
    return ""


@pytest.fixture
def _eager_switches() -> Iterator[None]:
    """Let threads take turns every few bytecodes."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_eager_switches")
@pytest.mark.parametrize(("put", "streams"), [(threads.add_one_stream, 1), (threads.extend_all_streams, 3)])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_a_reader_never_sees_a_torn_window(boundary: str, put: Callable[[Replay, int], None], streams: int) -> None:
    """Of a tiny ring that turns over and over while it is sampled, every window drawn is whole."""
    replay = Replay(threads.SCHEMA, capacity=30 * streams, streams=streams, seed=0)
    view = Asked(3, boundary=boundary, bootstrap=True, state=("extra",)).view(replay)
    adder = threads.Adder(replay, put)
    adder.start()
    batches, finding = 0, ""
    deadline = time.monotonic() + threads.SECONDS
    try:
        while not finding and time.monotonic() < deadline:
            if view.can_sample():
                finding = torn(view.sample(8), boundary)
                batches += 1
    finally:
        adder.stopped.set()
        adder.join()

    assert adder.error is None
    assert not finding, f"after {adder.number} steps and {batches} batches: {finding}"
    assert batches > 10, f"only {batches} batches: nothing was tested"
    assert adder.number > 5 * 30, f"only {adder.number} steps: nothing was tested"


@pytest.mark.parametrize("put", [threads.add_one_stream, threads.extend_all_streams], ids=["add", "extend"])
@pytest.mark.parametrize(
    "number", [threads.BREAK - 1, threads.EPISODES - 1, threads.BREAK + 1], ids=["inside", "at an end", "after a break"]
)
def test_a_sample_and_an_add_may_interleave_at_any_line(put: Callable[[Replay, int], None], number: int) -> None:
    """A sample that begins while an add has stopped, and ends when all but its last line is done, is not torn."""
    replay = Replay(threads.SCHEMA, capacity=8, streams=1, seed=0)
    view = Asked(3, boundary="pad", bootstrap=True, state=("extra",)).view(replay)
    lines = threads.lines_before_it_shows(replay, put, number)
    pairs = [(write, read) for write in range(0, lines, 5) for read in range(8, 136, 8)]
    for write, read in pairs:
        writer = threads.begin_again(replay, put, number)
        # few, so that some batches have the newest step in a window's middle and none at its beginning
        reader = threads.Stepper(lambda: view.sample(2), "view")
        writer.step(write)
        reader.step(read)
        where = f"add stopped at {writer.where}, sample at {reader.where}"
        writer.step(lines - 1 - write)
        reader.finish()
        writer.finish()

        assert (writer.error, reader.error) == (None, None), where
        assert not torn(reader.result, "pad"), f"{where}: {torn(reader.result, 'pad')}"


def test_a_torn_window_is_noticed() -> None:
    """The check above sees a window of which one part comes from another step."""
    replay = Replay(threads.SCHEMA, capacity=30, seed=0)
    for number in range(45):
        threads.add_one_stream(replay, number)
    batch = Asked(3, boundary="pad", bootstrap=True, state=("extra",)).view(replay).sample(16)

    assert not torn(batch, "pad")
    for array in (batch.obs["big"], batch.obs["frame"], batch.reward, batch.extra, batch.truncated, batch.is_first):
        whole = array.copy()
        array[:] = ~array if array.dtype == bool else array + 1
        assert torn(batch, "pad")
        array[...] = whole
