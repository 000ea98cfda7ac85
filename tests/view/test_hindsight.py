"""What a relabelled transition holds, in cases small enough to follow by hand. Goals are numbers that say when."""

import itertools

import numpy as np
import pytest

from ringfence import Field, NotEnoughData, Replay, Schema
from ringfence.draw import Drawn

NUMBER = Field((), np.int64)
SMALL, BIG = Field((2,), np.float32), Field((80, 4), np.float32)


def goals_schema(goal=SMALL, **parts):
    """Describe goals of one field beside an observation."""
    return Schema(obs={"seen": NUMBER, "achieved_goal": goal, "desired_goal": goal}, action=NUMBER, **parts)


def ring(schema=None, capacity=100, streams=1):
    """Build an empty ring."""
    return Replay(schema or goals_schema(), capacity=capacity, streams=streams, seed=0)


def observation(number, goal=SMALL):
    """Make the observation of this number: it achieved the number, and desires it and 1000."""
    return {
        "seen": number,
        "achieved_goal": np.full(goal.shape, number, goal.dtype),
        "desired_goal": np.full(goal.shape, number + 1000, goal.dtype),
    }


def play(replay, first, last, ends="", stream=0, **extras):
    """Add the steps between consecutive observations; ``ends`` says how the last one ends, if it does."""
    goal = replay.schema.obs["achieved_goal"]
    for now, later in itertools.pairwise(range(first, last + 1)):
        flags = later == last and ends == "terminated", later == last and ends == "truncated"
        values = {name: value(now) for name, value in extras.items()}
        replay.add(observation(now, goal), now, -float(now), observation(later, goal), *flags, stream=stream, **values)


def nothing(achieved, _desired, _info):
    """Pay nothing."""
    return np.zeros(len(achieved))


def distance(achieved, desired, _info):
    """Pay the distance to the goal."""
    return np.abs(achieved - desired).reshape(len(achieved), -1).max(axis=1)


def first_number(goals):
    """Give the number that each goal was made of."""
    return goals.reshape(len(goals), -1)[:, 0].astype(int)


def goals_by_step(view, count=2000):
    """Draw often enough to meet every goal; give the numbers of the goals of each step, by its action."""
    batch = view.sample(count)
    seen = {}
    for action, goal in zip(batch.action.tolist(), first_number(batch.obs["desired_goal"]).tolist(), strict=True):
        seen.setdefault(action, set()).add(goal)
    return dict(sorted(seen.items()))


@pytest.mark.parametrize("goal", [SMALL, BIG])
@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("future", {1: {2, 3, 4}, 2: {3, 4}, 3: {4}, 11: {12, 13}, 12: {13}}),
        ("final", {1: {4}, 2: {4}, 3: {4}, 11: {13}, 12: {13}}),
        ("episode", {1: {2, 3, 4}, 2: {2, 3, 4}, 3: {2, 3, 4}, 11: {12, 13}, 12: {12, 13}}),
        ("random", {step: {2, 3, 4, 12, 13} for step in (1, 2, 3, 11, 12)}),
    ],
)
def test_goals_of_each_strategy(strategy, expected, goal):
    """A goal is what a step led to, the final observation included; an open episode counts up to its newest step."""
    replay = ring(goals_schema(goal))
    play(replay, 1, 4, "truncated")
    play(replay, 11, 13)

    assert goals_by_step(replay.hindsight(nothing, strategy, ratio=1)) == expected


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("strategy", ["future", "final", "episode"])
def test_a_turned_ring_gives_no_goal_of_another_episode(strategy, streams):
    """Once the ring has turned, goals are neither of the overwritten steps nor of the episodes that replaced them."""
    replay = ring(capacity=8 * streams, streams=streams)
    for stream in range(streams):
        for start in (100, 200, 300):
            play(replay, start + 20 * stream, start + 20 * stream + 5, "terminated", stream=stream)
    seen = goals_by_step(replay.hindsight(nothing, strategy, ratio=1), 6000)

    assert len(seen) == 8 * streams
    assert all(goal // 20 == action // 20 for action, goals in seen.items() for goal in goals)
    assert {action % 20: {goal % 20 for goal in seen[action]} for action in seen if action < 220} == {
        2: {"future": {3, 4, 5}, "final": {5}, "episode": {3, 4, 5}}[strategy],
        3: {"future": {4, 5}, "final": {5}, "episode": {3, 4, 5}}[strategy],
        4: {"future": {5}, "final": {5}, "episode": {3, 4, 5}}[strategy],
    }


@pytest.mark.parametrize("strategy", ["future", "final", "episode"])
@pytest.mark.parametrize(("end", "start"), [("break", 50), ("cut", 3)])
def test_an_episode_without_an_end_flag(strategy, end, start):
    """A break or a cut ends an episode for its goals too, and what it led to last is its own last outcome."""
    replay = ring()
    play(replay, 1, 3)
    if end == "cut":
        replay.cut()
    play(replay, start, start + 3)
    seen = goals_by_step(replay.hindsight(nothing, strategy, ratio=1))

    assert seen[2] == ({2, 3} if strategy == "episode" else {3})
    assert seen[start + 2] == ({start + 1, start + 2, start + 3} if strategy == "episode" else {start + 3})


def test_steps_that_went_early():
    """Where short episodes used up the final observations, goals are of the steps that are still held."""
    replay = ring(capacity=130)
    for number in range(0, 800, 4):
        play(replay, number, number + 2 - number % 8 // 4, "terminated")
    seen = goals_by_step(replay.hindsight(nothing, "episode", ratio=1), 4000)

    assert replay.stats()["early"] > 0
    assert len(seen) == len(replay) < 130
    for action, goals in seen.items():
        start = action // 4 * 4
        assert goals == {number + 1 for number in (start, start + 1) if number in seen}


def test_both_observations_show_the_goal_and_the_rest_is_as_stored():
    """Only the goal, the reward and what follows from them differ from the plain transitions."""
    replay = ring(goals_schema(extras={"note": Field((3,), np.int16)}))
    play(replay, 1, 9, "truncated", note=lambda now: np.full(3, now, np.int16))
    batch = replay.hindsight(distance, gamma=0.5).sample(300)
    now, told = batch.action, batch.relabelled
    goal, later = first_number(batch.obs["desired_goal"]), first_number(batch.next_obs["desired_goal"])

    assert 0.7 < told.mean() < 0.9
    assert told.dtype == np.bool_
    np.testing.assert_array_equal(batch.obs["seen"], now)
    np.testing.assert_array_equal(batch.next_obs["seen"], now + 1)
    np.testing.assert_array_equal(first_number(batch.obs["achieved_goal"]), now)
    np.testing.assert_array_equal(first_number(batch.next_obs["achieved_goal"]), now + 1)
    np.testing.assert_array_equal(goal[told], later[told])
    np.testing.assert_array_equal(goal[~told], now[~told] + 1000)
    np.testing.assert_array_equal(later[~told], now[~told] + 1001)
    np.testing.assert_array_equal(batch.reward, np.where(told, goal - now - 1, -now).astype(np.float32))
    np.testing.assert_array_equal(batch.note, np.repeat(now[:, None], 3, axis=1))
    np.testing.assert_array_equal(batch.truncated, now == 8)
    assert not batch.terminated.any()
    assert batch.reward.dtype == np.float32
    assert (batch.discount == 0.5).all()
    assert list(batch)[-1] == "relabelled"


@pytest.mark.parametrize(
    ("options", "share"), [({"ratio": 0}, 0), ({"ratio": 1.0}, 1), ({"k": 0}, 0), ({"k": 3}, 0.75)]
)
def test_ratio_or_k_says_how_many(options, share):
    """Each row is relabelled with the probability asked for; k goals for each stored one are k in k + 1."""
    replay = ring()
    play(replay, 1, 9)
    told = replay.hindsight(nothing, **options).sample(4000).relabelled

    assert abs(told.mean() - share) < 0.04
    assert share not in (0, 1) or told.mean() == share


def test_ends_are_the_stored_ones_unless_asked():
    """Without a terminate function the flags and the discount are those of the step, whatever goal it is seen with."""
    replay = ring()
    play(replay, 1, 5, "terminated")
    batch = replay.hindsight(nothing, ratio=1).sample(200)

    np.testing.assert_array_equal(batch.terminated, batch.action == 4)
    np.testing.assert_array_equal(batch.discount == 0, batch.action == 4)


def test_terminate_tells_the_ends_of_relabelled_rows():
    """A relabelled row ends where its new goal is reached, and there alone; others as stored; truncation stays."""
    replay = ring()
    play(replay, 1, 5, "terminated")
    play(replay, 11, 15, "truncated")

    def reached(achieved, desired):
        return (achieved == desired).all(axis=1)

    batch = replay.hindsight(nothing, ratio=0.5, terminate=reached).sample(400)
    hit = first_number(batch.obs["desired_goal"]) == batch.action + 1
    np.testing.assert_array_equal(batch.terminated, np.where(batch.relabelled, hit, batch.action == 4))
    np.testing.assert_array_equal(batch.discount == 0, batch.terminated)
    np.testing.assert_array_equal(batch.truncated, batch.action == 14)
    assert (batch.relabelled & hit & (batch.action < 4)).any()


@pytest.mark.parametrize("goal", [SMALL, BIG])
def test_several_steps_are_paid_under_one_goal(goal):
    """The reward of each step used is computed with the row's one new goal, and they are summed with the discount."""
    replay = ring(goals_schema(goal, extras={"note": Field((), np.int64)}))
    play(replay, 1, 7, "truncated", note=lambda now: 100 * now)
    replay_view = replay.hindsight(
        lambda achieved, desired, info: distance(achieved, desired, info) + info["note"], ratio=1, n_step=3, gamma=0.5
    )
    batch = replay_view.sample(200)
    goals = first_number(batch.next_obs["desired_goal"])

    np.testing.assert_array_equal(batch.steps, np.minimum(3, 7 - batch.action))
    for row, now in enumerate(batch.action.tolist()):
        used = range(now, now + int(batch.steps[row]))
        paid = sum(0.5 ** (step - now) * (abs(step + 1 - goals[row]) + 100 * step) for step in used)
        assert batch.reward[row] == paid
    np.testing.assert_array_equal(first_number(batch.next_obs["achieved_goal"]), batch.action + batch.steps)
    assert any(goals < batch.action + batch.steps)


@pytest.mark.parametrize("goal", [SMALL, BIG])
def test_several_steps_stop_where_the_new_goal_is_reached(goal):
    """With terminate, the steps of a relabelled row stop at its goal: fewer rewards, that successor, no discount."""
    replay = ring(goals_schema(goal))
    play(replay, 1, 7, "truncated")
    play(replay, 21, 27, "terminated")

    def reached(achieved, desired):
        return distance(achieved, desired, {}) == 0

    view = replay.hindsight(
        lambda achieved, _desired, _info: np.ones(len(achieved)), terminate=reached, n_step=3, gamma=0.5
    )
    batch = view.sample(600)
    now, told, goals = batch.action, batch.relabelled, first_number(batch.obs["desired_goal"])
    left = np.minimum(3, np.where(now > 20, 27, 7) - now)
    hit = told & (goals <= now + left)
    steps = np.where(hit, goals - now, left)

    assert np.bincount(steps[hit]).tolist()[1:] > [30, 10, 10]
    np.testing.assert_array_equal(batch.steps, steps)
    np.testing.assert_array_equal(first_number(batch.next_obs["achieved_goal"]), now + steps)
    np.testing.assert_array_equal(batch.next_obs["seen"], now + steps)
    np.testing.assert_array_equal(batch.terminated, np.where(told, hit, now + left == 27))
    np.testing.assert_array_equal(batch.truncated, now + steps == 7)
    np.testing.assert_array_equal(batch.discount, np.where(batch.terminated, 0, 0.5**steps).astype(np.float32))
    np.testing.assert_array_equal(batch.reward[told], (2 - 0.5 ** (steps - 1.0))[told])


def test_a_stack_of_frames_beside_goals():
    """Observations may be stacked beside goals; where steps stop at the goal, the stack shown is the one there."""
    seen = Field((), np.int64, stack=3)
    replay = ring(Schema(obs={"seen": seen, "achieved_goal": SMALL, "desired_goal": SMALL}, action=NUMBER))
    play(replay, 1, 9)
    view = replay.hindsight(
        nothing, ratio=1, n_step=3, terminate=lambda achieved, desired: (achieved == desired).all(axis=1)
    )
    batch = view.sample(200)

    last = batch.action + batch.steps
    np.testing.assert_array_equal(batch.next_obs["seen"], np.maximum(last[:, None] + np.arange(-2, 1), 1))
    np.testing.assert_array_equal(batch.obs["seen"], np.maximum(batch.action[:, None] + np.arange(-2, 1), 1))
    assert set(batch.steps.tolist()) == {1, 2, 3}


def test_nothing_to_draw():
    """An empty ring is refused at once, with the counts."""
    view = ring().hindsight(nothing)

    assert not view.can_sample()
    with pytest.raises(NotEnoughData, match="no step can be drawn: 0 transitions"):
        view.sample(1)


@pytest.mark.parametrize("strategy", ["future", "final", "episode", "random"])
def test_equal_seeds_draw_equal_goals(strategy):
    """Goals come from the view's own generator: equal seeds give equal batches, and the global one is not touched."""

    def drawn(seed):
        np.random.seed(seed + 1)  # noqa: NPY002
        replay = Replay(goals_schema(), capacity=100, seed=seed)
        play(replay, 1, 60, "truncated")
        view = replay.hindsight(nothing, strategy)
        return [view.sample(50).obs["desired_goal"].tobytes() for _ in range(3)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_two_views_draw_goals_of_their_own():
    """Two views of one ring do not draw the same numbers."""
    replay = ring()
    play(replay, 1, 60)
    first, second = (replay.hindsight(nothing).sample(50) for _ in range(2))

    assert first.relabelled.tolist() != second.relabelled.tolist()


class Ranked:
    """A draw that prefers early steps, says so, and remembers the priorities it is given."""

    def __init__(self):
        self.updates = []

    def start(self, timeline, window, _generator):
        """Serve a view."""
        self.timeline, self.window = timeline, window

    def draw(self, look, count):
        """Give the first two steps by turns."""
        every = self.timeline.every(look, self.window)
        anchors = every.at(np.arange(count) % 2)
        share = np.where(np.arange(count) % 2, 0.25, 0.75)
        return Drawn(anchors, share, (0.5 / share).astype(np.float32))

    def update(self, anchors, priorities):
        """Remember, and say that one was stale."""
        self.updates.append((anchors.times.tolist(), priorities.tolist()))
        return len(priorities) - 1

    def stats(self):
        """Give a figure."""
        return {"mass": 3.0}


def test_prioritized_draws_pass_through():
    """Which steps are drawn, with which probabilities and weights, is the draw's matter, and so are priorities."""
    replay = ring()
    play(replay, 1, 6)
    draw = Ranked()
    view = replay.hindsight(nothing, draw=draw, n_step=2)
    batch = view.sample(4)

    assert batch.action.tolist() == [1, 2, 1, 2]
    assert batch.probabilities.tolist() == [0.75, 0.25, 0.75, 0.25]
    np.testing.assert_allclose(batch.weights, [2 / 3, 2, 2 / 3, 2])
    assert view.update_priorities(batch.ids[:2], [3.0, 4.0]) == (1, 1)
    assert draw.updates == [([0, 1], [3.0, 4.0])]
    assert view.stats() == {"mass": 3.0}


def test_priorities_of_a_uniform_draw():
    """Priorities without a draw that has them are refused."""
    replay = ring()
    play(replay, 1, 6)

    with pytest.raises(TypeError, match="Uniform draws have no priorities"):
        replay.hindsight(nothing).update_priorities([0], [1.0])


@pytest.mark.parametrize("n_step", [1, 4])
def test_a_batch_keeps_nothing_of_the_ring(n_step):
    """A batch stays as it is when the ring turns over, big goals too."""
    replay = ring(goals_schema(BIG), capacity=8)
    play(replay, 1, 9)
    view = replay.hindsight(distance, n_step=n_step)
    batch = view.sample(64)
    before = {key: batch.next_obs[key].copy() for key in batch.next_obs}, batch.reward.copy()
    play(replay, 101, 141)
    view.sample(64)

    np.testing.assert_array_equal(batch.reward, before[1])
    for key, values in before[0].items():
        np.testing.assert_array_equal(batch.next_obs[key], values)
