"""The buffer of IRIS."""

import io
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worldmodels.book import FOREIGN, LARGE, PROGRAMS, SMALL, Book, image, numbers

from ringfence import CheckpointError, NotEnoughData, SchemaError
from ringfence.worldmodels import IRISReplayBuffer, ReplayBuffer

SHAPE = (3, 8, 8)


def buffer(size=40, seq_len=5, batch_size=4, **options):
    """Make a small one."""
    return IRISReplayBuffer(size, SHAPE, 2, seq_len, batch_size, **{"seed": 0, **options})


def picture(number):
    """Draw a number."""
    return np.full(SHAPE, number % 256, np.uint8)


def fill(target, count, episode=7, start=0):
    """Add steps whose image, action and reward are their number, in episodes of one length."""
    for number in range(start, start + count):
        target.add(picture(number), np.array([number, 0], np.float32), float(number), (number + 1) % episode == 0)
    return target


def drawn(target, rounds=100, **options):
    """Give the windows of many samples, as the numbers that stand in their images."""
    batches = [target.sample_sequence(**options)[0][:, :, 0, 0, 0] for _ in range(rounds)]
    return {tuple(window) for batch in batches for window in batch.astype(int).tolist()}


class Pair:
    """A buffer and the book that says what it holds."""

    def __init__(self, size, length, shape):
        self.book, self.length, self.shape = Book(size), length, shape
        self.buffer = IRISReplayBuffer(size, shape, 1, length, 16, seed=3)
        self.number = 1

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
            self.buffer, self.book.left = IRISReplayBuffer.load(path), True
        else:
            other = IRISReplayBuffer(self.book.size, self.shape, 1, self.length, 16)
            other.load_state_dict(self.buffer.state_dict(), open=op["do"])
            self.buffer, self.book.left = other, op["do"] == "truncate"

    def step(self, ended, terminated, given):
        """Add a step to both."""
        after = {"not": None, "right": self.number + 1, "wrong": self.number + FOREIGN}[given]
        self.buffer.add(
            image(self.number, self.shape),
            [float(self.number)],
            self.number,
            ended and terminated,
            next_obs=None if after is None else image(after, self.shape),
            truncated=ended and not terminated,
        )
        self.book.add(self.number, ended, ended and terminated, after)
        self.number += 1

    def compare(self):
        """Find the same steps, windows and counts in both."""
        buffer, book = self.buffer, self.book
        legal = book.windows(self.length, settled=True)
        assert len(buffer) == len(book.steps)
        assert (buffer.steps, buffer.episodes) == (book.added, book.episodes)
        assert numbers(buffer.observations[:], 1).tolist() == book.slots
        assert buffer.can_sample(len(legal))
        assert not buffer.can_sample(len(legal) + 1)
        if not legal:
            with pytest.raises(NotEnoughData, match="no step can be drawn"):
                buffer.sample_sequence()
            return
        found, ends = set(), {step.number: step.terminated for step in book.steps}
        for _ in range(6 * len(legal) + 10):
            obs, action, reward, terminal = buffer.sample_sequence()
            shown = numbers(obs, 2)
            assert np.array_equal(shown[:, :-1], reward)
            assert np.array_equal(shown[:, :-1], action[..., 0])
            assert np.array_equal(terminal, np.vectorize(ends.get)(reward))
            found |= set(map(tuple, shown.tolist()))
        assert found == legal

    def compare_contexts(self, before):
        """Find the same images to imagine from, behind the same ones."""
        legal = self.book.contexts(before)
        if not legal:
            with pytest.raises(NotEnoughData, match="no step can be drawn"):
                self.buffer.sample_with_burn_in(1, before)
            return
        found = set()
        for _ in range(6 * len(legal) + 10):
            start, earlier = self.buffer.sample_with_burn_in(16, before)
            shown = np.concatenate([numbers(earlier, 2), numbers(start, 1)[:, None]], axis=1)
            found |= set(map(tuple, shown.tolist()))
        assert found == legal


@settings(max_examples=60)
@given(
    program=PROGRAMS,
    size=st.integers(1, 12),
    length=st.integers(1, 5),
    before=st.integers(0, 4),
    shape=st.sampled_from([SMALL, LARGE]),
)
def test_it_holds_and_draws_what_a_list_of_steps_would(program, size, length, before, shape, tmp_path_factory):
    """After any program of adds, ends, resets and saves, the windows drawn are all legal ones and no other."""
    pair = Pair(max(size, length), length, shape)
    for op in program:
        pair.do(op, tmp_path_factory)
    pair.compare()
    pair.compare_contexts(before)


@pytest.mark.parametrize("open_steps", [0, 3, 6])
def test_windows_are_drawn_uniformly(open_steps):
    """Each legal window comes up as often as any other, also where one is left out whose last successor is to come."""
    target = fill(buffer(size=20, seq_len=4, batch_size=7000), 35)
    fill(target, open_steps, start=35, episode=1000)
    head = 35 + open_steps
    legal = [first for first in range(head - 20, 32) if first // 7 == (first + 3) // 7]
    legal += [35, 36][: max(0, open_steps - 4)]  # of six open steps the first two windows have their last successor

    firsts, counts = np.unique(target.sample_sequence()[2][:, 0], return_counts=True)

    assert firsts.tolist() == legal
    expected = 7000 / len(legal)
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic < 2.5 * len(legal), f"seed 0: {statistic}"


def test_it_can_be_made_as_the_original_is():
    """Positions and keywords, attributes, shapes and dtypes are those of the original."""
    by_position = IRISReplayBuffer(60, SHAPE, 2, 5, 4)
    by_keyword = IRISReplayBuffer(size=60, obs_shape=SHAPE, action_size=2, seq_len=5, batch_size=4)
    for target in (by_position, by_keyword):
        fill(target, 70)

        obs, act, rew, term = target.sample_sequence()
        one = target.sample_single()
        start, earlier = target.sample_with_burn_in(3, 4)

        assert (obs.shape, obs.dtype) == ((4, 6, *SHAPE), np.uint8)
        assert (act.shape, act.dtype) == ((4, 5, 2), np.float32)
        assert (rew.shape, rew.dtype) == (term.shape, term.dtype) == ((4, 5), np.float32)
        assert target.sample_sequence(seq_len=2)[0].shape == (4, 3, *SHAPE)
        assert (one[0].shape, one[1].shape) == (SHAPE, (2,))
        assert [type(number) for number in one[2:]] == [np.float32, np.float32]
        assert (start.shape, start.dtype) == ((3, *SHAPE), np.uint8)
        assert (earlier.shape, earlier.dtype) == ((3, 4, *SHAPE), np.uint8)
        assert target.sample_with_burn_in(batch_size=3, burn_in=0)[1].shape == (3, 0, *SHAPE)
        assert (target.idx, target.full, target.steps, target.episodes) == (10, True, 70, 10)
        assert (len(target), target.buffer_capacity, target.size) == (60, 60, 60)
        assert target.observations.shape == (60, *SHAPE)
    made = fill(IRISReplayBuffer(size=100, obs_shape=SHAPE, action_size=2), 100, episode=1000)
    assert made.sample_sequence()[0].shape == (64, 21, *SHAPE)


def test_the_last_image_is_what_followed():
    """At an episode's end it is the one that was given, or the step's own again, and never another episode's."""
    target = buffer(size=20, seq_len=3, batch_size=40)
    for number in range(12):
        after = picture(200) if number == 3 else None
        target.add(picture(number), [0.0, 0.0], number, number in (3, 7), next_obs=after)

    windows = drawn(target)

    assert {window for window in windows if window[2] in (3, 7)} == {(1, 2, 3, 200), (5, 6, 7, 7)}
    assert {window[-1] for window in windows} == {3, 200, 7, 11}


def test_the_newest_step_waits_for_its_successor():
    """A window whose last successor is not there yet is not drawn; it is once the successor is given, or comes."""
    target = fill(buffer(size=20, seq_len=3, batch_size=1), 3)
    assert not target.can_sample()
    with pytest.raises(NotEnoughData, match=r"3 transitions are held.*the only such window ends at the newest step"):
        target.sample_sequence()

    fill(target, 1, start=3)
    assert drawn(target) == {(0, 1, 2, 3)}
    target.add(picture(4), [0.0, 0.0], 4.0, False, next_obs=picture(5))
    assert drawn(target) == {(0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5)}


def test_a_stop_by_a_time_limit_ends_windows_and_no_more():
    """With truncated no window goes on, and terminals stay 0."""
    target = buffer(size=20, seq_len=2, batch_size=40)
    for number in range(6):
        target.add(picture(number), [0.0, 0.0], number, False, truncated=number == 2)

    assert drawn(target) == {(0, 1, 2), (1, 2, 2), (3, 4, 5)}
    assert not target.sample_sequence()[3].any()
    assert target.episodes == 1


def test_burn_in_stays_inside_the_episode():
    """Where an episode has fewer images before one, its first is repeated; where they are gone, it is not drawn."""
    target = fill(buffer(size=9, batch_size=1), 16)  # 7 to 15: one whole episode, and the beginning of the next

    found = set().union(*(contexts(target) for _ in range(50)))
    assert found == {(7, 7, 7), (14, 14, 14), (14, 14, 15)} | {(max(7, n - 2), n - 1, n) for n in range(8, 14)}
    fill(target, 3, start=16)
    found = set().union(*(contexts(target) for _ in range(50)))
    assert {context[-1] for context in found} == set(range(12, 19))
    assert (10, 11, 12) in found


def contexts(target):
    """Draw four images, each behind the two before it."""
    start, earlier = target.sample_with_burn_in(4, 2)
    return set(map(tuple, np.concatenate([earlier, start[:, None]], axis=1)[:, :, 0, 0, 0].tolist()))


def test_single_steps_are_uniform_and_copies():
    """Each step held comes up, and changing one changes nothing."""
    target = fill(buffer(size=10), 25, episode=1000)

    found = [target.sample_single() for _ in range(300)]

    assert {int(reward) for _, _, reward, _ in found} == set(range(15, 25))
    for obs, action, reward, _ in found:
        assert obs[0, 0, 0] == action[0] == reward
        obs[:] = 0
        action[:] = 0
    assert target.rewards.min() == 15
    assert np.asarray(target.observations).min() == 15
    with pytest.raises(NotEnoughData, match="0 transitions are held"):
        buffer().sample_single()
    with pytest.raises(NotEnoughData, match="0 transitions are held"):
        buffer().sample_with_burn_in(1, 1)


def test_terminals_are_given_back_as_they_came():
    """Bools and numbers from 0 to 1 are stored to the last digit; any but 0 ends the episode."""
    target = buffer(size=8, seq_len=1, batch_size=200)
    for number, terminal in enumerate([True, 0.25, np.False_, np.float64(1)]):
        target.add(picture(number), [0.0, 0.0], number, terminal)

    _, _, reward, terminal = target.sample_sequence()

    found = sorted(set(zip(reward[:, 0].tolist(), terminal[:, 0].tolist(), strict=True)))
    assert found == [(0, 1), (1, 0.25), (2, 0), (3, 1)]
    assert target.episodes == 3


def test_tensors_are_taken():
    """PyTorch's tensors serve as images, actions, rewards and flags, those with a graph too."""
    torch = pytest.importorskip("torch")
    target = buffer(size=8, seq_len=1, batch_size=1)

    target.add(
        torch.full(SHAPE, 5, dtype=torch.uint8),
        torch.tensor([1.0, 2.0], requires_grad=True),
        torch.tensor(3.0),
        torch.tensor(1.0),
        next_obs=torch.full(SHAPE, 6, dtype=torch.uint8),
    )

    obs, act, rew, term = target.sample_sequence()
    assert obs[0, :, 0, 0, 0].tolist() == [5, 6]
    assert act.tolist() == [[[1, 2]]]
    assert (rew.item(), term.item()) == (3, 1)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"obs": {"image": picture(0)}}, "obs: expected numbers, got dtype object (dict)"),
        ({"obs": np.zeros((8, 8, 3), np.uint8)}, "obs: expected shape (3, 8, 8), got (8, 8, 3)"),
        ({"obs": np.zeros(SHAPE, np.float32)}, "obs: expected uint8, got float32"),
        ({"next_obs": picture(0)[0]}, "next_obs: expected shape (3, 8, 8), got (8, 8)"),
        ({"action": 1}, "action: expected shape (2,), got ()"),
        ({"reward": [0.0]}, "reward: expected shape (), got (1,)"),
        ({"terminal": None}, "terminal: expected a bool or a number from 0 to 1, got NoneType None"),
        ({"truncated": "no"}, "truncated: expected a bool or a number from 0 to 1, got str no"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_a_step_that_does_not_fit_changes_nothing(change, text):
    """One typed error names what is wrong, and the buffer is as it was."""
    target = fill(buffer(), 9)
    before = target.replay.stats(), target.state_dict()["steps"]
    step = {"obs": picture(0), "action": np.zeros(2, np.float32), "reward": 0.0, "terminal": False}

    with pytest.raises(SchemaError, match=re.escape(text)):
        target.add(**{**step, **change})

    assert (target.replay.stats(), target.state_dict()["steps"]) == before
    assert drawn(fill(target, 2, start=9), seq_len=3) == {
        (0, 1, 2, 3),
        (1, 2, 3, 4),
        (2, 3, 4, 5),
        (3, 4, 5, 6),
        (4, 5, 6, 6),
        (7, 8, 9, 10),
    }


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"size": 19}, "size: expected at least the 20 steps of one window (seq_len), got 19"),
        ({"obs_shape": "image"}, "obs_shape: expected sizes of 1 or more"),
        ({"action_size": 2.0}, "action_size: expected a whole number of at least 1, got 2.0"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_a_buffer_that_makes_no_sense_is_refused(arguments, text):
    """One typed error names the argument, what was expected and what came."""
    with pytest.raises(SchemaError, match=re.escape(text)):
        IRISReplayBuffer(**{"size": 60, "obs_shape": SHAPE, "action_size": 2, **arguments})


def test_numbers_that_make_no_sense_are_refused():
    """Samples name the argument that is wrong."""
    target = fill(buffer(), 20)

    with pytest.raises(SchemaError, match="seq_len: expected a whole number of at least 1, got 0"):
        target.sample_sequence(0)
    with pytest.raises(SchemaError, match="burn_in: expected a whole number of at least 0, got -1"):
        target.sample_with_burn_in(4, -1)
    with pytest.raises(SchemaError, match="batch_size: expected a whole number of at least 1, got 0"):
        target.sample_with_burn_in(0, 1)


def test_a_state_goes_on_where_it_was_taken():
    """A state goes through torch.save and torch.load(weights_only=True), and the same draws of every kind come next."""
    torch = pytest.importorskip("torch")
    target = fill(buffer(size=20), 33, episode=15)
    file = io.BytesIO()
    torch.save(target.state_dict(), file)
    file.seek(0)
    other = buffer(size=20, seed=5)

    other.load_state_dict(torch.load(file, weights_only=True))

    for draw in (
        lambda one: one.sample_sequence(),
        lambda one: one.sample_single(),
        lambda one: one.sample_with_burn_in(4, 3),
    ):
        for _ in range(2):
            assert all(map(np.array_equal, draw(target), draw(other)))
    with pytest.raises(CheckpointError, match="expected a ReplayBuffer, got a IRISReplayBuffer"):
        ReplayBuffer(20, SHAPE, 2, 5).load_state_dict(target.state_dict())


def test_a_saved_buffer_goes_on_where_it_was_saved(tmp_path):
    """The step that waits for its successor waits on, and begins the next episode's predecessor no more."""
    target = fill(buffer(size=20, seq_len=3), 10, episode=1000)
    target.save(tmp_path / "saved")

    ended, open_ = (IRISReplayBuffer.load(tmp_path / "saved", open=word) for word in ("truncate", "continue"))

    assert drawn(ended) == drawn(open_) == {(n, n + 1, n + 2, n + 3) for n in range(7)}
    for other in (ended, open_):
        fill(other, 1, start=50)
    assert drawn(ended) == {(n, n + 1, n + 2, n + 3) for n in range(7)} | {(7, 8, 9, 9)}
    assert drawn(open_) == {(n, n + 1, n + 2, n + 3) for n in range(7)} | {(7, 8, 9, 50)}


# -- beside the original


def original(size=40, seq_len=5, batch_size=4):
    """Make one of simulusion's, where it is installed."""
    simulusion = pytest.importorskip("simulusion")
    return simulusion.IRISReplayBuffer(size, SHAPE, 2, seq_len, batch_size)


def test_beside_the_original_no_window_crosses_the_head():
    """In a full ring the original joins the newest steps to the oldest; ours never does."""
    theirs, ours = (fill(target, 61, episode=1000) for target in (original(40, 10, 2000), buffer(40, 10, 2000)))

    jumps = [np.diff(target.sample_sequence()[2], axis=1) != 1 for target in (theirs, ours)]

    assert jumps[0].any(axis=1).sum() > 300
    assert not jumps[1].any()


def test_beside_the_original_the_image_after_an_end_is_of_that_episode():
    """The original shows the next episode's first image as an end's successor; ours does not."""
    theirs, ours = (fill(target, 30) for target in (original(40, 3, 2000), buffer(40, 3, 2000)))

    wrong = []
    for target in (theirs, ours):
        obs, _, reward, terminal = target.sample_sequence()
        ended = terminal[:, -1] > 0
        assert ended.any()
        wrong.append((obs[ended, -1, 0, 0, 0] // 7 != reward[ended, -1] // 7).all())

    assert wrong == [True, False]


def test_beside_the_original_episodes_that_are_too_short_are_refused():
    """Where every window crosses an end the original draws them all the same."""
    theirs, ours = (fill(target, 30) for target in (original(40, 10, 8), buffer(40, 10, 8)))

    assert (theirs.sample_sequence()[3][:, :-1] > 0).any()
    with pytest.raises(NotEnoughData, match="the longest run inside one episode is 7"):
        ours.sample_sequence()


def test_beside_the_original_single_steps_are_no_views():
    """Changing a step that was drawn changes the original's memory, and not ours."""
    theirs, ours = (fill(target, 30) for target in (original(), buffer()))

    for target in (theirs, ours):
        target.sample_single()[0][:] = 255

    assert (np.asarray(theirs.observations) == 255).any()
    assert not (np.asarray(ours.observations) == 255).any()


def test_beside_the_original_slots_are_the_same():
    """After the same steps the arrays by slot are the same."""
    theirs, ours = (fill(target, 95, episode=11) for target in (original(), buffer()))

    for name in ("observations", "actions", "rewards", "terminals"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    for name in ("size", "obs_shape", "action_size", "seq_len", "batch_size", "idx", "full", "steps", "episodes"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert (len(ours), ours.buffer_capacity) == (len(theirs), theirs.buffer_capacity)
    for mine, their in zip(ours.sample_sequence(), theirs.sample_sequence(), strict=True):
        assert (mine.shape, mine.dtype) == (their.shape, their.dtype)
    for mine, their in zip(ours.sample_with_burn_in(4, 3), theirs.sample_with_burn_in(4, 3), strict=True):
        assert (mine.shape, mine.dtype) == (their.shape, their.dtype)
