"""Windows of random programs: which there are, and what is in them, as a plain list of steps says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ringfence.errors import NotEnoughData
from ringfence.replay import Replay
from ringfence.schema import Field, Schema
from ringfence.testing.machine import Pair, same
from ringfence.testing.reference import Step, each, leaves, widened
from ringfence.testing.strategies import ENDS, Move, programs, schemas

SEARCH = settings(deadline=None, print_blob=True, phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink])
BOUNDARIES = ("stop", "cross", "pad")
GAMMA = 0.9
PLAIN = Schema(obs=Field((2,), np.float32), action=Field((), np.int64))
MIXED = Schema(
    obs={
        "image": Field((24, 24), np.uint8, stack=4, stack_axis=-1),
        "vector": Field((2,), np.float32, stack=2, pad="zero"),
        "state": Field((3,), np.float32, stored=np.float16),
        "map": Field((12, 12), np.float32),
    },
    action=Field((), np.int64),
    extras={"log_prob": Field((), np.float32), "hidden": Field((160,), np.float32)},
)


@dataclass(frozen=True)
class Asked:
    """Say what a view is asked for."""

    length: int
    burn_in: int = 0
    boundary: str = "stop"
    stride: int = 1
    bootstrap: bool = False
    time_major: bool = False
    state: tuple[str, ...] = ()

    @property
    def steps(self) -> int:
        """Count the steps of a whole window."""
        return self.burn_in + self.length

    def view(self, replay: Replay) -> Any:
        """Make the view."""
        return replay.sequences(gamma=GAMMA, **vars(self))


class Oracle:
    """Answer from lists of steps what windows there are and what they hold."""

    def __init__(self, pair: Pair, asked: Asked) -> None:
        self.pair, self.reference, self.asked = pair, pair.reference, asked
        self.ids = {key: id for id, key in pair.keys.items()}
        self.held = [self._held(stream) for stream in range(pair.streams)]

    def _held(self, stream: int) -> list[Step]:
        """List what a stream holds; where finals run out, a shorter end of what it was promised to hold."""
        promised = self.reference.held(stream)
        there = self.pair.replay.holds([self.ids[stream, step.time] for step in promised])
        assert there.all() or (promised and self.pair.replay.stats()["early"])
        first = there.argmax() if there.any() else len(promised)
        assert there[first:].all()
        return promised[first:]

    def episode(self, stream: int, step: Step) -> list[Step]:
        """List the steps of an episode up to this one, gone or not."""
        return [other for other in self.reference._steps[stream] if other.episode == step.episode][
            : self.age(stream, step) + 1
        ]

    def age(self, stream: int, step: Step) -> int:
        """Count the steps of its episode before this one, gone or not."""
        return step.time - min(s.time for s in self.reference._steps[stream] if s.episode == step.episode)

    def windows(self) -> dict[int, list[Step]]:
        """List the steps of each legal window, by the id of the first one, stream by stream, oldest first."""
        found = {}
        for stream, held in enumerate(self.held):
            for place, step in enumerate(held):
                window = self._window(held, place)
                age = self.age(stream, step)
                if window and age % self.asked.stride == 0 and min(age, self.reference.stack - 1) <= place:
                    found[self.ids[stream, step.time]] = window
        return found

    def _window(self, held: list[Step], place: int) -> list[Step]:
        steps = held[place : place + self.asked.steps]
        if self.asked.boundary == "cross":
            return steps if len(steps) == self.asked.steps else []
        inside = [step for step in steps if step.episode == held[place].episode]
        return inside if self.asked.boundary == "pad" or len(inside) == self.asked.steps else []

    def expected(self, id: int, window: list[Step]) -> dict[str, Any]:
        """Give the fields of one window, time first, without padding."""
        stream = self.pair.keys[id][0]
        schema = self.reference.schema
        stacks = [self.reference._present([s.obs for s in self.episode(stream, step)]) for step in window]
        if self.asked.bootstrap:
            past = [s.obs for s in self.episode(stream, window[-1])]
            stacks.append(self.reference._present([*past, window[-1].next_obs]))
        fields = {
            "obs": each(schema.obs, lambda _, *parts: np.stack(parts), *stacks),
            "action": each(
                schema.action, lambda f, *parts: np.stack([widened(f, p) for p in parts]), *(s.action for s in window)
            ),
            "reward": np.stack([widened(schema.reward, s.reward) for s in window]),
            "terminated": np.array([s.terminated for s in window]),
            "truncated": np.array([s.truncated for s in window]),
            "is_first": np.array([s.first for s in window]),
            "mask": np.ones(len(window), bool),
            "learning": np.arange(len(window)) >= self.asked.burn_in,
            "discount": np.array([0 if s.terminated else GAMMA for s in window], np.float32),
            "step_ids": np.array([self.ids[stream, s.time] for s in window]),
        }
        for name, field in schema.extras.items():
            column = np.stack([widened(field, s.extras[name]) for s in window])
            fields[name] = column[0] if name in self.asked.state else column
        return fields


def compare(pair: Pair, asked: Asked, view: Any, factor: int = 3) -> None:
    """Draw from a view and compare all there is to compare."""
    oracle = Oracle(pair, asked)
    windows = oracle.windows()
    assert view.ids().tolist() == list(windows)
    assert view.can_sample(max(len(windows), 1)) == bool(windows)
    assert not view.can_sample(len(windows) + 1)
    if not windows:
        with pytest.raises(NotEnoughData, match=r"\d+ transitions are held .* longest run .* asked for windows"):
            view.sample(1)
        return
    batch = view.sample(factor * len(windows))
    assert set(batch.ids.tolist()) <= set(windows)
    assert batch.probabilities.tolist() == [1 / len(windows)] * len(batch.ids)
    for row, id in enumerate(batch.ids.tolist()):
        expected = oracle.expected(id, windows[id])
        for name, wanted in expected.items():
            for got, part in zip(leaves(batch[name]), leaves(wanted), strict=True):
                check(got, part, row, asked, name)


def check(got: Any, wanted: Any, row: int, asked: Asked, name: str) -> None:
    """Compare one leaf of one window, padding and layout included."""
    if name in asked.state:
        same(got[row], wanted, name)
        return
    assert got.shape[0 if asked.time_major else 1] == asked.steps + (asked.bootstrap and name == "obs"), name
    column = got[:, row] if asked.time_major else got[row]
    same(column[: len(wanted)], wanted, f"{name} of {asked}")
    rest = column[len(wanted) :]
    assert (rest == (-1 if name == "step_ids" else 0)).all(), f"{name}: padded with {rest}"


def made(schema: Schema, per_stream: int, streams: int, seed: int = 0) -> Pair:
    """Make an empty replay beside an empty reference."""
    return Pair(Replay(schema, capacity=per_stream * streams, streams=streams, seed=seed), schema)


def asks(names: list[str]) -> st.SearchStrategy[Asked]:
    """Draw what to ask for."""
    return st.builds(
        Asked,
        length=st.integers(1, 6),
        burn_in=st.integers(0, 3),
        boundary=st.sampled_from(BOUNDARIES),
        stride=st.sampled_from([1, 1, 1, 2, 3]),
        bootstrap=st.booleans(),
        time_major=st.booleans(),
        state=st.sets(st.sampled_from(names)).map(tuple) if names else st.just(()),
    )


@settings(SEARCH, max_examples=60)
@given(data=st.data(), schema=schemas(), program=programs(2, 50), per_stream=st.integers(4, 16))
def test_any_program_leaves_the_windows_that_a_list_of_steps_has(
    data: Any, schema: Schema, program: list[Move], per_stream: int
) -> None:
    """After any program, ids, counts, probabilities and every byte of what is drawn are those of the list."""
    pair = made(schema, per_stream, streams=2)
    asked = data.draw(asks(list(schema.extras)))
    view = asked.view(pair.replay)
    for move in program:
        pair.add(move)

    compare(pair, asked, view)


def random_move(rng: np.random.Generator, streams: int, mean_length: float) -> Move:
    """Draw a move whose episodes have about this length; a fifth of the endings is a break."""
    end = ENDS[rng.integers(1, 4)] if rng.random() < 0.8 / mean_length else ""
    return Move(int(rng.integers(streams)), end, jump=bool(rng.random() < 0.2 / mean_length))


def drawn_from(view: Any, windows: int) -> set[int]:
    """Draw so often that a legal window is missed once in a thousand billion times."""
    return set(view.sample(windows * (28 + int(np.log(windows)))).ids.tolist())


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("mean_length", [1.0, 3, 8, 30])
@pytest.mark.parametrize("per_stream", [1, 2, 7, 23])
def test_what_is_drawn_is_each_legal_window_and_nothing_else(
    per_stream: int, mean_length: float, boundary: str
) -> None:
    """All along a ring that turns, every legal window is drawn: wrapped ones, the newest one, and of each stream."""
    rng = np.random.default_rng([per_stream, int(mean_length)])
    pair = made(PLAIN, per_stream, streams=3)
    views = {asked: asked.view(pair.replay) for asked in (Asked(n, boundary=boundary) for n in (1, 2, 5))}
    for turn in range(24):
        for _ in range(1 + turn % 9):
            pair.add(random_move(rng, 3, mean_length))
        for asked, view in views.items():
            windows = set(Oracle(pair, asked).windows())
            assert set(view.ids().tolist()) == windows
            if windows:
                assert drawn_from(view, len(windows)) == windows, f"turn {turn} of {asked}"


@pytest.mark.parametrize("mean_length", [1.5, 6, 40])
@pytest.mark.parametrize("per_stream", [4, 23, 50])
def test_a_long_run_agrees_all_the_way(per_stream: int, mean_length: float) -> None:
    """Over many turns of a ring of stacked, nested, narrow and big fields, each option agrees with the list."""
    rng = np.random.default_rng(per_stream)
    pair = made(MIXED, per_stream, streams=2)
    for turn in range(6):
        for _ in range(2 * per_stream):
            pair.add(random_move(rng, 2, mean_length))
        for boundary in BOUNDARIES:
            asked = Asked(
                3, turn % 3, boundary, 1 + turn % 2, bool(turn % 2), turn % 4 > 1, ("hidden", "log_prob")[: turn % 3]
            )
            compare(pair, asked, asked.view(pair.replay), factor=1)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("streams", [1, 2])
def test_windows_of_a_ring_whose_oldest_steps_went_early(streams: int, boundary: str) -> None:
    """Where more episodes end than final observations are kept, windows are those of the steps that are left."""
    pair = made(PLAIN, 150, streams)
    rng = np.random.default_rng(streams)
    for _ in range(500 * streams):
        pair.add(random_move(rng, streams, 1.2))

    assert pair.replay.stats()["early"]
    for steps in (1, 2, 4):
        asked = Asked(steps, boundary=boundary, bootstrap=True)
        compare(pair, asked, asked.view(pair.replay), factor=1)


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_windows_after_a_clear(boundary: str) -> None:
    """What was cleared is in no window, also not in one of an episode that went on after it."""
    pair = made(MIXED, 12, 2)
    asked = Asked(3, boundary=boundary, bootstrap=True)
    view = asked.view(pair.replay)
    for moves in ([Move(0)] * 7 + [Move(1)] * 30, [Move(0)] * 5, [Move(1, "truncated")] * 3):
        for move in moves:
            pair.add(move)
        compare(pair, asked, view)
        pair.clear()
        compare(pair, asked, view)


def test_the_comparison_sees_a_window_moved_by_one() -> None:
    """An oracle whose windows begin one step later does not agree."""
    pair = made(PLAIN, 12, 1)
    for _ in range(9):
        pair.add(Move(0))
    asked = Asked(3)
    oracle = Oracle(pair, asked)
    windows = oracle.windows()
    first, second = list(windows)[:2]
    batch = asked.view(pair.replay).sample(100)
    row = batch.ids.tolist().index(first)

    check(batch.obs, oracle.expected(first, windows[first])["obs"], row, asked, "obs")
    with pytest.raises(AssertionError, match="obs of"):
        check(batch.obs, oracle.expected(second, windows[second])["obs"], row, asked, "obs")
