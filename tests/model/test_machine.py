"""A replay and the reference agree on whatever is done to them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ringfence.errors import SchemaError
from ringfence.replay import Replay
from ringfence.schema import Field, Schema
from ringfence.testing.machine import Pair, ReplayMachine
from ringfence.testing.reference import leaves
from ringfence.testing.strategies import ENDS, Move, programs, schemas

# A failing program is printed step by step, with a blob that replays it. The explain phase is left out: it takes
# longer than all else, and what it adds hides the program.
SEARCH = settings(deadline=None, print_blob=True, phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink])
ReplayMachine.TestCase.settings = settings(SEARCH, max_examples=60, stateful_step_count=30)
TestReplayMachine = ReplayMachine.TestCase

STACKED = Schema(
    obs={"image": Field((24, 24), np.uint8, stack=4), "state": Field((3,), np.float32, stored=np.float16)},
    action=Field((), np.int64),
    extras={"log_prob": Field((), np.float32)},
)


def make_pair(schema: Schema, per_stream: int, streams: int, seed: int = 0) -> Pair:
    """Make an empty replay beside an empty reference."""
    return Pair(Replay(schema, capacity=per_stream * streams, streams=streams, seed=seed), schema)


def random_row(rng: np.random.Generator, streams: int, mean_length: float) -> list[Move]:
    """Draw a move for some streams whose episodes have about this length; one ending in ten is a break."""
    chosen = rng.permutation(streams)[: rng.integers(1, streams + 1)]
    return [
        Move(
            int(stream),
            ENDS[rng.integers(1, 4)] if rng.random() < 1 / mean_length else "",
            bool(rng.random() < 0.1 / mean_length),
        )
        for stream in chosen
    ]


@settings(SEARCH, max_examples=80)
@given(schema=schemas(), program=programs(2), per_stream=st.integers(4, 12))
def test_any_program_leaves_the_memory_that_the_reference_predicts(
    schema: Schema, program: list[Move], per_stream: int
) -> None:
    """After any program, what is held, what can be drawn and what a draw contains are those of the reference."""
    pair = make_pair(schema, per_stream, streams=2)
    for move in program:
        pair.add(move)

    pair.check_state()
    for n_step in (1, 3):
        pair.check_ids(n_step)
        pair.check_draws(32, n_step)


@pytest.mark.parametrize("mean_length", [1.5, 6, 40])
@pytest.mark.parametrize("per_stream", [4, 23, 64])
def test_a_long_run_that_turns_the_ring_many_times_agrees_all_the_way(per_stream: int, mean_length: float) -> None:
    """A ring that has turned many times still holds its newest steps, whatever the length of the episodes."""
    rng = np.random.default_rng(per_stream)
    pair = make_pair(STACKED, per_stream, streams=3)
    program: list[list[Move]] = []
    try:
        for turn in range(12):
            for _ in range(per_stream):
                program.append(random_row(rng, 3, mean_length))
                if len(program[-1]) == 1:
                    pair.add(program[-1][0])
                else:
                    pair.extend(program[-1])
            pair.check_state()
            pair.check_ids(n_step=1 + turn % 5)
            pair.check_draws(16, n_step=1 + turn % 5)
    except AssertionError as error:
        last = "\n".join(map(str, program[-2 * per_stream :]))
        raise AssertionError(
            f"{error}\nseed {per_stream}, after {len(program)} calls, the last of which are\n{last}"
        ) from error


@pytest.mark.parametrize("per_stream", [1, 2, 3])
def test_the_smallest_rings_hold_exactly_their_newest_steps(per_stream: int) -> None:
    """A capacity of one, two or three is kept exactly, through every pair of ways to end an episode."""
    pair = make_pair(Schema(obs=Field((2,), np.float32), action=Field((), np.int64)), per_stream, streams=1)
    for first in ENDS:
        for second in ENDS:
            for jump in (False, True):
                pair.add(Move(0, first, jump))
                pair.check_ids()
                pair.add(Move(0, second))
                pair.check_ids(n_step=2)
                pair.check_draws(8, n_step=2)
                pair.check_state()


def test_a_ring_smaller_than_a_stack_is_refused_with_the_least_that_works() -> None:
    """Fewer transitions a stream than frames in a stack can never be drawn from: the error says how many are needed."""
    with pytest.raises(SchemaError, match=r"capacity: .* needs 4 steps; the minimum is capacity=8"):
        Replay(STACKED, capacity=6, streams=2)


@pytest.mark.parametrize("streams", [1, 3])
def test_a_large_ring_of_one_step_episodes_holds_a_suffix_and_counts_the_rest(streams: int) -> None:
    """Where final observations outgrow their reserve the oldest steps go early, only they, and stats counts them."""
    replay = Replay(STACKED, capacity=300 * streams, streams=streams, seed=0)
    pair = Pair(replay, STACKED)
    added: list[list[int]] = [[] for _ in range(streams)]
    for time in range(1000):
        for stream in range(streams):
            added[stream].append(pair.add(Move(stream, ENDS[1 + time % 3])))

    ids = set(replay.transitions().ids().tolist())
    held = [[id for id in line if id in ids] for line in added]

    assert [line[-len(kept) :] for line, kept in zip(added, held, strict=True)] == held
    assert [len(kept) for kept in held] == [len(replay.episode_lengths(stream)) for stream in range(streams)]
    assert len(replay) == len(ids) == sum(map(len, held))
    assert replay.stats()["early"] == 1000 * streams - len(replay)


def test_a_large_ring_that_is_told_of_short_episodes_holds_all_it_promised() -> None:
    """With a reserve for one-step episodes none of 300 goes early."""
    replay = Replay(STACKED, capacity=300, seed=0, episode_length=1)
    pair = Pair(replay, STACKED)
    for time in range(700):
        pair.add(Move(0, ENDS[1 + time % 3]))

    pair.check_state()
    pair.check_ids()
    assert replay.stats()["early"] == 0


def test_every_leaf_of_a_nested_observation_is_compared() -> None:
    """The comparison reaches into dicts and tuples: a leaf that differs is reported by its place."""
    nested = {"pair": (Field((), np.int8), Field((2,), np.float32)), "image": Field((24, 24), np.uint8)}

    assert [field.shape for field in leaves(nested)] == [(), (2,), (24, 24)]
