"""Drive a replay beside the reference by any program of moves; compare all that can be asked (needs hypothesis)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from ringfence.errors import NotEnoughData, SchemaError
from ringfence.replay import Replay
from ringfence.schema import Field, Schema
from ringfence.testing.reference import Key, ReferenceReplay, Tree, each, leaves
from ringfence.testing.strategies import End, Move, ends, moves, schemas, value, values

Spoil = Callable[[Schema, dict[str, Any]], None]
"""Make the arguments of an ``extend`` wrong in one way, in place."""


class Pair:
    """Feed a replay and the reference the same moves and raise AssertionError where they differ.

    Each observation has a number of its own and each value is made from such numbers, so no two steps look alike.
    What is passed in, and what is handed out, is scribbled over afterwards: nothing may share memory with the replay.

    Args:
        replay: an empty replay.
        schema: its schema.
    """

    def __init__(self, replay: Replay, schema: Schema) -> None:
        self.replay = replay
        self.reference = ReferenceReplay(schema, replay.capacity, replay.streams)
        self.schema = schema
        self.streams = replay.streams
        self.keys: dict[int, Key] = {}
        self._newest = [-1] * self.streams
        self._tails: list[int | None] = [None] * self.streams
        self._views: dict[tuple[int, float], Any] = {}
        self._numbers = 0

    def add(self, move: Move, *, whole: bool = False) -> int:
        """Add one transition and return its id; ``whole`` passes stacked fields as full stacks."""
        step = self._step(move, whole)
        key = self.reference.add(**step, stream=move.stream)
        id = self.replay.add(**step, stream=move.stream)
        self._remember(id, key)
        scribble(step)
        return id

    def extend(self, row: Sequence[Move], *, everyone: bool = False, whole: bool = False) -> None:
        """Add one transition to each of some streams in one call; ``everyone`` leaves their numbers out."""
        streams = None if everyone else np.array([move.stream for move in row])
        step = self._row(row, whole)
        keys = self.reference.extend(**step, streams=None if everyone else [move.stream for move in row])
        ids = self.replay.extend(**step, streams=streams)
        assert ids.dtype == np.int64, f"extend returned ids of dtype {ids.dtype}"
        for id, key in zip(ids, keys, strict=True):
            self._remember(id, key)
        scribble(step)

    def clear(self) -> None:
        """Empty both."""
        self.replay.clear()
        self.reference.clear()
        self._tails = [None] * self.streams

    def refuse(self, name: str, row: Sequence[Move]) -> None:
        """Try an ``extend`` that is wrong in the named way; check that it is refused and leaves no trace."""
        numbers, tails = self._numbers, list(self._tails)
        step = {**self._row(row, whole=False), "streams": np.array([move.stream for move in row])}
        SPOILS[name](self.schema, step)
        before = self._state()
        try:
            self.replay.extend(**step)
        except SchemaError:
            pass
        else:
            raise AssertionError(f"extend accepted a step with {name}")
        after = self._state()
        assert after == before, f"a refused extend ({name}) changed {before} to {after}"
        self._numbers, self._tails = numbers, tails

    def check_state(self) -> None:
        """Compare the counts."""
        replay, reference = self.replay, self.reference
        assert len(replay) == len(reference), f"len is {len(replay)}, should be {len(reference)}"
        for stream in range(self.streams):
            lengths = [int(length) for length in replay.episode_lengths(stream)]
            expected = reference.episode_lengths(stream)
            assert lengths == expected, f"episode lengths of stream {stream}: {lengths}, should be {expected}"
        assert replay.stats()["breaks"] == reference.breaks, f"breaks in {replay.stats()}, should be {reference.breaks}"

    def check_ids(self, n_step: int = 1, gamma: float = 0.99) -> None:
        """Compare the set of what can be drawn."""
        view = self._view(n_step, gamma)
        ids = np.asarray(view.ids())
        anchors = self.reference.anchors()
        assert ids.dtype == np.int64, f"ids have dtype {ids.dtype}"
        drawable = [self.keys[int(id)] for id in ids]
        surplus, missing = sorted(set(drawable) - set(anchors)), sorted(set(anchors) - set(drawable))
        assert not surplus + missing, f"(stream, time) wrongly drawable: {surplus}; not drawable: {missing}"
        assert len(drawable) == len(anchors), f"an id twice in {ids}"
        assert view.can_sample() == bool(anchors)

    def check_draws(self, n: int, n_step: int | None = None, gamma: float = 0.99) -> None:
        """Draw n times, from the default view for None, and compare every row; or check that drawing is refused."""
        sample = self.replay.sample if n_step is None else self._view(n_step, gamma).sample
        anchors = set(self.reference.anchors())
        if not anchors:
            try:
                sample(n)
            except NotEnoughData:
                return
            raise AssertionError("sample returned a batch although nothing can be drawn")
        batch = sample(n)
        assert len(batch.ids) == n, f"asked for {n}, got {len(batch.ids)}"
        for row, id in enumerate(batch.ids):
            key = self.keys[int(id)]
            assert key in anchors, f"drew (stream, time) {key}, which is no legal anchor"
            self._compare(batch, row, key, n_step or 1, gamma)
        scribble(dict(batch))

    def _compare(self, batch: Any, row: int, key: Key, n_step: int, gamma: float) -> None:
        where = f"(stream, time) {key} with n_step={n_step}, gamma={gamma}"
        expected = self.reference.transition(key, n_step, gamma)
        schema = self.schema
        for name, fields in (("obs", schema.obs), ("next_obs", schema.obs), ("action", schema.action)):
            got = each(fields, lambda _, column: column[row], batch[name])
            for actual, wanted in zip(leaves(got), leaves(getattr(expected, name)), strict=True):
                same(actual, wanted, f"{name} of {where}")
        for name in schema.extras:
            same(batch[name][row], expected.extras[name], f"{name} of {where}")
        assert batch.reward.dtype == schema.reward.dtype, f"reward has dtype {batch.reward.dtype}"
        if expected.steps == 1:
            same(batch.reward[row], expected.reward, f"reward of {where}")
        else:
            near = np.allclose(batch.reward[row], expected.reward, rtol=1e-5, atol=1e-4)
            assert near, f"reward of {where} is {batch.reward[row]}, should be {expected.reward}"
        got_end = (bool(batch.terminated[row]), bool(batch.truncated[row]), int(batch.steps[row]))
        end = (expected.terminated, expected.truncated, expected.steps)
        assert got_end == end, f"(terminated, truncated, steps) of {where} are {got_end}, should be {end}"
        discount = float(batch.discount[row])
        assert abs(discount - expected.discount) < 1e-6, f"discount of {where}: {discount}, not {expected.discount}"

    def _view(self, n_step: int, gamma: float) -> Any:
        # Views live on while the ring turns and clears below them: what they remember of it must follow.
        if (n_step, gamma) not in self._views:
            self._views[n_step, gamma] = self.replay.transitions(n_step=n_step, gamma=gamma)
        return self._views[n_step, gamma]

    def _state(self) -> tuple[Any, ...]:
        lengths = [list(self.replay.episode_lengths(stream)) for stream in range(self.streams)]
        return len(self.replay), list(self._view(1, 0.99).ids()), lengths, self.replay.stats()

    def _remember(self, id: Any, key: Key) -> None:
        stream = key[0]
        assert int(id) not in self.keys, f"id {id} given to {self.keys[int(id)]} and to {key}"
        assert id > self._newest[stream], f"id {id} of {key} is not above {self._newest[stream]}"
        self.keys[int(id)] = key
        self._newest[stream] = int(id)

    def _step(self, move: Move, whole: bool) -> dict[str, Any]:
        schema = self.schema
        start = self._tails[move.stream]
        if start is None or move.jump:
            start = self._number()
        after = self._number()
        # An episode may also begin with the very frame that the last one ended on: ends count, not looks.
        self._tails[move.stream] = after if not move.end or after % 3 == 0 else None
        extras = {name: value(field, after * 5) for name, field in schema.extras.items()}
        return {
            "obs": values(schema.obs, start, whole=whole),
            "action": values(schema.action, after),
            "reward": value(schema.reward, after, strange=False),
            "next_obs": values(schema.obs, after, whole=whole),
            "terminated": move.end in ("terminated", "both"),
            "truncated": move.end in ("truncated", "both"),
            **extras,
        }

    def _row(self, row: Sequence[Move], whole: bool) -> dict[str, Any]:
        schema = self.schema
        steps = [self._step(move, whole) for move in row]
        trees = {"obs": schema.obs, "action": schema.action, "next_obs": schema.obs}
        return {
            name: each(trees.get(name), lambda _, *column: np.stack(column), *(step[name] for step in steps))
            for name in steps[0]
        }

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers


def same(actual: Any, expected: Any, what: str) -> None:
    """Require the same dtype, shape and bits."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    kinds = (actual.dtype, actual.shape), (expected.dtype, expected.shape)
    assert kinds[0] == kinds[1], f"{what} is {kinds[0]}, should be {kinds[1]}"
    assert actual.tobytes() == expected.tobytes(), f"{what} is\n{actual}\nshould be\n{expected}"


def scribble(tree: Tree) -> None:
    """Overwrite every array of a tree that can be written."""
    for array in leaves(tree):
        if isinstance(array, np.ndarray) and array.flags.writeable:
            array[...] = 1


def spoil_last(fields: Tree, tree: Tree, spoil: Callable[[Field, Any], Any]) -> Tree:
    """Replace the last leaf of a tree."""
    last = len(list(leaves(fields))) - 1
    count = iter(range(last + 1))
    return each(fields, lambda field, array: spoil(field, array) if next(count) == last else array, tree)


def spoil_obs(schema: Schema, step: dict[str, Any]) -> None:
    """Give obs two axes of one too many: one may be a stack of one frame."""
    step["obs"] = spoil_last(schema.obs, step["obs"], lambda _, array: array[:, None, None])


def spoil_next_obs(schema: Schema, step: dict[str, Any]) -> None:
    """Leave out one row of next_obs."""
    step["next_obs"] = spoil_last(schema.obs, step["next_obs"], lambda _, array: array[1:])


def spoil_action(schema: Schema, step: dict[str, Any]) -> None:
    """Give the last row an action that does not fit: a half, or one number too many."""

    def spoil(field: Field, array: Any) -> Any:
        if field.dtype.kind == "i":
            return array % 1000 + np.array([0.0] * (len(array) - 1) + [0.5])
        return np.concatenate([array, array], axis=-1)

    step["action"] = spoil_last(schema.action, step["action"], spoil)


def spoil_reward(_schema: Schema, step: dict[str, Any]) -> None:
    """Give each reward an axis of one."""
    step["reward"] = step["reward"][..., None]


def spoil_extra(_schema: Schema, step: dict[str, Any]) -> None:
    """Add an extra that the schema does not declare."""
    step["surprise"] = step["reward"]


def spoil_streams(_schema: Schema, step: dict[str, Any]) -> None:
    """Name a stream that does not exist."""
    step["streams"] = step["streams"] + 1000


SPOILS: dict[str, Spoil] = {
    "an obs of the wrong shape": spoil_obs,
    "a row of next_obs missing": spoil_next_obs,
    "a wrong action in the last row": spoil_action,
    "a reward of the wrong shape": spoil_reward,
    "an undeclared extra": spoil_extra,
    "an unknown stream": spoil_streams,
}


def own_moves() -> st.SearchStrategy[Move]:
    """Draw a move that fits the machine that runs."""
    return st.runner().flatmap(lambda machine: moves(machine.pair.streams))


def own_rows() -> st.SearchStrategy[list[Move]]:
    """Draw moves for some of the machine's streams, each at most once, in any order."""
    rows = st.runner().flatmap(lambda machine: st.lists(moves(machine.pair.streams), min_size=1, max_size=4))
    return rows.map(lambda row: list({move.stream: move for move in row}.values()))


def own_full_rows() -> st.SearchStrategy[list[Move]]:
    """Draw one move for each of the machine's streams, in order."""
    return st.runner().flatmap(
        lambda machine: st.tuples(*(moves(1) for _ in range(machine.pair.streams))).map(
            lambda row: [Move(stream, move.end, move.jump) for stream, move in enumerate(row)]
        )
    )


class ReplayMachine(RuleBasedStateMachine):
    """Let hypothesis find a program after which a replay and the reference differ.

    Override ``build`` to test a replay made in another way.
    """

    pair: Pair

    def build(self, schema: Schema, capacity: int, streams: int, seed: int) -> Replay:
        """Make the empty replay under test."""
        return Replay(schema, capacity=capacity, streams=streams, seed=seed)

    @initialize(
        schema=schemas(),
        per_stream=st.integers(1, 8) | st.integers(9, 64),
        streams=st.integers(1, 4),
        spare=st.integers(0, 3),
        seed=st.integers(0, 2**32 - 1),
    )
    def start(self, schema: Schema, per_stream: int, streams: int, spare: int, seed: int) -> None:
        """Begin with an empty replay that can hold at least one stack."""
        per_stream = max(per_stream, schema.stack)
        capacity = per_stream * streams + min(spare, streams - 1)
        replay = self.build(schema, capacity, streams, seed)
        assert replay.capacity == per_stream * streams, f"capacity is {replay.capacity}, not {per_stream * streams}"
        self.pair = Pair(replay, schema)

    @rule(move=own_moves(), whole=st.booleans())
    def add(self, move: Move, whole: bool) -> None:
        """Add one transition."""
        self.pair.add(move, whole=whole)
        self.pair.check_state()

    @rule(move=own_moves(), length=st.integers(2, 16))
    def run(self, move: Move, length: int) -> None:
        """Add several transitions to one stream; only the first may jump, only the last may end."""
        self.pair.add(Move(move.stream, jump=move.jump))
        for _ in range(length - 2):
            self.pair.add(Move(move.stream))
        self.pair.add(Move(move.stream, move.end))
        self.pair.check_state()

    @rule(move=own_moves(), kinds=st.lists(ends().filter(bool), min_size=1, max_size=16))
    def short(self, move: Move, kinds: list[End]) -> None:
        """Add episodes of one step each."""
        for end in kinds:
            self.pair.add(Move(move.stream, end))
        self.pair.check_state()

    @rule(row=own_rows(), whole=st.booleans())
    def extend_some(self, row: list[Move], whole: bool) -> None:
        """Add to some streams in one call."""
        self.pair.extend(row, whole=whole)
        self.pair.check_state()

    @rule(row=own_full_rows(), whole=st.booleans())
    def extend_all(self, row: list[Move], whole: bool) -> None:
        """Add to all streams in one call."""
        self.pair.extend(row, everyone=True, whole=whole)
        self.pair.check_state()

    @rule(name=st.sampled_from(sorted(SPOILS)), row=own_rows())
    def refuse(self, name: str, row: list[Move]) -> None:
        """Try a wrong call."""
        self.pair.refuse(name, row)

    # A machine that clears as often as it adds would rarely fill a ring.
    @precondition(lambda self: 2 * len(self.pair.reference) >= self.pair.replay.capacity)
    @rule()
    def clear(self) -> None:
        """Forget everything."""
        self.pair.clear()
        self.pair.check_state()

    @rule(n=st.integers(1, 24))
    def draw(self, n: int) -> None:
        """Draw one-step transitions."""
        self.pair.check_draws(n)

    @rule(n=st.integers(1, 24), n_step=st.integers(1, 5), gamma=st.sampled_from([0.99, 0.5, 1.0]))
    def draw_far(self, n: int, n_step: int, gamma: float) -> None:
        """Draw n-step transitions."""
        self.pair.check_draws(n, n_step, gamma)

    @rule(n_step=st.integers(1, 5))
    def ids(self, n_step: int) -> None:
        """Compare what can be drawn."""
        self.pair.check_ids(n_step)
