"""The buffer of Dreamer, saved and loaded, and beside the original."""

import io
import re
import sys

import numpy as np
import pytest
from tests.worldmodels.dreaming import SHAPE, buffer, drawn, fill, shown

from ringfence import CheckpointError, NotEnoughData
from ringfence.worldmodels import ReplayBuffer


@pytest.mark.parametrize("tensors", [True, False])
def test_a_state_goes_on_where_it_was_taken(tensors, monkeypatch):
    """A state is a copy, goes through torch.save and torch.load(weights_only=True), and the same windows come next."""
    if tensors:
        torch = pytest.importorskip("torch")
    else:
        monkeypatch.setitem(sys.modules, "torch", None)
    target = fill(buffer(size=20), 33)
    state = target.state_dict()
    if tensors:
        file = io.BytesIO()
        torch.save(state, file)
        file.seek(0)
        state = torch.load(file, weights_only=True)
    expected = [target.sample() for _ in range(3)]
    fill(target, 5, start=33)

    other = buffer(size=20, seed=9)
    other.load_state_dict(state)

    assert (other.idx, other.full, other.steps, other.episodes) == (13, True, 33, 4)
    for batch in expected:
        assert all(map(np.array_equal, batch, other.sample()))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"size": 21}, "is of 20 transitions in 1 stream(s), and this replay has room for 21"),
        ({"obs_shape": (3, 8, 9)}, "obs_shape: this buffer has [3, 8, 9], and the state is of [3, 8, 8]"),
        ({"action_size": 3}, "action_size: this buffer has 3, and the state is of 2"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_a_state_of_another_buffer_is_refused(change, text):
    """The text names what differs, and the buffer is as it was."""
    state = fill(buffer(size=20), 33).state_dict()
    other = ReplayBuffer(**{"size": 20, "obs_shape": SHAPE, "action_size": 2, "seq_len": 5, **change})
    before = shown(other)

    with pytest.raises(CheckpointError, match=re.escape(text)):
        other.load_state_dict(state)

    assert shown(other) == before


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda _: None, "expected a dict, as state_dict() gives it, got NoneType"),
        (lambda state: {**state, "more": 1}, "expected the keys buffer, replay, settings, steps, got"),
        (lambda state: {**state, "buffer": "IRISReplayBuffer"}, "expected a ReplayBuffer, got a IRISReplayBuffer"),
        (lambda state: {**state, "settings": {}}, "settings: expected obs_shape, action_size"),
        (lambda state: {**state, "settings": {**state["settings"], "obs_shape": "big"}}, "settings: obs_shape"),
        (lambda state: {**state, "steps": 3}, "steps: is damaged"),
        (lambda state: {**state, "steps": {**state["steps"], "slot": -1}}, "slot: expected a whole number"),
        (lambda state: {**state, "steps": {**state["steps"], "open": 1}}, "open: expected a bool, got 1"),
        (lambda state: {**state, "steps": {**state["steps"], "generator": 1}}, "generator: not the state"),
        (lambda state: {**state, "replay": {}}, "expected the keys version, about and arrays"),
    ],
)
def test_a_damaged_state_is_refused(damage, text):
    """One typed error says what is wrong, and the buffer is as it was."""
    target = fill(buffer(size=20), 33)
    before = shown(target)

    with pytest.raises(CheckpointError, match=re.escape(text)):
        target.load_state_dict(damage(target.state_dict()))

    assert shown(target) == before


def test_a_saved_buffer_goes_on_where_it_was_saved(tmp_path):
    """All that a buffer was made with comes back, the same windows come next, and what was noted is there."""
    target = fill(buffer(size=20, seq_len=4, cross_boundaries=True), 33)
    target.save(tmp_path / "saved", notes={"epoch": 3})
    expected = target.sample(include_terminated=True)

    other = ReplayBuffer.load(tmp_path / "saved")

    assert all(map(np.array_equal, expected, other.sample(include_terminated=True)))
    assert (other.size, other.seq_len, other.batch_size, other.cross_boundaries) == (20, 4, 4, True)
    assert other.notes == {"epoch": 3}
    assert np.array_equal(other.observations, target.observations)


def test_a_saved_buffer_may_get_another_size(tmp_path):
    """The newest steps are kept."""
    fill(buffer(size=20, seq_len=3), 33).save(tmp_path / "saved")

    small, large = ReplayBuffer.load(tmp_path / "saved", size=9), ReplayBuffer.load(tmp_path / "saved", size=50)

    assert (len(small), small.full, small.idx) == (9, True, 0)
    assert (len(large), large.full, large.idx) == (20, False, 20)
    assert small.rewards.tolist() == list(range(24, 33))
    assert large.rewards[:20].tolist() == list(range(13, 33))
    assert {window[0] for window in drawn(small)} == {24, 25, 28, 29, 30}


def test_the_episode_that_was_open_ends_unless_it_goes_on(tmp_path):
    """After a load the next step begins an episode; with open="continue" it is of the one that was open."""
    fill(buffer(size=20, seq_len=3), 10, episode=1000).save(tmp_path / "saved")

    ended, open_ = (ReplayBuffer.load(tmp_path / "saved", open=word) for word in ("truncate", "continue"))

    for target in (ended, open_):
        assert target.episodes == 0
        fill(target, 3, start=10, episode=1000)
    assert {window[0] for window in drawn(ended)} == {*range(8), 10}
    assert {window[0] for window in drawn(open_)} == set(range(11))
    assert ended.terminals[:13].tolist() == [0] * 9 + [1] + [0] * 3
    assert (ended.episodes, open_.episodes) == (1, 0)
    with pytest.raises(ValueError, match='open: expected "truncate" or "continue", got \'end\''):
        ReplayBuffer.load(tmp_path / "saved", open="end")


def test_a_save_of_something_else_is_refused(tmp_path):
    """A plain replay, another kind of buffer and a missing directory are told apart."""
    target = fill(buffer(), 9)
    target.replay.save(tmp_path / "plain")

    with pytest.raises(CheckpointError, match="holds a plain Replay, not a ReplayBuffer"):
        ReplayBuffer.load(tmp_path / "plain")
    with pytest.raises(CheckpointError, match="gone"):
        ReplayBuffer.load(tmp_path / "gone")


# -- beside the original


def original(size=40, seq_len=5, batch_size=4):
    """Make one of simulusion's, where it is installed."""
    simulusion = pytest.importorskip("simulusion")
    return simulusion.ReplayBuffer(size, SHAPE, 2, seq_len, batch_size)


def test_beside_the_original_no_window_crosses_an_end():
    """With episodes of seven steps and windows of ten all of the original's cross one, and none of ours exists."""
    theirs, ours = (fill(target, 200) for target in (original(300, 10, 800), buffer(300, 10, 800)))

    assert (theirs.sample()[3][:-1] > 0).any(axis=0).sum() == 800
    assert not ours.can_sample()
    ours.seq_len = 5
    assert not (ours.sample()[3][:-1] > 0).any()


def test_beside_the_original_little_data_is_refused():
    """Where the original draws rows that nobody wrote, ours says how many steps there are."""
    theirs, ours = (fill(target, 3, episode=1000) for target in (original(), buffer()))

    assert theirs.sample()[2].shape == (5, 4)
    with pytest.raises(NotEnoughData, match="3 transitions are held"):
        ours.sample()


def test_beside_the_original_a_sample_comes_to_its_end(monkeypatch):
    """With less than two windows in the ring the original can draw for ever; ours gives the one there is."""
    theirs, ours = (fill(target, 13, episode=1000) for target in (original(9, 5, 1), buffer(9, 5, 1)))
    tries = iter(range(1000))
    monkeypatch.setattr(np.random, "randint", lambda low, high: low + next(tries) % (high - low))

    with pytest.raises(StopIteration):
        theirs.sample()
    assert drawn(ours) == {tuple(range(first, first + 5)) for first in range(4, 9)}


def test_beside_the_original_every_legal_start_is_drawn():
    """In a full ring the original never draws some starts, among them the last; ours draws all."""
    theirs, ours = (fill(target, 65, episode=1000) for target in (original(40, 5, 50), buffer(40, 5, 50)))

    legal = set(range(25, 61))
    assert {window[0] for window in drawn(ours)} == legal
    assert len(legal - {window[0] for window in drawn(theirs)}) >= 5


def test_beside_the_original_slots_are_the_same():
    """After the same steps the arrays by slot are the same."""
    theirs, ours = (fill(target, 95, episode=11) for target in (original(), buffer()))

    for name in ("observations", "actions", "rewards", "terminals", "terminated"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    for name in ("size", "obs_shape", "action_size", "seq_len", "batch_size", "idx", "full", "steps", "episodes"):
        assert getattr(ours, name) == getattr(theirs, name), name
    for mine, their in zip(ours.sample(True), theirs.sample(True), strict=True):
        assert (mine.shape, mine.dtype) == (their.shape, their.dtype)
