"""Hindsight agrees with brute force over whatever was added, and stays whole beside a writer."""

from __future__ import annotations

import sys
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.test_threads import (
    BREAK,
    EPISODES,
    Adder,
    Stepper,
    begin_again,
    first_of,
    last_of,
    lines_before_it_shows,
    lines_of,
    mark_after,
    mark_before,
)
from tests.model.test_threads import ends as ends_of

from ringfence.replay import Replay
from ringfence.schema import Field, Schema
from ringfence.testing.machine import Pair
from ringfence.testing.reference import Key, Step, widened
from ringfence.testing.strategies import moves, programs

GAMMA = 0.9
DRAWS = 12_000  # of at most 28 x 28 steps and goals: one in a million runs misses one that is there
FIELDS = [
    Field((2,), np.int64),
    Field((70,), np.int64),  # a column of its own
    Field((), np.int64),
    Field((3,), np.float32, stored=np.float16),
]
STRATEGIES = ["future", "final", "episode", "random"]


def schema_of(goal: Field) -> Schema:
    """Describe goals beside a stacked and a plain field."""
    obs = {
        "frame": Field((), np.int64, stack=3),
        "achieved_goal": goal,
        "desired_goal": goal,
        "seen": Field((3,), "f4"),
    }
    return Schema(obs, Field((), np.int64), extras={"note": Field((2,), np.int16), "photo": Field((600,), np.uint8)})


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """Draw a ring of one to three streams with whatever was added to it, and the reference of the same."""
    streams, per_stream = draw(st.integers(1, 3)), draw(st.integers(3, 9))
    schema = schema_of(draw(st.sampled_from(FIELDS)))
    pair = Pair(Replay(schema, per_stream * streams, streams=streams, seed=draw(st.integers(0, 9))), schema)
    for move in draw(programs(streams, max_size=50)):
        pair.add(move)
    for move in draw(st.lists(moves(streams), min_size=1, max_size=4)):
        pair.add(move)
    return pair


def mates(pair: Pair, key: Key) -> list[Step]:
    """List the held steps of the episode of a step."""
    held = pair.reference.held(key[0])
    [episode] = [step.episode for step in held if step.time == key[1]]
    return [step for step in held if step.episode == episode]


def goals_of(pair: Pair, key: Key, strategy: str) -> set[bytes]:
    """Give the goals that a step may be seen with, by the words of the promise."""
    steps = {
        "future": lambda: [step for step in mates(pair, key) if step.time >= key[1]],
        "final": lambda: mates(pair, key)[-1:],
        "episode": lambda: mates(pair, key),
        "random": lambda: [step for stream in range(pair.streams) for step in pair.reference.held(stream)],
    }[strategy]()
    field = pair.schema.obs["achieved_goal"]
    return {widened(field, step.next_obs["achieved_goal"]).tobytes() for step in steps}


def pay_nothing(achieved: Any, _desired: Any, _info: Any) -> Any:
    """Pay nothing."""
    return np.zeros(len(achieved))


@settings(max_examples=20)
@given(pair=pairs())
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_goals_drawn_are_those_of_the_strategy(strategy: str, pair: Pair) -> None:
    """For every step that can be drawn the set of its goals is the brute-force set: none too many, none missing."""
    view = pair.replay.hindsight(pay_nothing, strategy, ratio=1)
    anchors = pair.reference.anchors()
    if not anchors:
        return
    seen: dict[Key, set[bytes]] = {}
    for _ in range(4):
        batch = view.sample(DRAWS // 4)
        goals = batch.obs["desired_goal"]
        assert goals.tobytes() == batch.next_obs["desired_goal"].tobytes()
        rows = np.ascontiguousarray(goals).reshape(len(goals), -1)
        for id, goal in set(zip(batch.ids.tolist(), map(bytes, rows), strict=True)):
            seen.setdefault(pair.keys[id], set()).add(goal)

    assert seen == {key: goals_of(pair, key, strategy) for key in anchors}


def mix(achieved: Any, desired: Any, info: dict[str, Any]) -> Any:
    """Give a number that depends on every bit of each row."""
    parts = zip(achieved, desired, *(info[name] for name in sorted(info)), strict=True)
    return np.array([zlib.crc32(b"".join(part.tobytes() for part in row)) % 1000 / 8 for row in parts])


def reached(achieved: Any, desired: Any) -> Any:
    """Tell for about every third pair that the goal is reached."""
    return mix(achieved, desired, {}) % 3 < 1


def retold(pair: Pair, key: Key, goal: Any, n_step: int, terminate: bool) -> tuple[float, int, bool]:
    """Give reward, steps and end of a transition seen with another goal, step by step."""
    field, extras = pair.schema.obs["achieved_goal"], pair.schema.extras
    total, steps, ended = 0.0, 0, False
    for step in [step for step in mates(pair, key) if step.time >= key[1]][:n_step]:
        achieved = widened(field, step.next_obs["achieved_goal"])[None]
        info = {name: widened(extras[name], step.extras[name])[None] for name in extras}
        total += GAMMA**steps * mix(achieved, goal[None], info)[0]
        steps += 1
        ended = bool(reached(achieved, goal[None])[0]) if terminate else step.terminated
        if ended:
            break
    return total, steps, ended


@settings(max_examples=50)
@given(pair=pairs(), n_step=st.integers(1, 4), terminate=st.booleans(), strategy=st.sampled_from(STRATEGIES))
def test_a_relabelled_transition_is_what_would_have_been_seen(
    pair: Pair, n_step: int, terminate: bool, strategy: str
) -> None:
    """Reward, steps, end and successor follow from the new goal step by step; all else is as stored."""
    if not pair.reference.anchors():
        return
    view = pair.replay.hindsight(
        mix, strategy, ratio=0.7, terminate=reached if terminate else None, n_step=n_step, gamma=GAMMA
    )
    batch = view.sample(30)
    for row, told in enumerate(batch.relabelled.tolist()):
        key = pair.keys[int(batch.ids[row])]
        plain = pair.reference.transition(key, n_step, GAMMA)
        reward, steps, ended = plain.reward, plain.steps, plain.terminated
        if told:
            goal = batch.obs["desired_goal"][row]
            reward, steps, ended = retold(pair, key, goal, n_step, terminate)
            plain = pair.reference.transition(key, steps, GAMMA)
            plain.obs["desired_goal"] = plain.next_obs["desired_goal"] = goal
        for name, parts in (("obs", plain.obs), ("next_obs", plain.next_obs)):
            for leaf, value in parts.items():
                got = batch[name][leaf][row]
                assert (got.dtype, got.shape) == (value.dtype, value.shape)
                assert got.tobytes() == value.tobytes(), f"{name}.{leaf} of {key}: {got}, should be {value}"
        assert batch.reward[row] == pytest.approx(reward, rel=1e-5, abs=1e-5)
        assert (batch.steps[row], batch.terminated[row], batch.truncated[row]) == (steps, ended, plain.truncated)
        assert batch.discount[row] == pytest.approx(0 if ended else GAMMA**steps)
        assert batch.action[row] == plain.action
        assert all(batch[name][row].tobytes() == value.tobytes() for name, value in plain.extras.items())


# The writers of test_threads add these; its ``big`` and ``small`` are read as goals here.
GOALS = {"achieved": "big", "desired": "wish"}
LIVE = Schema(
    obs={"big": Field((160,), np.int64), "small": Field((3,), np.int64), "wish": Field((160,), np.int64)},
    action=Field((), np.int64),
    reward=Field((), np.float64),
)
LIVE_SMALL = Schema(
    obs={"big": Field((5,), np.int64), "small": Field((3,), np.int64), "wish": Field((5,), np.int64)},
    action=Field((), np.int64),
    reward=Field((), np.float64),
)


def live(mark: int, size: int) -> dict[str, Any]:
    """Make an observation of which every entry tells the mark."""
    return {"big": np.full(size, mark), "small": np.full(3, mark), "wish": np.full(size, -1)}


def add_to(replay: Replay, number: int, stream: int = 0) -> None:
    """Add the step of this number to a stream."""
    size = replay.schema.obs["big"].shape[0]
    now, later = live(mark_before(number, stream), size), live(mark_after(number, stream), size)
    replay.add(now, number, float(number), later, *ends_of(number), stream=stream)


def add_to_all(replay: Replay, number: int) -> None:
    """Add it to each stream."""
    for stream in range(replay.streams):
        add_to(replay, number, stream)


def torn(batch: Any, strategy: str, n_step: int) -> str:
    """Describe the first row whose goal, or what it was paid, does not belong to it; empty where all do."""
    for row in range(len(batch.ids)):
        goal, later = batch.obs["wish"][row], batch.next_obs["wish"][row]
        number, stream = divmod(int(batch.obs["small"][row][0]), 10)
        steps = int(batch.steps[row])
        after = [mark_after(number + ahead, stream) for ahead in range(steps)]
        span = {"future": number, "episode": first_of(number), "final": number, "random": 0}[strategy]
        allowed = {mark_after(step, stream) for step in range(span, last_of(number) + 1)}
        wanted = {
            "one goal": (goal == goal[0]).all() and (later == goal[0]).all(),
            "its own": strategy == "random" or int(goal[0]) in allowed,
            "successor": (batch.next_obs["big"][row] == after[-1]).all(),
            "reward": np.isclose(batch.reward[row], sum(GAMMA**i * (goal[0] - mark) for i, mark in enumerate(after))),
        }
        wrong = [name for name, right in wanted.items() if not right]
        if wrong:
            return f"stream {stream}, step {number}, {steps} used, goal {np.unique(goal)}: wrong {wrong}"
    return ""


def view_of(replay: Replay, strategy: str, n_step: int) -> Any:
    """View a ring with a reward that tells goal and outcome."""
    return replay.hindsight(
        lambda achieved, desired, _info: (desired - achieved)[:, -1],
        strategy,
        ratio=1,
        n_step=n_step,
        gamma=GAMMA,
        **GOALS,
    )


@pytest.fixture
def _eager_switches() -> Iterator[None]:
    """Let threads take turns every few bytecodes."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_eager_switches")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("streams", "n_step", "schema"),
    [(1, 1, LIVE), (1, 3, LIVE_SMALL), (3, 1, LIVE_SMALL)],
    ids=["columns", "three steps", "three streams"],
)
def test_goals_beside_a_writer_are_whole(streams: int, n_step: int, schema: Schema, strategy: str) -> None:
    """Of a tiny ring that turns over and over while it is sampled, every goal is one outcome of the step's episode."""
    replay = Replay(schema, capacity=24 * streams, streams=streams, seed=0)
    view = view_of(replay, strategy, n_step)
    adder = Adder(replay, add_to_all)
    adder.start()
    batches, finding, deadline = 0, "", time.monotonic() + 0.4
    try:
        while not finding and time.monotonic() < deadline:
            if view.can_sample():
                finding = torn(view.sample(16), strategy, n_step)
                batches += 1
    finally:
        adder.stopped.set()
        adder.join()

    assert adder.error is None
    assert not finding, f"after {adder.number} steps and {batches} batches: {finding}"
    assert batches > 10, f"only {batches} batches: nothing was tested"
    assert adder.number > 3 * 24, f"only {adder.number} steps: nothing was tested"


@pytest.mark.parametrize("strategy", ["future", "final"])
@pytest.mark.parametrize("number", [EPISODES - 1, BREAK + 1], ids=["at an end", "after a break"])
def test_a_sample_and_an_add_may_interleave_at_many_lines(number: int, strategy: str) -> None:
    """A sample that stands anywhere while an add begins and all but ends gives whole goals."""
    replay = Replay(LIVE_SMALL, capacity=8, seed=0)
    view = view_of(replay, strategy, 1)
    lines = lines_before_it_shows(replay, add_to, number)
    stops = np.random.default_rng(0).integers([lines, lines_of(view)], size=(120, 2))
    for write, read in stops.tolist():
        writer, reader = begin_again(replay, add_to, number), Stepper(lambda: view.sample(12), "view")
        writer.step(write)
        reader.step(read)
        where = f"add stopped at {writer.where}, sample at {reader.where}"
        writer.step(lines - 1 - write)
        reader.finish()
        writer.finish()

        assert (writer.error, reader.error) == (None, None), where
        assert not torn(reader.result, strategy, 1), f"{where}: {torn(reader.result, strategy, 1)}"


def interfere(view: Any, call: int, meanwhile: Callable[[], None], *, after: bool) -> None:
    """Have a writer do something while the outcomes are read the so-manieth time: before the records, or after."""
    gathering = view._outcomes._gathering
    whole, calls = gathering.take, iter(range(1000))

    def take(rows: Any) -> Any:
        now = next(calls) == call
        if now and not after:
            meanwhile()
        taken = whole(rows)
        if now and after:
            meanwhile()
        return taken

    gathering.take = take


@pytest.mark.parametrize("schema", [LIVE, LIVE_SMALL], ids=["columns", "records"])
@pytest.mark.parametrize("strategy", ["episode", "random"])
def test_goals_that_were_overwritten_are_drawn_again(strategy: str, schema: Schema) -> None:
    """A step that is overwritten between its choice and its reading gives no goal, though the row itself is whole."""
    for seed in range(60):
        replay = Replay(schema, capacity=8, seed=seed)
        for number in range(2 * EPISODES):
            add_to(replay, number)
        old = view_of(replay, strategy, 1)
        interfere(old, 0, lambda to=replay: [add_to(to, 2 * EPISODES + more) for more in range(3)], after=False)
        batch = old.sample(1)

        assert not torn(batch, strategy, 1)
        times = (int(batch.obs["wish"][0, 0]) // 10 - 1, replay.stats()["added"])
        assert times[1] - 8 <= times[0] < times[1]


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("call", [0, 1])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_outcome_that_becomes_final_while_it_is_read(strategy: str, call: int, n_step: int) -> None:
    """Where a break comes between reading the newest step's record and its successor, all is read again."""
    for seed in range(20):
        replay = Replay(LIVE, capacity=8, seed=seed)
        for number in range(BREAK + 1):
            add_to(replay, number)
        view = view_of(replay, strategy, n_step)
        interfere(view, call, lambda to=replay: add_to(to, BREAK + 1), after=True)

        assert not torn(view.sample(1), strategy, n_step)


def test_a_torn_goal_is_noticed() -> None:
    """The check above sees a goal that is not one, is of another episode, or was paid as another."""
    replay = Replay(LIVE, capacity=24, seed=0)
    for number in range(40):
        add_to(replay, number)
    batch = view_of(replay, "future", 1).sample(16)

    assert not torn(batch, "future", 1)
    for array, change in ((batch.obs["wish"][0], 1), (batch.next_obs["wish"][3], 1), (batch.reward, 0.5)):
        whole = array.copy()
        array[-1] += change
        assert torn(batch, "future", 1)
        array[:] = whole
    for goals in (batch.obs["wish"], batch.next_obs["wish"]):
        goals[2] += 10 * EPISODES
    batch.reward[2] += 10 * EPISODES
    assert torn(batch, "future", 1).endswith("wrong ['its own']")
