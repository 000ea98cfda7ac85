"""What a transition holds, in cases small enough to follow by hand. Observations are plain numbers that say when."""

import itertools
import re

import numpy as np
import pytest

from ringfence import Field, NotEnoughData, Replay, Schema

NUMBER = Field((), np.int64)
COLUMN = Field((600,), np.int8)  # big enough for a column of its own, where other code gathers


def ring(obs=NUMBER, capacity=100, streams=1, **parts):
    """Build an empty ring for observations of this field."""
    return Replay(Schema(obs=obs, action=NUMBER, **parts), capacity=capacity, streams=streams, seed=0)


def play(replay, obs, ends="", make=lambda number: number, stream=0, **extras):
    """Add the steps between consecutive observations: action and reward are the observation's number.

    ``ends`` says how the last one ends: "terminated", "truncated" or not at all.
    """
    for now, later in itertools.pairwise(obs):
        last = later == obs[-1]
        replay.add(
            make(now), now, float(now), make(later), last and ends == "terminated", last and ends == "truncated",
            stream=stream, **{name: value(now) for name, value in extras.items()},
        )  # fmt: skip


def drawn(view, count=400):
    """Draw often enough to meet every transition; give one row of each, by its action, which says when it was."""
    batch = view.sample(count)
    rows = {int(action): row for row, action in enumerate(batch.action)}
    return {action: Row(batch, row) for action, row in sorted(rows.items())}


class Row:
    """One transition of a batch, its fields as plain Python values."""

    def __init__(self, batch, row):
        self.batch, self.row = batch, row

    def __getattr__(self, name):
        return plain(self.batch[name], self.row)


def plain(tree, row):
    """Take one row out of a nest of arrays."""
    if isinstance(tree, dict):
        return {key: plain(part, row) for key, part in tree.items()}
    if isinstance(tree, tuple):
        return tuple(plain(part, row) for part in tree)
    return tree[row].tolist()


def test_one_step():
    """A transition is a step: obs, action, reward, and the observation after it."""
    replay = ring()
    play(replay, [10, 11, 12, 13])
    seen = drawn(replay.transitions())

    assert list(seen) == [10, 11, 12]
    assert (seen[11].obs, seen[11].action, seen[11].reward, seen[11].next_obs) == (11, 11, 11.0, 12)
    assert (seen[11].terminated, seen[11].truncated, seen[11].steps) == (False, False, 1)
    assert seen[11].discount == pytest.approx(0.99)


@pytest.mark.parametrize("n_step", [1, 2])
def test_the_newest_step_has_its_successor(n_step):
    """The observation after the newest step is known, though no step began there yet."""
    replay = ring()
    play(replay, [10, 11, 12, 13])
    newest = drawn(replay.transitions(n_step))[12]

    assert (newest.obs, newest.next_obs, newest.steps) == (12, 13, 1)


@pytest.mark.parametrize("obs", [NUMBER, COLUMN])
@pytest.mark.parametrize("n_step", [1, 3])
def test_the_last_observation_of_an_episode_is_not_the_next_one_s_first(obs, n_step):
    """Where an episode ends, next_obs is its own final observation, for terminated and truncated ends alike."""

    def make(number):
        return number if obs is NUMBER else np.full(600, number)

    replay = ring(obs)
    play(replay, [1, 2, 3], "terminated", make)
    play(replay, [50, 51, 52], "truncated", make)
    play(replay, [80, 81], "", make)
    seen = drawn(replay.transitions(n_step))

    last = {now: np.unique(seen[now].next_obs).tolist() for now in (2, 51, 80)}
    assert last == {2: [3], 51: [52], 80: [81]}
    assert (seen[2].terminated, seen[2].truncated, seen[2].discount) == (True, False, 0.0)
    assert (seen[51].terminated, seen[51].truncated) == (False, True)
    assert seen[51].discount == pytest.approx(0.99)


def test_an_end_that_is_both():
    """A step may be terminated and truncated at once; what counts for the discount is that it terminated."""
    replay = ring()
    replay.add(1, 1, 1.0, 2, True, True)
    row = drawn(replay.transitions())[1]

    assert (row.terminated, row.truncated, row.discount) == (True, True, 0.0)


def test_three_steps():
    """The n-step return sums discounted rewards, next_obs is n steps later, and the discount is gamma to the n."""
    replay = ring()
    play(replay, [1, 2, 3, 4, 5, 6])
    row = drawn(replay.transitions(3, gamma=0.5))[2]

    assert (row.obs, row.action, row.next_obs, row.steps) == (2, 2, 5, 3)
    assert row.reward == 2 + 0.5 * 3 + 0.25 * 4
    assert row.discount == 0.5**3


def test_three_steps_stop_at_an_end():
    """Past an end nothing is summed: steps says how many were used, and the flags are those of the last one."""
    replay = ring()
    play(replay, [1, 2, 3, 4], "terminated")
    play(replay, [50, 51, 52], "truncated")
    play(replay, [80, 81])
    seen = drawn(replay.transitions(3, gamma=0.5))

    assert [(seen[now].steps, seen[now].next_obs, seen[now].reward) for now in (1, 2, 3)] == [
        (3, 4, 1 + 0.5 * 2 + 0.25 * 3),
        (2, 4, 2 + 0.5 * 3),
        (1, 4, 3),
    ]
    assert [seen[now].terminated for now in (1, 2, 3)] == [True] * 3
    assert [seen[now].discount for now in (1, 2, 3)] == [0.0] * 3
    assert [(seen[now].steps, seen[now].next_obs, seen[now].discount) for now in (50, 51)] == [
        (2, 52, 0.25),
        (1, 52, 0.5),
    ]
    assert [(seen[now].terminated, seen[now].truncated) for now in (50, 51)] == [(False, True)] * 2


def test_three_steps_stop_at_the_newest():
    """Where the episode has not gone further yet, the steps there are count, and the discount fits them."""
    replay = ring()
    play(replay, [1, 2, 3, 4])
    seen = drawn(replay.transitions(3, gamma=0.5))

    assert [(row.steps, row.next_obs, row.discount) for row in seen.values()] == [
        (3, 4, 0.125),
        (2, 4, 0.25),
        (1, 4, 0.5),
    ]


@pytest.mark.parametrize("obs", [NUMBER, COLUMN])
def test_three_steps_stop_at_a_break(obs):
    """Where an observation does not continue the step before, the episode was left there: nothing reaches across."""

    def make(number):
        return number if obs is NUMBER else np.full(600, number)

    replay = ring(obs)
    play(replay, [1, 2, 3], "", make)
    play(replay, [50, 51, 52], "", make)
    seen = drawn(replay.transitions(3, gamma=0.5))

    assert [(seen[now].steps, np.unique(seen[now].next_obs).tolist()) for now in (1, 2, 50)] == [
        (2, [3]),
        (1, [3]),
        (2, [52]),
    ]
    assert [(seen[now].terminated, seen[now].truncated) for now in (1, 2)] == [(False, False)] * 2
    assert [seen[now].discount for now in (1, 2)] == [0.25, 0.5]
    assert replay.stats()["breaks"] == 1


@pytest.mark.parametrize("n_step", [7, 8, 9, 20, 100])
def test_many_steps(n_step):
    """Any number of steps may be asked for, also more than an episode or the ring has."""
    replay = ring(capacity=30)
    play(replay, list(range(60)))
    seen = drawn(replay.transitions(n_step, gamma=1.0), 2000)

    assert list(seen) == list(range(29, 59))
    for now, row in seen.items():
        end = min(now + n_step, 59)
        assert (row.steps, row.next_obs, row.reward) == (end - now, end, float(sum(range(now, end))))


def test_streams_do_not_mix():
    """Each stream has its own time: a window never reads another one's steps."""
    replay = ring(streams=2)
    for step in range(20):
        play(replay, [step, step + 1], stream=0)
        play(replay, [500 + step, 501 + step], stream=1)
    seen = drawn(replay.transitions(4), 2000)

    assert len(seen) == 40
    assert all(row.next_obs - row.obs == row.steps <= 4 for row in seen.values())


def test_gamma_one_and_zero():
    """Gamma 1 sums rewards as they are; gamma 0 takes the first, whatever comes after it."""
    replay = ring()
    for now, reward in enumerate((1.0, 2.0, np.inf, 4.0)):
        replay.add(now, now, reward, now + 1, False)

    plain_sum = drawn(replay.transitions(3, gamma=1))[0]
    assert (plain_sum.reward, plain_sum.discount) == (np.inf, 1.0)
    first = drawn(replay.transitions(3, gamma=0))[0]
    assert (first.reward, first.discount) == (1.0, 0.0)


def test_a_reward_that_is_not_a_number_stays_in_its_own_returns():
    """NaN in one step shows in the returns that use that step, and in no other."""
    replay = ring()
    for now, reward in enumerate((1.0, 2.0, 3.0, np.nan, 5.0, 6.0)):
        replay.add(now, now, reward, now + 1, now == 2)
    seen = drawn(replay.transitions(2, gamma=1))

    assert np.isnan([seen[now].reward for now in seen]).tolist() == [False, False, False, True, False, False]


def test_returns_that_overflow_are_infinite_without_a_warning():
    """A sum beyond what the reward's dtype holds is infinite."""
    replay = ring()
    for now in range(4):
        replay.add(now, now, 3e38, now + 1, False)

    assert drawn(replay.transitions(3, gamma=1))[0].reward == np.inf


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_returns_have_the_reward_s_own_dtype(dtype):
    """Sums are made in float64 and given in the dtype that the reward was declared with."""
    replay = ring(reward=Field((), dtype))
    play(replay, [1, 2, 3, 4])

    assert replay.transitions(1).sample(3).reward.dtype == dtype
    assert replay.transitions(3).sample(3).reward.dtype == dtype


def test_a_vector_reward():
    """With several rewards a step each of them is summed."""
    replay = ring(reward=Field((2,), np.float32))
    for now in range(4):
        replay.add(now, now, [now, -10 * now], now + 1, False)
    seen = drawn(replay.transitions(2, gamma=0.5))

    assert seen[1].reward == [1 + 0.5 * 2, -10 - 0.5 * 20]
    assert seen[3].reward == [3, -30]


def test_extras_are_those_of_the_first_step():
    """Like the action, a declared extra is that of the anchor, small or big."""
    replay = ring(extras={"log_prob": Field((), np.float32), "hidden": Field((300,), np.float32)})
    play(replay, [1, 2, 3, 4], log_prob=lambda now: -now / 4, hidden=lambda now: np.full(300, now))
    row = drawn(replay.transitions(3))[2]

    assert row.log_prob == -0.5
    assert row.hidden == [2.0] * 300


def test_what_is_stored_narrower_comes_back_wide():
    """float16 in memory reads as float32, rounded once; for observations, rewards and extras, packed or not."""
    half = Field((3,), np.float32, stored=np.float16)
    big = Field((400,), np.float32, stored=np.float16)
    reward = Field((), np.float32, stored=np.float16)
    replay = ring((half, big), reward=reward, extras={"hidden": half})
    now, later = np.float32(0.1), np.float32(0.3)
    replay.add(
        (np.full(3, now), np.full(400, now)), 1, now, (np.full(3, later), np.full(400, later)), True, hidden=[now] * 3
    )
    batch = replay.sample(1)

    for array, value in (
        (batch.obs[0], now),
        (batch.obs[1], now),
        (batch.next_obs[0], later),
        (batch.next_obs[1], later),
    ):
        assert array.dtype == np.float32
        assert (array == np.float16(value).astype(np.float32)).all()
    assert (batch.reward[0], batch.hidden[0, 0]) == (np.float32(np.float16(now)),) * 2


def test_nested_observations_keep_their_nesting():
    """Obs and next_obs are nests of the same form, small and big parts alike, at every kind of end."""
    replay = ring({"a": NUMBER, "b": (COLUMN, {"c": Field((2,), np.float32)})})

    def make(number):
        return {"a": number, "b": (np.full(600, number), {"c": [number, -number]})}

    play(replay, [1, 2, 3], "terminated", make)
    play(replay, [50, 51], "", make)
    for n_step in (1, 2):
        seen = drawn(replay.transitions(n_step))
        assert seen[2].obs == {"a": 2, "b": ([2] * 600, {"c": [2.0, -2.0]})}
        assert seen[2].next_obs == {"a": 3, "b": ([3] * 600, {"c": [3.0, -3.0]})}
        assert seen[50].next_obs == {"a": 51, "b": ([51] * 600, {"c": [51.0, -51.0]})}


def test_a_view_of_an_empty_ring():
    """Nothing added, nothing drawn: the error has the counts, and asking first is free."""
    view = ring(streams=3).transitions()

    assert not view.can_sample()
    assert view.ids().tolist() == []
    with pytest.raises(NotEnoughData, match=re.escape("0 transitions are held by 3 stream(s)")):
        view.sample(1)


def test_what_can_be_drawn_is_listed():
    """``ids`` lists every anchor, stream by stream, oldest first, and ``can_sample`` counts them."""
    replay = ring(capacity=6, streams=2)
    play(replay, [1, 2, 3, 4, 5, 6])
    given = [replay.add(70, 70, 0.0, 71, False, stream=1)]
    view = replay.transitions(2)

    assert view.ids().tolist() == [2, 3, 4, *given]
    assert view.can_sample(4)
    assert not view.can_sample(5)
    assert set(view.sample(100).ids.tolist()) == set(view.ids().tolist())
    assert (view.sample(3).probabilities == 1 / 4).all()
    assert (view.sample(3).weights == 1).all()


@pytest.mark.parametrize(("count", "kind"), [(0, ValueError), (-1, ValueError), (2.5, ValueError), ("3", ValueError)])
def test_a_count_that_makes_no_sense_is_refused(count, kind):
    """A batch has one transition or more."""
    replay = ring()
    play(replay, [1, 2])
    with pytest.raises(kind, match=re.escape(f"got {count!r}")):
        replay.sample(count)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_step": 0}, "n_step: expected a whole number of at least 1, got 0"),
        ({"n_step": 1.5}, "n_step: expected a whole number of at least 1, got 1.5"),
        ({"n_step": True}, "n_step: expected a whole number of at least 1, got True"),
        ({"gamma": 1.01}, "gamma: expected a number from 0 to 1, got 1.01"),
        ({"gamma": -0.1}, "gamma: expected a number from 0 to 1, got -0.1"),
        ({"gamma": float("nan")}, "gamma: expected a number from 0 to 1, got nan"),
    ],
)
def test_views_that_make_no_sense_are_refused(options, words):
    """The number of steps and the discount are refused by name."""
    with pytest.raises(ValueError, match=re.escape(words)):
        ring().transitions(**options)
