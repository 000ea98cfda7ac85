"""A reader that samples while a writer adds sees whole transitions only."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

from ringfence.replay import Replay
from ringfence.schema import Field, Schema

STACK = 3
SECONDS = 0.5
GAMMA = 0.9
# Steps of two episodes by turns: one that breaks off after its step 3, one that ends with step 6.
EPISODES = 7
BREAK = 3

# "big" has a column of its own, so that a row of it and the record beside it are two gathers.
SCHEMA = Schema(
    obs={"big": Field((160,), np.int64), "small": Field((3,), np.int64), "frame": Field((), np.int64, stack=STACK)},
    action=Field((), np.int64),
    reward=Field((), np.float64),
    extras={"extra": Field((80,), np.int64)},
)


def observation(mark: int) -> dict[str, Any]:
    """Make an observation of which every entry tells the mark."""
    return {"big": np.full(160, mark), "small": np.full(3, mark), "frame": mark}


def mark_before(number: int, stream: int) -> int:
    """Give what a stream sees before its step of this number."""
    return number * 10 + stream


def mark_after(number: int, stream: int) -> int:
    """Give what a stream sees after that step; after the break it is not what comes next."""
    return mark_before(number + 1, stream) + 5 * (number % EPISODES == BREAK)


def first_of(number: int) -> int:
    """Give the first step of the episode that a step belongs to."""
    start = number - number % EPISODES
    return start if number - start <= BREAK else start + BREAK + 1


def last_of(number: int) -> int:
    """Give the last step of that episode."""
    start = number - number % EPISODES
    return start + BREAK if number - start <= BREAK else start + EPISODES - 1


def ends(number: int) -> tuple[bool, bool]:
    """Tell whether a step terminates and whether it truncates: every 7th does, by turns."""
    last = number % EPISODES == EPISODES - 1
    return last and number % 2 == 0, last and number % 2 == 1


def step(number: int, stream: int) -> dict[str, Any]:
    """Make a step: all that is in it follows from its number and stream."""
    before = mark_before(number, stream)
    terminated, truncated = ends(number)
    return {
        "obs": observation(before),
        "action": before,
        "reward": float(number),
        "next_obs": observation(mark_after(number, stream)),
        "terminated": terminated,
        "truncated": truncated,
        "extra": np.full(80, before),
    }


def rows(number: int, streams: int) -> dict[str, Any]:
    """Make the steps of this number of all streams, as ``extend`` takes them."""
    steps = [step(number, stream) for stream in range(streams)]
    nested = ("obs", "next_obs")
    row = {name: np.array([one[name] for one in steps]) for name in steps[0] if name not in nested}
    for name in nested:
        row[name] = {key: np.array([one[name][key] for one in steps]) for key in steps[0][name]}
    return row


def add_one_stream(replay: Replay, number: int) -> None:
    """Add a step to the only stream."""
    replay.add(**step(number, 0))


def add_each_stream(replay: Replay, number: int) -> None:
    """Add a step to each stream, one by one."""
    for stream in range(replay.streams):
        replay.add(**step(number, stream), stream=stream)


def extend_all_streams(replay: Replay, number: int) -> None:
    """Add a step to each stream in one call."""
    replay.extend(**rows(number, replay.streams))


def torn(batch: Any, n_step: int) -> str:
    """Describe the first row whose parts do not belong together; empty where all do."""
    for row in np.unique(batch.ids, return_index=True)[1]:
        small = batch.obs["small"][row]
        number, stream = divmod(int(small[0]), 10)
        steps = int(batch.steps[row])
        last = number + steps - 1
        first = first_of(number)
        now, after = mark_before(number, stream), mark_after(last, stream)
        seen = [mark_before(max(last - back, first), stream) for back in reversed(range(STACK - 1))]
        terminated, truncated = ends(last)
        wanted = {
            "steps": 1 <= steps <= min(n_step, last_of(number) - number + 1),
            "obs": (batch.obs["big"][row] == now).all() and (small == now).all(),
            "stack": list(batch.obs["frame"][row])
            == [mark_before(max(number - back, first), stream) for back in reversed(range(STACK))],
            "action": batch.action[row] == now,
            "extra": (batch.extra[row] == now).all(),
            "reward": np.isclose(batch.reward[row], sum(GAMMA**i * (number + i) for i in range(steps))),
            "next_obs": (batch.next_obs["big"][row] == after).all() and (batch.next_obs["small"][row] == after).all(),
            "next stack": list(batch.next_obs["frame"][row]) == [*seen, after],
            "ends": (batch.terminated[row], batch.truncated[row]) == (terminated, truncated),
            "discount": np.isclose(batch.discount[row], 0.0 if terminated else GAMMA**steps),
        }
        wrong = [name for name, right in wanted.items() if not right]
        if wrong:
            nexts = {key: np.unique(part[row]).tolist() for key, part in batch.next_obs.items()}
            return f"stream {stream}, step {number}, {steps} used: wrong {wrong}; next_obs {nexts}, should be {after}"
    return ""


class Adder(threading.Thread):
    """Add steps until told to stop, and keep the error that ended it before."""

    def __init__(self, replay: Replay, put: Callable[[Replay, int], None]) -> None:
        super().__init__(daemon=True)
        self.replay, self.put = replay, put
        self.number = 0
        self.stopped = threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        """Add at full speed."""
        try:
            while not self.stopped.is_set():
                self.put(self.replay, self.number)
                self.number += 1
        except Exception as error:  # noqa: BLE001  (it would be lost with the thread; the test looks at it)
            self.error = error


class Stepper:
    """Run a call in a thread of its own that stops at chosen lines, so that two calls interleave as told.

    Args:
        call: what to run.
        room: only lines of files of this room of the package count.
    """

    def __init__(self, call: Callable[[], Any], room: str) -> None:
        self.result: Any = None
        self.error: Exception | None = None
        self.where = "the start"
        self.finished = False
        self._call, self._room = call, f"/ringfence/{room}/"
        self._left = 0
        self._go, self._paused = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def step(self, lines: int) -> None:
        """Go on for so many lines, or to the end."""
        if not self.finished:
            self._left = lines
            self._go.release()
            self._paused.acquire()

    def finish(self) -> None:
        """Go on to the end."""
        self.step(10**9)
        self._thread.join()

    def _run(self) -> None:
        self._go.acquire()
        sys.settrace(self._enter)
        try:
            self.result = self._call()
        except Exception as error:  # noqa: BLE001  (it would be lost with the thread; the test looks at it)
            self.error = error
        finally:
            sys.settrace(None)
            self.finished = True
            self._paused.release()

    def _enter(self, frame: FrameType, _event: str, _arg: Any) -> Callable[..., Any] | None:
        return self._line if self._room in frame.f_code.co_filename else None

    def _line(self, frame: FrameType, event: str, _arg: Any) -> Callable[..., Any]:
        if event == "line":
            if not self._left:
                self.where = f"{frame.f_code.co_name}:{frame.f_lineno}"
                self._paused.release()
                self._go.acquire()
            self._left -= 1
        return self._line


@pytest.fixture
def _eager_switches() -> Iterator[None]:
    """Let threads take turns every few bytecodes: the default of 5 ms would let most calls run in one piece."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_eager_switches")
@pytest.mark.parametrize(
    ("put", "streams"), [(add_one_stream, 1), (add_each_stream, 3), (extend_all_streams, 3)], ids=["one", "each", "all"]
)
@pytest.mark.parametrize("n_step", [1, 3])
def test_a_reader_never_sees_a_torn_transition(n_step: int, put: Callable[[Replay, int], None], streams: int) -> None:
    """Of a tiny ring that turns over and over while it is sampled, every row drawn is one whole transition."""
    replay = Replay(SCHEMA, capacity=24 * streams, streams=streams, seed=0)
    view = replay.transitions(n_step=n_step, gamma=GAMMA)
    adder = Adder(replay, put)
    adder.start()
    batches, finding = 0, ""
    deadline = time.monotonic() + SECONDS
    try:
        while not finding and time.monotonic() < deadline:
            if view.can_sample():
                finding = torn(view.sample(16), n_step)
                batches += 1
    finally:
        adder.stopped.set()
        adder.join()

    assert adder.error is None
    assert not finding, f"after {adder.number} steps and {batches} batches: {finding}"
    assert batches > 20, f"only {batches} batches: nothing was tested"
    assert adder.number > 5 * 24, f"only {adder.number} steps: nothing was tested"


def begin_again(replay: Replay, put: Callable[[Replay, int], None], number: int) -> Stepper:
    """Empty the ring, add all steps before this one, and stand ready to add it."""
    replay.clear()
    for earlier in range(number):
        put(replay, earlier)
    return Stepper(lambda: put(replay, number), "timeline")


def lines_before_it_shows(replay: Replay, put: Callable[[Replay, int], None], number: int) -> int:
    """Count the lines that an add runs before the step can be seen."""
    writer = begin_again(replay, put, number)
    lines = 0
    while len(replay) == number:
        writer.step(1)
        lines += 1
    writer.finish()
    return lines


def lines_of(view: Any) -> int:
    """Count the lines that a sample runs in its room."""
    reader = Stepper(lambda: view.sample(12), "view")
    lines = 0
    while not reader.finished:
        reader.step(1)
        lines += 1
    return lines


@pytest.mark.parametrize("put", [add_one_stream, extend_all_streams], ids=["add", "extend"])
@pytest.mark.parametrize("number", [EPISODES - 1, BREAK + 1], ids=["at an end", "after a break"])
def test_a_sample_and_an_add_may_interleave_at_many_lines(put: Callable[[Replay, int], None], number: int) -> None:
    """A sample that begins while an add has stopped, and ends when all but its last line is done, is not torn."""
    replay = Replay(SCHEMA, capacity=8, streams=1, seed=0)
    view = replay.transitions(gamma=GAMMA)
    lines = lines_before_it_shows(replay, put, number)
    # All pairs of lines would take a minute; a fault that spans ten lines of each side is met several times by 250.
    stops = np.random.default_rng(0).integers([lines, lines_of(view)], size=(250, 2))
    for write, read in stops.tolist():
        writer, reader = begin_again(replay, put, number), Stepper(lambda: view.sample(12), "view")
        writer.step(write)
        reader.step(read)
        where = f"add stopped at {writer.where}, sample at {reader.where}"
        writer.step(lines - 1 - write)
        reader.finish()
        writer.finish()

        assert (writer.error, reader.error) == (None, None), where
        assert not torn(reader.result, 1), f"{where}: {torn(reader.result, 1)}"


def test_a_torn_row_is_noticed() -> None:
    """The check above sees a row whose big column, next observation or flags come from another step."""
    replay = Replay(SCHEMA, capacity=24, seed=0)
    for number in range(40):
        add_one_stream(replay, number)
    batch = replay.transitions(gamma=GAMMA).sample(16)

    row = np.unique(batch.ids, return_index=True)[1][1]
    assert not torn(batch, 1)
    for array in (batch.obs["big"], batch.next_obs["frame"], batch.reward, batch.extra, batch.truncated):
        whole = array.copy()
        array[row] = ~array[row] if array.dtype == bool else array[row] + 1
        assert torn(batch, 1)
        array[...] = whole
