# ruff: noqa: D102 - testing/views.py says what the contract's parts do
"""What a sequence holds, in cases small enough to follow by hand. Observations are plain numbers that say when."""

import pickle
import re

import numpy as np
import pytest
from tests.view.test_transitions import COLUMN, NUMBER, play, ring

from ringfence import Field, NotEnoughData, Replay, Schema
from ringfence.draw import Uniform
from ringfence.testing.views import ViewContract

HIDDEN = {"hidden": Field((2,), np.float32)}


def big(now):
    """Make an observation for a column."""
    return np.full(600, now, np.int8)


def mixed(now):
    """Make an observation of three kinds."""
    return {"small": now, "big": big(now), "stack": np.full(3, now, np.int8)}


def hidden(now):
    """Make an extra."""
    return np.full(2, now)


class TestStop(ViewContract):
    """Windows inside one episode."""

    def make_view(self, replay):
        return replay.sequences(3)


class TestCross(ViewContract):
    """Windows that go on into the next episode, time first, with successors."""

    def make_view(self, replay):
        return replay.sequences(3, burn_in=2, boundary="cross", time_major=True, bootstrap=True)


class TestPad(ViewContract):
    """Windows that are padded where the episode ends."""

    def make_view(self, replay):
        return replay.sequences(6, boundary="pad", bootstrap=True)


class TestStride(ViewContract):
    """Windows at every second step of an episode."""

    def make_view(self, replay):
        return replay.sequences(4, stride=2)


def one(view, first):
    """Draw until a window begins with this action; give its fields as plain values."""
    batch = view.sample(300)
    action = batch.action[0] if view.time_major else batch.action[:, 0]
    row = action.tolist().index(first)
    per_window = ("ids", "weights", "probabilities")
    return {
        name: (value[:, row] if view.time_major and name not in per_window else value[row]).tolist()
        for name, value in batch.items()
        if isinstance(value, np.ndarray)
    }


def starts(view):
    """List the first actions of all windows."""
    return sorted(set(view.sample(600).action[:, 0].tolist())) if view.can_sample() else []


def test_a_window():
    """A window is consecutive steps of one episode, each with its own observation, action, reward and flags."""
    replay = ring()
    play(replay, [10, 11, 12, 13, 14], "terminated")
    seen = one(replay.sequences(3, gamma=0.5), 11)

    assert (seen["obs"], seen["action"], seen["reward"]) == ([11, 12, 13], [11, 12, 13], [11.0, 12.0, 13.0])
    assert (seen["terminated"], seen["truncated"]) == ([False, False, True], [False] * 3)
    assert seen["discount"] == [0.5, 0.5, 0.0]
    assert (seen["is_first"], seen["mask"], seen["learning"]) == ([False] * 3, [True] * 3, [True] * 3)
    assert (seen["ids"], seen["step_ids"]) == (1, [1, 2, 3])
    assert (seen["weights"], seen["probabilities"]) == (1.0, 0.5)


def test_the_fields_and_their_order():
    """A batch has these fields, the extras among them, and each is as long as the window."""
    replay = ring(extras=HIDDEN)
    play(replay, range(9), hidden=hidden)
    batch = replay.sequences(3).sample(5)

    assert list(batch) == [
        *("obs", "action", "reward", "terminated", "truncated", "hidden", "is_first", "mask", "learning"),
        *("discount", "ids", "step_ids", "weights", "probabilities"),
    ]
    assert batch.hidden.shape == (5, 3, 2)
    assert (batch.ids.shape, batch.weights.shape, batch.probabilities.shape) == ((5,), (5,), (5,))
    assert {batch[name].shape for name in ("reward", "is_first", "mask", "learning", "discount", "step_ids")} == {
        (5, 3)
    }
    dtypes = [batch[name].dtype for name in ("mask", "discount", "step_ids", "weights", "probabilities")]
    assert dtypes == [np.bool_, np.float32, np.int64, np.float32, np.float64]


def test_stop_keeps_windows_inside_an_episode():
    """With "stop" a window lies in one episode and before the newest step, and may end with either."""
    replay = ring()
    play(replay, [10, 11, 12, 13], "terminated")
    play(replay, [20, 21, 22])  # broken off by what follows
    play(replay, [30, 31, 32, 33, 34])

    assert starts(replay.sequences(3)) == [10, 30, 31]
    assert starts(replay.sequences(2)) == [10, 11, 20, 30, 31, 32]
    assert starts(replay.sequences(1)) == [10, 11, 12, 20, 21, 30, 31, 32, 33]


def test_cross_goes_on_into_the_next_episode():
    """With "cross" a window is any steps in a row, and ``is_first`` says where episodes begin."""
    replay = ring()
    play(replay, [10, 11, 12], "truncated")
    play(replay, [20, 21, 22])
    play(replay, [30, 31, 32])
    view = replay.sequences(4, boundary="cross")

    assert starts(view) == [10, 11, 20]
    seen = one(view, 11)
    assert seen["obs"] == [11, 20, 21, 30]
    assert seen["is_first"] == [False, True, False, True]
    assert seen["truncated"] == [True, False, False, False]
    assert seen["discount"] == pytest.approx([0.99] * 4)


def test_is_first_is_never_forced():
    """``is_first`` is true at the first step of an episode only, also where that step is gone."""
    replay = ring(capacity=4)
    play(replay, [10, 11, 12, 13, 14, 15])
    batch = replay.sequences(2, boundary="cross").sample(50)

    assert starts(replay.sequences(2)) == [11, 12, 13]
    assert not batch.is_first.any()


def test_pad_begins_at_any_step():
    """With "pad" each step held begins a window, which ends with the episode or the newest step; the rest is zeros."""
    replay = ring(obs=COLUMN, extras=HIDDEN)
    play(replay, [10, 11, 12], "terminated", big, hidden=hidden)
    play(replay, [20, 21, 22, 23], "", big, hidden=hidden)
    view = replay.sequences(3, boundary="pad", gamma=0.5)

    assert starts(view) == [10, 11, 20, 21, 22]
    seen = one(view, 11)
    assert [frame[0] for frame in seen["obs"]] == [11, 0, 0]
    assert (seen["action"], seen["reward"], seen["hidden"]) == ([11, 0, 0], [11, 0, 0], [[11, 11], [0, 0], [0, 0]])
    assert (seen["terminated"], seen["discount"]) == ([True, False, False], [0, 0, 0])
    assert (seen["mask"], seen["learning"]) == ([True, False, False], [True, False, False])
    assert seen["step_ids"] == [1, -1, -1]
    newest = one(view, 21)
    assert (newest["mask"], newest["discount"], newest["step_ids"]) == ([True, True, False], [0.5, 0.5, 0], [3, 4, -1])


def test_a_padded_first_step_is_not_a_first_step():
    """Padding is never marked as the first step of an episode."""
    replay = ring()
    play(replay, [10, 11], "terminated")

    assert one(replay.sequences(3, boundary="pad"), 10)["is_first"] == [True, False, False]


@pytest.mark.parametrize("obs", [NUMBER, COLUMN], ids=["in the record", "in a column"])
@pytest.mark.parametrize("end", ["terminated", "truncated", "a break", ""])
def test_bootstrap_gives_the_true_successor(obs, end):
    """With ``bootstrap`` there is one observation more: what came after the last step, however it ended."""
    replay = ring(obs)
    make = int if obs is NUMBER else big
    play(replay, [10, 11, 12, 13, 14], end, make)
    if end:
        play(replay, [50, 51, 52], "", make)
    batch = replay.sequences(2, bootstrap=True).sample(200)

    seen = {tuple(row) for row in batch.obs.reshape(200, 3, -1)[..., 0].tolist()}
    assert seen == {(10, 11, 12), (11, 12, 13), (12, 13, 14)} | ({(50, 51, 52)} if end else set())


def test_bootstrap_of_a_padded_window():
    """The successor stands right after the last step that is there, and zeros after it."""
    replay = ring()
    play(replay, [10, 11, 12], "terminated")
    play(replay, [20, 21, 22])
    view = replay.sequences(3, boundary="pad", bootstrap=True)

    assert one(view, 11)["obs"] == [11, 12, 0, 0]
    assert one(view, 20)["obs"] == [20, 21, 22, 0]
    assert one(view, 10)["obs"] == [10, 11, 12, 0]


def test_bootstrap_across_an_end():
    """Where a window crosses an end, the last observation alone is a successor; the one at the end is not shown."""
    replay = ring()
    play(replay, [10, 11, 12], "terminated")
    play(replay, [20, 21, 22], "truncated")

    assert one(replay.sequences(3, boundary="cross", bootstrap=True), 11)["obs"] == [11, 20, 21, 22]


def test_burn_in_comes_first_and_is_not_learned_from():
    """A window is ``burn_in + length`` steps; ``learning`` leaves the burn-in and the padding out."""
    replay = ring()
    play(replay, range(10, 16))
    seen = one(replay.sequences(2, burn_in=2), 10)
    padded = one(replay.sequences(2, burn_in=2, boundary="pad"), 12)

    assert seen["obs"] == [10, 11, 12, 13]
    assert (seen["mask"], seen["learning"]) == ([True] * 4, [False, False, True, True])
    assert (padded["mask"], padded["learning"]) == ([True, True, True, False], [False, False, True, False])


@pytest.mark.parametrize("boundary", ["stop", "cross", "pad"])
def test_time_major_is_the_same_with_the_time_first(boundary):
    """(T, B, ...) holds what (B, T, ...) does, in order of memory; what there is one of a window stays (B,)."""
    fields = {"small": NUMBER, "big": COLUMN, "stack": Field((3,), np.int8, stack=2)}
    replay = ring(fields, extras=HIDDEN)
    play(replay, range(9), "terminated", mixed, hidden=hidden)
    play(replay, range(20, 28), "", mixed, hidden=hidden)
    options = {"boundary": boundary, "bootstrap": True, "burn_in": 1}
    batch, turned = (
        replay.sequences(3, time_major=first, draw=Uniform(7), **options).sample(20) for first in (False, True)
    )

    assert np.array_equal(batch.ids, turned.ids)
    for name in ("action", "reward", "terminated", "hidden", "is_first", "mask", "learning", "discount", "step_ids"):
        assert np.array_equal(np.swapaxes(batch[name], 0, 1), turned[name]), name
        assert turned[name].flags.c_contiguous
    for name in fields:
        assert np.array_equal(np.swapaxes(batch.obs[name], 0, 1), turned.obs[name]), name
        assert turned.obs[name].flags.c_contiguous
        assert batch.obs[name].flags.c_contiguous


def test_stride_aligns_windows_with_their_episode():
    """With a stride only every so-many-th step of an episode begins a window, counted from its first, gone or not."""
    replay = ring(capacity=9)
    play(replay, range(10, 19), "terminated")
    play(replay, range(20, 26))

    assert starts(replay.sequences(2, stride=3)) == [16, 20, 23]
    assert starts(replay.sequences(2, boundary="cross", stride=3)) == [16, 20, 23]
    assert starts(replay.sequences(2, boundary="pad", stride=3)) == [16, 20, 23]
    assert replay.sequences(2, stride=3).sample(1).probabilities.tolist() == [1 / 3]


def test_state_is_given_back_for_the_first_step_only():
    """An extra named in ``state`` is (B, ...), as stored with the window's first step, burn-in included."""
    extras = {**HIDDEN, "cell": Field((200,), np.float32)}
    replay = ring(extras=extras)
    play(replay, range(9), hidden=hidden, cell=lambda now: np.full(200, now))
    batch = replay.sequences(2, burn_in=1, time_major=True, state=("hidden", "cell")).sample(20)

    assert (batch.hidden.shape, batch.cell.shape) == ((20, 2), (20, 200))
    assert np.array_equal(batch.hidden[:, 0], batch.action[0])
    assert np.array_equal(batch.cell[:, -1], batch.action[0])


# -- refusals


def test_no_window_is_an_error_with_counts():
    """Where no window is legal, sampling says so at once: how many steps, the longest run, and what was asked for."""
    replay = ring(capacity=100)
    play(replay, range(5), "terminated")
    play(replay, range(10, 13))
    view = replay.sequences(6, burn_in=2)

    text = (
        r"6 transitions are held by 1 stream\(s\), the longest run inside one episode is 4, .*"
        r'asked for windows of 2 of burn-in and 6 step\(s\), boundary="stop"$'
    )
    with pytest.raises(NotEnoughData, match=text):
        view.sample(1)
    assert not view.can_sample()
    assert view.ids().tolist() == []


def test_a_window_that_never_fits_says_so():
    """Where a stream never holds as many steps as a window has, the error says that too."""
    replay = ring(capacity=12, streams=3)
    play(replay, range(9))

    with pytest.raises(NotEnoughData, match="and no stream of this ring ever holds 5 steps"):
        replay.sequences(5).sample(1)
    assert replay.sequences(5, boundary="pad").sample(2).mask.sum(axis=1).max() <= 4


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"length": 0}, r"length: expected a whole number of at least 1, got 0"),
        ({"length": 2.0}, r"length: expected a whole number of at least 1, got 2\.0"),
        ({"length": True}, r"length: expected a whole number of at least 1, got True"),
        ({"length": 2, "burn_in": -1}, r"burn_in: expected a whole number of at least 0, got -1"),
        ({"length": 2, "stride": 0}, r"stride: expected a whole number of at least 1, got 0"),
        ({"length": 2, "boundary": "wrap"}, r'boundary: expected "stop", "cross" or "pad", got \'wrap\''),
        ({"length": 2, "gamma": 1.5}, r"gamma: expected a number from 0 to 1, got 1\.5"),
        ({"length": 2**31}, r"burn_in \+ length: expected at most 2147483647 steps, got 2147483648"),
        ({"length": 2, "state": ("cell",)}, r"state: 'cell' is no declared extra; the schema has hidden"),
        ({"length": 2, "state": "hidden"}, r"state: expected a tuple of names such as \(\"hidden\",\), got 'hidden'"),
    ],
)
def test_what_makes_no_sense_is_refused(options, text):
    """Each option is checked when the view is made, by name; the draw stays free for another view."""
    replay, draw = ring(extras=HIDDEN), Uniform()

    with pytest.raises(ValueError, match=text):
        replay.sequences(**options, draw=draw)
    replay.sequences(2, draw=draw)


# -- a batch afterwards


def test_probabilities_are_those_of_the_draw_however_late_they_are_read():
    """The number of legal windows is counted from what was noted at the draw, not from the ring as it is by then."""
    replay = ring(capacity=30)
    play(replay, range(12), "terminated")
    view = replay.sequences(3)
    batch = view.sample(4)
    play(replay, range(100, 160), "truncated")

    assert batch.probabilities.tolist() == [1 / 9] * 4
    assert view.sample(1).probabilities.tolist() == [1 / 28]


def test_a_batch_can_be_pickled_and_changed():
    """A batch is plain arrays of its own: it pickles, and writing to it reaches neither ring nor mask nor grid."""
    replay = ring(Field((), np.int64, stack=2))
    play(replay, range(9))
    view = replay.sequences(3)
    copied = pickle.loads(pickle.dumps(view.sample(4)))  # noqa: S301  (our own bytes)

    for batch in (view.sample(4), copied):
        for value in batch.values():
            value[...] = 1
    fresh = view.sample(4)
    assert fresh.mask.all()
    assert np.array_equal(fresh.step_ids, fresh.ids[:, None] + np.arange(3))
    assert np.array_equal(fresh.obs[..., 1], fresh.action)


def test_narrow_fields_are_widened():
    """What is stored narrower is given in the declared dtype, also as a stack on the last axis."""
    fields = {
        "plain": Field((3,), np.float32, stored=np.float16),
        "stack": Field((2, 2), np.int64, np.uint8, stack=2, stack_axis=-1),
    }
    replay = ring(fields)
    play(replay, range(9), make=lambda now: {"plain": np.full(3, now), "stack": np.full((2, 2), now)})
    batch = replay.sequences(3, bootstrap=True).sample(4)

    assert (batch.obs["plain"].dtype, batch.obs["plain"].shape) == (np.float32, (4, 4, 3))
    assert (batch.obs["stack"].dtype, batch.obs["stack"].shape) == (np.int64, (4, 4, 2, 2, 2))
    assert np.array_equal(batch.obs["stack"][:, :3, 1, 1, 1], batch.action)


def test_nested_observations_and_actions_keep_their_nesting():
    """Dicts and tuples come out as they are declared."""
    schema = Schema(obs=(NUMBER, {"a": COLUMN}), action={"move": NUMBER, "tool": NUMBER})
    replay = Replay(schema, capacity=20, seed=0)
    for now in range(9):
        obs, later = ((n, {"a": np.full(600, n, np.int8)}) for n in (now, now + 1))
        replay.add(obs, {"move": now, "tool": -now}, 0.0, later, False)
    batch = replay.sequences(4).sample(3)

    assert isinstance(batch.obs, tuple)
    assert batch.obs[1]["a"].shape == (3, 4, 600)
    assert np.array_equal(batch.action["move"], -batch.action["tool"])
    assert re.match(r"Batch\(obs, action, reward", repr(batch))
