"""The buffer of Dreamer."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worldmodels.book import FOREIGN, LARGE, PROGRAMS, SMALL, Book, image, numbers
from tests.worldmodels.dreaming import SHAPE, buffer, drawn, fill, shown

from ringfence import BudgetExceeded, NotEnoughData, SchemaError
from ringfence.worldmodels import ReplayBuffer


class Pair:
    """A buffer and the book that says what it holds."""

    def __init__(self, size, length, shape, cross):
        self.book, self.length, self.shape = Book(size), length, shape
        self.buffer = ReplayBuffer(size, shape, 1, length, 16, seed=3, cross_boundaries=cross)
        self.number, self.done = 1, {}

    def do(self, op, tmp_path_factory):
        """Run one line of a program on both."""
        if op["do"] == "step":
            self.step(**{name: value for name, value in op.items() if name != "do"})
        elif op["do"] in ("cut", "clear"):
            getattr(self.buffer, op["do"])()
            getattr(self.book, op["do"])()
        elif op["do"] == "save":
            path = tmp_path_factory.mktemp("save")
            self.buffer.save(path)
            self.buffer, self.book.left = ReplayBuffer.load(path), True
        else:
            other = ReplayBuffer(self.book.size, self.shape, 1, self.length, 16)
            other.cross_boundaries = self.buffer.cross_boundaries
            other.load_state_dict(self.buffer.state_dict(), open=op["do"])
            self.buffer, self.book.left = other, op["do"] == "truncate"

    def step(self, ended, terminated, given):
        """Add a step to both."""
        after = {"not": None, "right": self.number + 1, "wrong": self.number + FOREIGN}[given]
        next_obs = None if after is None else {"image": image(after, self.shape)}
        picture = {"image": image(self.number, self.shape)}
        self.buffer.add(picture, [float(self.number)], self.number, ended, ended and terminated, next_obs)
        self.book.add(self.number, ended, ended and terminated, after)
        self.number += 1

    def compare(self):
        """Find the same steps, windows and counts in both."""
        buffer, book = self.buffer, self.book
        held = [step.number for step in book.steps]
        legal = book.windows(self.length, cross=buffer.cross_boundaries)
        assert len(buffer) == len(held)
        assert (buffer.steps, buffer.episodes) == (book.added, book.episodes)
        assert (buffer.idx, buffer.full) == (book.added % book.size, book.added >= book.size)
        assert numbers(np.asarray(buffer.observations), 1).tolist() == book.slots
        assert buffer.rewards.tolist() == book.slots
        assert buffer.can_sample(len(legal))
        assert not buffer.can_sample(len(legal) + 1)
        if not legal:
            with pytest.raises(NotEnoughData, match="no step can be drawn"):
                buffer.sample()
            return
        found, ends = set(), {step.number: (step.last, step.terminated) for step in book.steps}
        for _ in range(6 * len(legal) + 10):
            obs, action, reward, done, terminated = buffer.sample(include_terminated=True)
            shown = numbers(obs, 2)
            assert np.array_equal(shown, reward)
            assert np.array_equal(shown, action[..., 0])
            for index, number in np.ndenumerate(shown):
                assert (bool(done[index]), bool(terminated[index])) == ends[number]
            found |= set(map(tuple, shown.T.tolist()))
        assert found == legal


@settings(max_examples=60)
@given(
    program=PROGRAMS,
    size=st.integers(1, 12),
    length=st.integers(1, 5),
    shape=st.sampled_from([SMALL, LARGE]),
    cross=st.booleans(),
)
def test_it_holds_and_draws_what_a_list_of_steps_would(program, size, length, shape, cross, tmp_path_factory):
    """After any program of adds, ends, resets and saves, the windows drawn are all legal ones and no other."""
    pair = Pair(max(size, length), length, shape, cross)
    for op in program:
        pair.do(op, tmp_path_factory)
    pair.compare()


def test_windows_are_drawn_uniformly():
    """Each window that lies inside one episode comes up as often as any other, in a ring that has turned."""
    target = fill(buffer(size=20, seq_len=3, batch_size=6000), 31)

    firsts, counts = np.unique(target.sample()[2][0], return_counts=True)

    legal = [first for first in range(11, 29) if first // 7 == (first + 2) // 7]
    assert firsts.tolist() == legal
    expected = 6000 / len(legal)
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic < 2.5 * len(legal), f"seed 0: {statistic}"


@pytest.mark.parametrize("episode", [7, 1000])
def test_it_can_be_made_as_the_original_is(episode):
    """Positions and keywords, attributes, shapes and dtypes are those of the original."""
    by_position = ReplayBuffer(60, SHAPE, 2, 5, 4)
    by_keyword = ReplayBuffer(size=60, obs_shape=SHAPE, action_size=2, seq_len=5, batch_size=4)
    for target in (by_position, by_keyword):
        fill(target, 70, episode)

        obs, act, rew, term = target.sample()
        five = target.sample(include_terminated=True)

        assert (obs.shape, obs.dtype) == ((5, 4, *SHAPE), np.uint8)
        assert (act.shape, act.dtype) == ((5, 4, 2), np.float32)
        assert (rew.shape, rew.dtype) == (term.shape, term.dtype) == ((5, 4), np.float32)
        assert (five[4].shape, five[4].dtype) == ((5, 4), np.float32)
        assert (target.size, target.obs_shape, target.action_size, target.seq_len, target.batch_size) == (
            60,
            SHAPE,
            2,
            5,
            4,
        )
        assert (target.idx, target.full, target.steps, target.episodes) == (10, True, 70, 70 // episode)
        assert target.observations.shape == (60, *SHAPE)
        assert (target.actions.shape, target.rewards.shape) == ((60, 2), (60,))
        assert target.terminals.shape == target.terminated.shape == (60,)
        assert {array.dtype for array in (target.actions, target.rewards, target.terminals)} == {np.dtype(np.float32)}


def test_sequence_and_batch_have_the_sizes_of_the_page():
    """A buffer that is made with a size, a shape and an action alone draws 50 windows of 50 steps."""
    target = fill(ReplayBuffer(size=200, obs_shape=SHAPE, action_size=2), 120, episode=1000)

    assert target.sample()[0].shape == (50, 50, *SHAPE)


def test_length_and_batch_may_be_changed_between_samples():
    """What an agent sets on the buffer counts from the next sample on."""
    target = fill(buffer(), 40, episode=1000)
    target.sample()

    target.seq_len, target.batch_size = 9, 2

    assert target.sample()[0].shape == (9, 2, *SHAPE)
    target.seq_len = 0
    with pytest.raises(SchemaError, match=r"seq_len: expected a whole number of at least 1, got 0"):
        target.sample()
    target.seq_len, target.batch_size = 41, 2
    with pytest.raises(NotEnoughData, match=r"40 transitions are held.*no stream of this ring ever holds 41 steps"):
        target.sample()
    target.seq_len, target.batch_size = 4, 2.5
    with pytest.raises(SchemaError, match=r"batch_size: expected a whole number of at least 1, got 2\.5"):
        target.sample()


def test_flags_are_given_back_as_they_came():
    """Bools, floats between 0 and 1 and NumPy's scalars are stored to the last digit."""
    target = buffer(size=8, seq_len=1, batch_size=200)
    given_ = [(True, None), (0.25, 0.5), (np.float64(1), False), (np.bool_(False), np.float32(0)), (0, 0)]
    for number, (done, terminated) in enumerate(given_):
        target.add({"image": np.zeros(SHAPE, np.uint8)}, [0.0, 0.0], number, done, terminated)

    _, _, reward, done, terminated = target.sample(include_terminated=True)

    found = sorted(set(zip(reward[0].tolist(), done[0].tolist(), terminated[0].tolist(), strict=True)))
    assert found == [(0, 1, 1), (1, 0.25, 0.5), (2, 1, 0), (3, 0, 0), (4, 0, 0)]
    assert target.episodes == 3


def test_windows_that_cross_an_end_are_drawn_when_asked_for():
    """With cross_boundaries every window that is held is drawn, and terminals tell where an episode ends."""
    target = fill(buffer(size=20, seq_len=6, cross_boundaries=True), 30)

    assert {window[0] for window in drawn(target)} == set(range(10, 25))
    target.cross_boundaries = False
    assert {window[0] for window in drawn(target)} == {14, 15, 21, 22}


def test_a_reset_that_nobody_told_of_is_an_end():
    """Where next_obs is given and the next step shows another image, no window crosses, and the row says so."""
    target = buffer(size=10, seq_len=2)
    for number in range(6):
        after = {"image": np.full(SHAPE, 99 if number == 2 else number + 1, np.uint8)}
        target.add({"image": np.full(SHAPE, number, np.uint8)}, [0.0, 0.0], number, False, next_obs=after)

    assert drawn(target) == {(0, 1), (1, 2), (3, 4), (4, 5)}
    assert target.terminals.tolist() == [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert target.terminated.sum() == 0
    assert target.episodes == 1


def test_the_last_observation_of_an_episode_is_kept():
    """What came after a truncation is in the ring, for views that show it."""
    target = fill(buffer(size=20, seq_len=3), 6, episode=1000)
    picture = np.full(SHAPE, 77, np.uint8)
    target.add({"image": picture}, [0.0, 0.0], 6.0, True, False, {"image": picture + 1})
    fill(target, 7, start=7)

    batch = target.replay.sequences(7, bootstrap=True).sample(50)

    ended = batch.reward[:, -1] == 6
    assert ended.any()
    assert (batch.obs[ended][:, -1] == 78).all()
    assert batch.truncated[ended][:, -1].all()


def test_tensors_are_taken():
    """PyTorch's tensors serve as images, actions, rewards and flags, those with a graph too."""
    torch = pytest.importorskip("torch")
    target = buffer(size=8, seq_len=1, batch_size=1)

    target.add(
        {"image": torch.full(SHAPE, 5, dtype=torch.uint8)},
        torch.tensor([1.0, 2.0], requires_grad=True),
        torch.tensor(3.0),
        torch.tensor(True),
        torch.tensor(0.0),
        {"image": torch.zeros(SHAPE, dtype=torch.uint8)},
    )

    obs, act, rew, term, terminated = target.sample(include_terminated=True)
    assert (obs == 5).all()
    assert act.tolist() == [[[1, 2]]]
    assert (rew.item(), term.item(), terminated.item()) == (3, 1, 0)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"obs": {"picture": 0}}, "obs: expected a dict with the key \"image\", got one with 'picture'"),
        ({"obs": {}}, 'obs: expected a dict with the key "image", got one with nothing'),
        (
            {"obs": np.zeros(SHAPE, np.uint8)},
            'obs: expected a dict with the key "image", got an array of (3, 8, 8) uint8',
        ),
        ({"obs": None}, 'obs: expected a dict with the key "image", got NoneType None'),
        ({"obs": {"image": np.zeros((8, 8, 3), np.uint8)}}, "obs: expected shape (3, 8, 8), got (8, 8, 3)"),
        ({"obs": {"image": np.zeros(SHAPE)}}, "obs: expected uint8, got float64"),
        ({"obs": {"image": np.full(SHAPE, 300)}}, "obs: expected a value that fits uint8, got 300"),
        ({"next_obs": {"frame": 0}}, "next_obs: expected a dict with the key \"image\", got one with 'frame'"),
        ({"next_obs": {"image": np.zeros(2, np.uint8)}}, "next_obs: expected shape (3, 8, 8), got (2,)"),
        ({"ac": np.zeros(3, np.float32)}, "action: expected shape (2,), got (3,)"),
        ({"ac": 0.0}, "action: expected shape (2,), got ()"),
        ({"rew": np.zeros(1)}, "reward: expected shape (), got (1,)"),
        ({"rew": "much"}, "reward: expected numbers, got dtype"),
        ({"done": 2}, "done: expected a bool or a number from 0 to 1, got int 2"),
        ({"done": float("nan")}, "done: expected a bool or a number from 0 to 1, got float nan"),
        ({"done": np.zeros(1)}, "done: expected a bool or a number from 0 to 1, got an array of (1,) float64"),
        ({"done": "yes"}, "done: expected a bool or a number from 0 to 1, got str yes"),
        ({"terminated": -1.0}, "terminated: expected a bool or a number from 0 to 1, got float -1.0"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_a_step_that_does_not_fit_changes_nothing(change, text):
    """One typed error names what is wrong, and the buffer is as it was."""
    target = fill(buffer(), 9)
    before = shown(target)
    step = {"obs": {"image": np.zeros(SHAPE, np.uint8)}, "ac": np.zeros(2, np.float32), "rew": 0.0, "done": False}

    with pytest.raises(SchemaError, match=re.escape(text)):
        target.add(**{**step, **change})

    assert shown(target) == before


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"size": 49}, SchemaError, "size: expected at least the 50 steps of one window (seq_len), got 49"),
        ({"size": 0}, SchemaError, "size: expected a whole number of at least 1, got 0"),
        ({"size": 1e3}, SchemaError, "size: expected a whole number of at least 1, got 1000.0"),
        ({"size": None}, ValueError, 'size: give a number of steps, or budget="2 GiB"'),
        ({"obs_shape": None}, SchemaError, "obs_shape: expected a shape such as (3, 64, 64), got None"),
        ({"obs_shape": (3, 0)}, SchemaError, "obs_shape: expected sizes of 1 or more, got [3, 0]"),
        ({"action_size": None}, SchemaError, "action_size: expected a whole number of at least 1, got None"),
        ({"seq_len": 0}, SchemaError, "seq_len: expected a whole number of at least 1, got 0"),
        ({"batch_size": True}, SchemaError, "batch_size: expected a whole number of at least 1, got True"),
        ({"budget": "1 KiB"}, BudgetExceeded, "a ring of 60 transitions takes"),
        ({"size": 10**9}, BudgetExceeded, "would fit"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_buffer_that_makes_no_sense_is_refused(arguments, error, text):
    """One typed error names the argument, what was expected and what came."""
    with pytest.raises(error, match=re.escape(text)):
        ReplayBuffer(**{"size": 60, "obs_shape": (3, 64, 64), "action_size": 2, **arguments})


def test_a_budget_is_filled_and_kept():
    """Without a size there is room for as many steps as the budget holds."""
    target = ReplayBuffer(obs_shape=(3, 16, 16), action_size=6, budget="20 MiB", seed=0)

    assert 19 << 20 < target.nbytes <= 20 << 20
    assert target.nbytes / target.size < (1 + 1 / 60) * 3 * 16 * 16 + 4 * 6 + 30


def test_too_little_data_is_one_error_at_once():
    """Short buffers and short episodes are refused with counts, and can_sample says so before."""
    target = buffer(seq_len=5)
    assert not target.can_sample()
    with pytest.raises(NotEnoughData, match=r"0 transitions are held.*windows of 5 step"):
        target.sample()
    fill(target, 30, episode=3)
    assert not target.can_sample()
    with pytest.raises(NotEnoughData, match=r"30 transitions are held.*longest run inside one episode is 3"):
        target.sample()
    fill(target, 5, start=30)
    assert target.can_sample()


def test_the_same_seed_draws_the_same_windows():
    """The seed alone decides; NumPy's global generator is neither used nor moved."""
    state = np.random.get_state()[1].tolist()  # noqa: NPY002, to see that nobody moves it
    first, second, other = (fill(buffer(seed=seed), 40) for seed in (4, 4, 5))

    assert np.array_equal(first.sample()[2], second.sample()[2])
    assert not np.array_equal(first.sample()[2], other.sample()[2])
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002


def test_samples_are_copies():
    """Changing what was drawn, or adding, changes neither the ring nor what was drawn."""
    target = fill(buffer(size=10, batch_size=30), 10, episode=1000)
    obs, *_ = target.sample()
    kept = obs.copy()

    fill(target, 10, start=100)

    assert np.array_equal(obs, kept)
    obs[:] = 0
    assert (target.sample()[0] >= 100).all()


def test_images_of_all_slots_are_read_like_an_array():
    """Every way to index an array gives the same from the slots, and a copy."""
    target = fill(buffer(size=12), 17)
    plain = np.asarray(target.observations)

    for key in (3, -1, slice(2, 9, 3), [1, 1, 5], np.array([[0, 3], [7, -2]]), plain[:, 0, 0, 0] > 5, ..., None):
        assert np.array_equal(target.observations[key], plain[key])
    for key in ((3, 1), (slice(4), 0, 2), ([1, 2], ..., 0), ([1, 2], [0, 1]), (slice(None), [0, 2])):
        assert np.array_equal(target.observations[key], plain[key])
    assert plain[:5, 0, 0, 0].tolist() == [12, 13, 14, 15, 16]
    assert len(target.observations) == 12
    assert target.observations.nbytes == plain.nbytes
    assert target.observations.ndim == 4
    with pytest.raises(IndexError, match="index 12 is out of bounds for 12 slots"):
        target.observations[12]
    with pytest.raises(IndexError, match="index -13 is out of bounds for 12 slots"):
        target.observations[[0, -13]]


def test_slots_cannot_be_written_to():
    """An assignment that would go to a copy is refused, and so lost by nobody."""
    target = fill(buffer(), 9)

    with pytest.raises(TypeError, match="read only: add"):
        target.observations[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        target.rewards[0] = 1
    with pytest.raises(AttributeError):
        target.idx = 3
