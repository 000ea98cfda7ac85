"""What the caller's functions are given and must give, and which questions a view of hindsight refuses."""

import itertools

import numpy as np
import pytest
from tests.view.test_hindsight import BIG, NUMBER, SMALL, distance, goals_schema, nothing, observation, play, ring

from ringfence import Field, Replay, Schema, SchemaError, Uniform


def test_what_the_reward_function_sees():
    """It is called once, with the relabelled rows alone: achieved after the step, the new goal, extras by name."""
    calls = []

    def reward(achieved, desired, info):
        calls.append((achieved.copy(), desired.copy(), info))
        return np.arange(len(achieved))

    extras = {"note": Field((), np.float32, stored=np.float16), "picture": Field((600,), np.uint8)}
    replay = ring(goals_schema(extras=extras))
    play(replay, 1, 9, note=lambda now: now / 2, picture=lambda now: np.full(600, now, np.uint8))
    batch = replay.hindsight(reward).sample(64)
    told = batch.relabelled

    [(achieved, desired, info)] = calls
    np.testing.assert_array_equal(achieved, batch.next_obs["achieved_goal"][told])
    np.testing.assert_array_equal(desired, batch.next_obs["desired_goal"][told])
    assert {name: values.dtype for name, values in info.items()} == {"note": np.float32, "picture": np.uint8}
    np.testing.assert_array_equal(info["note"], batch.note[told])
    np.testing.assert_array_equal(info["picture"], batch.picture[told])
    np.testing.assert_array_equal(batch.reward[told], np.arange(told.sum()))


@pytest.mark.parametrize("n_step", [1, 3])
def test_a_function_that_writes_to_its_arguments_changes_no_batch(n_step):
    """What the functions are given is theirs: the batch, and what the other function sees, stay as they are."""

    def terminate(achieved, desired):
        achieved[:], desired[:] = 7, 7
        return np.zeros(len(achieved), bool)

    def reward(achieved, desired, _info):
        paid = distance(achieved, desired, {})
        achieved[:], desired[:] = 7, 7
        return paid

    def drawn(**functions):
        replay = ring()
        play(replay, 1, 9)
        return replay.hindsight(ratio=1, n_step=n_step, **functions).sample(64)

    rough = drawn(reward=reward, terminate=terminate)
    gentle = drawn(reward=distance, terminate=lambda achieved, _: np.zeros(len(achieved), bool))
    for name in ("reward", "terminated", "steps"):
        np.testing.assert_array_equal(rough[name], gentle[name])
    for name, key in itertools.product(("obs", "next_obs"), ("achieved_goal", "desired_goal")):
        np.testing.assert_array_equal(rough[name][key], gentle[name][key])


def test_nothing_to_relabel_asks_no_function():
    """The functions are not called where no row is relabelled."""

    def never(*_):
        raise AssertionError("called")

    replay = ring()
    play(replay, 1, 9, "terminated")
    batch = replay.hindsight(never, ratio=0, terminate=never, n_step=2).sample(64)

    assert not batch.relabelled.any()
    np.testing.assert_array_equal(batch.terminated, batch.action >= 7)


def test_goals_kept_narrower_than_they_are_shown():
    """Goals stored in float16 reach the functions and the batch in the declared float32."""
    dtypes = []

    def reward(achieved, desired, _info):
        dtypes.extend((achieved.dtype, desired.dtype))
        return distance(achieved, desired, {})

    replay = ring(goals_schema(Field((2,), np.float32, stored=np.float16)))
    play(replay, 1, 9)
    for n_step in (1, 2):
        batch = replay.hindsight(reward, "final", ratio=1, n_step=n_step).sample(50)
        assert batch.obs["desired_goal"].dtype == np.float32
        np.testing.assert_array_equal(batch.next_obs["desired_goal"], 9)
    assert set(dtypes) == {np.dtype(np.float32)}


@pytest.mark.parametrize("n_step", [1, 2])
def test_rewards_are_presented_in_the_declared_dtype(n_step):
    """A reward kept in float16 is not cut to it when it is computed anew, and vector rewards are paid by part."""
    narrow = ring(goals_schema(reward=Field((), np.float32, stored=np.float16)))
    pair = ring(goals_schema(reward=Field((2,), np.float64)))
    play(narrow, 1, 5)
    for now in range(1, 5):
        pair.add(observation(now), now, np.zeros(2), observation(now + 1), terminated=False)

    paid = narrow.hindsight(lambda achieved, *_: np.full(len(achieved), 2049.0), ratio=1, n_step=n_step, gamma=0)
    assert (paid.sample(9).reward == 2049).all()
    parts = pair.hindsight(lambda achieved, *_: achieved, ratio=1, n_step=n_step, gamma=0).sample(9)
    np.testing.assert_array_equal(parts.reward, np.repeat(parts.action[:, None] + 1.0, 2, axis=1))


def test_what_is_discounted_to_nothing_is_not_paid():
    """With a discount of 0 the return is the first reward, though later ones are infinite."""
    replay = ring()
    play(replay, 1, 9)
    view = replay.hindsight(
        lambda achieved, *_: np.where(achieved[:, 0] > 5, np.inf, achieved[:, 0]), ratio=1, n_step=3, gamma=0
    )
    batch = view.sample(100)

    np.testing.assert_array_equal(batch.reward, np.where(batch.action > 4, np.inf, batch.action + 1))


def test_a_reward_that_is_not_finite_is_refused_where_the_field_is():
    """What ``add`` would refuse as a reward is refused from the function too."""
    replay = ring(goals_schema(reward=Field((), np.float32, finite=True)))
    play(replay, 1, 9)

    with pytest.raises(SchemaError, match="what the reward function gave: expected a finite value, got nan"):
        replay.hindsight(lambda achieved, *_: np.full(len(achieved), np.nan), ratio=1).sample(4)


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize(
    ("paid", "text"),
    [
        (lambda n: np.zeros((n, 1)), r"what the reward function gave: expected shape \(\d+,\), got \(\d+, 1\)"),
        (lambda _n: 0.0, r"what the reward function gave: expected shape \(\d+,\), got \(\)"),
        (lambda n: np.zeros(n + 1), r"what the reward function gave: expected shape"),
        (lambda n: np.zeros(n, complex), r"what the reward function gave: expected numbers, got dtype complex128"),
        (lambda n: ["good"] * n, r"what the reward function gave: expected numbers"),
        (lambda n: [None] * n, r"what the reward function gave: expected numbers, got dtype object"),
        (lambda n: np.full(n, 1e300), r"what the reward function gave: expected a value that fits float32"),
    ],
)
def test_a_reward_that_is_none_is_refused(paid, text, n_step):
    """What is not one number a row, or does not fit the declared reward, is refused by name when it comes."""
    replay = ring()
    play(replay, 1, 9)
    view = replay.hindsight(lambda achieved, *_: paid(len(achieved)), ratio=1, n_step=n_step)

    with pytest.raises(SchemaError, match=text):
        view.sample(8)


def test_a_float_reward_for_an_integer_field_is_refused():
    """Rewards declared as integers stay integers."""
    replay = ring(goals_schema(reward=Field((), np.int32)))
    for now in range(1, 5):
        replay.add(observation(now), now, now, observation(now + 1), terminated=False)

    np.testing.assert_array_equal(replay.hindsight(lambda a, *_: np.ones(len(a), int), ratio=1).sample(8).reward, 1)
    with pytest.raises(SchemaError, match="what the reward function gave: expected int32, got float64"):
        replay.hindsight(nothing, ratio=1).sample(8)


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("flags", [np.zeros, lambda n: np.zeros((n, 1), bool), lambda _n: False])
def test_a_flag_that_is_none_is_refused(flags, n_step):
    """What the terminate function gives is one bool a row, and nothing else."""
    replay = ring()
    play(replay, 1, 9)
    view = replay.hindsight(nothing, ratio=1, n_step=n_step, terminate=lambda achieved, _: flags(len(achieved)))

    with pytest.raises(SchemaError, match="what the terminate function gave: expected"):
        view.sample(8)


BAD_SCHEMAS = {
    "no dict": (NUMBER, "obs: hindsight needs a dict with the keys 'achieved_goal' and 'desired_goal'.*single field"),
    "a tuple": ((SMALL, SMALL), "obs: hindsight needs a dict .*a tuple"),
    "no achieved": ({"desired_goal": SMALL}, "achieved: 'achieved_goal' is no key of the observation, which has 'desi"),
    "no desired": ({"achieved_goal": SMALL}, "desired: 'desired_goal' is no key"),
    "a nest": ({"achieved_goal": {"a": SMALL}, "desired_goal": SMALL}, "obs.achieved_goal: a goal is one array"),
    "a stack": (
        {"achieved_goal": SMALL, "desired_goal": Field((2,), np.float32, stack=2)},
        "obs.desired_goal: a goal cannot be a stack",
    ),
    "shapes": ({"achieved_goal": SMALL, "desired_goal": BIG}, r"obs.achieved_goal is \(2,\).*obs.desired_goal is \(80"),
    "dtypes": ({"achieved_goal": SMALL, "desired_goal": Field((2,), np.float64)}, "must agree"),
    "memory": ({"achieved_goal": SMALL, "desired_goal": Field((2,), np.float32, stored=np.float16)}, "must agree"),
}


@pytest.mark.parametrize(("obs", "text"), BAD_SCHEMAS.values(), ids=BAD_SCHEMAS)
def test_an_observation_without_such_goals_is_refused(obs, text):
    """A view is refused where the observation does not hold two goals of one kind under the given keys."""
    replay = Replay(Schema(obs=obs, action=NUMBER), capacity=10)

    with pytest.raises(SchemaError, match=text):
        replay.hindsight(nothing)


def test_keys_of_another_name():
    """The keys may have any names, but two of them."""
    replay = Replay(Schema(obs={"here": SMALL, 3: SMALL}, action=NUMBER), capacity=10)
    replay.add({"here": np.zeros(2), 3: np.ones(2)}, 0, 0.0, {"here": np.full(2, 5), 3: np.ones(2)}, terminated=False)
    batch = replay.hindsight(nothing, ratio=1, achieved="here", desired=3).sample(4)

    np.testing.assert_array_equal(batch.obs[3], 5)
    with pytest.raises(SchemaError, match=r"obs\.here: expected different keys"):
        replay.hindsight(nothing, achieved="here", desired="here")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"reward": 3}, "reward: expected a function, got 3"),
        ({"terminate": "done"}, "terminate: expected a function, got 'done'"),
        ({"strategy": "past"}, "strategy: expected one of future, final, episode, random, got 'past'"),
        ({"ratio": 1.1}, "ratio: expected a number from 0 to 1, got 1.1"),
        ({"ratio": float("nan")}, "ratio: expected a number"),
        ({"ratio": True}, "ratio: expected a number"),
        ({"ratio": "half"}, "ratio: expected a number from 0 to 1, got 'half'"),
        ({"k": -1}, "k: expected a whole number of goals for each transition, got -1"),
        ({"k": 2.5}, "k: expected a whole number"),
        ({"k": True}, "k: expected a whole number"),
        ({"n_step": 0}, "n_step: expected a whole number of at least 1, got 0"),
        ({"gamma": 1.5}, "gamma: expected a number from 0 to 1"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options, text):
    """Options are checked when the view is made, and a draw that came with them is free for another view."""
    replay, draw = ring(), Uniform()
    play(replay, 1, 4)

    with pytest.raises(ValueError, match=text):
        replay.hindsight(**{"reward": nothing, "draw": draw} | options)
    assert len(replay.hindsight(nothing, draw=draw).sample(3).ids) == 3
