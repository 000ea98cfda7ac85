"""The buffer of DIAMOND."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence import CheckpointError, NotEnoughData, SchemaError

torch = pytest.importorskip("torch")
from ringfence.worldmodels.diamond import ReplayBuffer, SequenceDataset, to_model_domain, to_pixel_domain  # noqa: E402

SHAPE = (8, 6, 3)


def picture(number):
    """Draw a number in the first two pixels."""
    frame = np.zeros(SHAPE, np.uint8)
    frame[0, 0, 0], frame[0, 1, 0] = divmod(number, 256)
    return frame


def read(frames):
    """Read the numbers that stand in images (..., C, H, W)."""
    pixels = (to_pixel_domain(frames) * 255).round().long()
    return (pixels[..., 0, 0, 0] * 256 + pixels[..., 0, 0, 1]).numpy()


def buffer(capacity=20, **options):
    """Make a small one."""
    return ReplayBuffer(capacity, SHAPE, **{"device": "cpu", "seed": 0, **options})


def fill(target, count, episode=7, start=0):
    """Add steps whose image, action and reward are their number; 1000 and more follows an episode's end."""
    for number in range(start, start + count):
        last = (number + 1) % episode == 0
        target.add(picture(number), number, number, last, picture(1000 + number if last else number + 1))
    return target


class Model:
    """The same steps as a plain list."""

    def __init__(self, capacity):
        self.capacity, self.steps, self.added = capacity, [], 0

    def add(self, number, after, done, truncated):
        """Add a step; one that does not go on where the last one left off begins an episode."""
        if self.steps and self.steps[-1]["after"] != number:
            self.steps[-1]["last"] = True
        step = {"number": number, "after": after, "done": done, "last": done or truncated}
        self.steps = [*self.steps, step][-self.capacity :]
        self.added += 1

    def windows(self, length):
        """Give the legal windows, as numbers of steps and of what follows the last."""
        found = set()
        for first in range(len(self.steps) - length + 1):
            window = self.steps[first : first + length]
            if not any(step["last"] for step in window[:-1]):
                found.add((*(step["number"] for step in window), window[-1]["after"]))
        return found

    def boundaries(self):
        """Give the flags by slot."""
        ended = np.zeros(self.capacity, bool)
        for back, step in enumerate(reversed(self.steps), 1):
            ended[(self.added - back) % self.capacity] = step["last"]
        return ended


STEP = st.tuples(st.sampled_from([False] * 4 + [True]), st.booleans(), st.sampled_from([False] * 6 + [True]))
PROGRAMS = st.lists(st.one_of([STEP] * 9 + [st.sampled_from(["clear", "state", "save"])]), max_size=50)


def run(program, target, model, tmp_path_factory):
    """Run a program on both; give the buffer, which may be another one."""
    number = 1
    for op in program:
        if op == "clear":
            target.clear()
            model.steps, model.added = [], 0
        elif op == "state":
            other = buffer(model.capacity)
            other.load_state_dict(target.state_dict())
            target = other
        elif op == "save":
            path = tmp_path_factory.mktemp("save")
            target.save(path)
            target = ReplayBuffer.load(path, device="cpu")
        else:
            ended, done, jumps = op
            after = number + 1000 if ended or jumps else number + 1
            flags = ended and done, ended and not done
            target.add(picture(number), number, number, flags[0], picture(after), flags[1])
            model.add(number, after, *flags)
            number += 1
    return target


@settings(max_examples=60)
@given(program=PROGRAMS, capacity=st.integers(1, 12), length=st.integers(1, 5))
def test_it_holds_and_draws_what_a_list_of_steps_would(program, capacity, length, tmp_path_factory):
    """After any program of adds, ends, resets and saves, the windows drawn are all legal ones and no other."""
    model = Model(capacity)
    target = run(program, buffer(capacity), model, tmp_path_factory)
    legal = model.windows(length)

    assert len(target) == target.size == len(model.steps)
    assert target.position == model.added % capacity
    assert target.episode_boundaries().tolist() == model.boundaries().tolist()
    assert target.can_sample(len(legal), length)
    assert not target.can_sample(len(legal) + 1, length)
    dataset = SequenceDataset(target, length, 0)
    shown = [(*read(item["obs_seq"]).tolist(), int(read(item["next_obs"]))) for item in dataset]
    assert len(dataset) == len(shown) == len(legal)
    assert set(shown) == legal
    if not legal:
        with pytest.raises(NotEnoughData, match="no step can be drawn"):
            target.sample_sequence(2, length)
        return
    batch = target.sample_sequence(100 * len(legal), length)
    obs, after = read(batch["obs"]), read(batch["next_obs"])
    assert set(map(tuple, np.concatenate([obs, after[:, -1:]], 1).tolist())) == legal
    assert np.array_equal(obs[:, 1:], after[:, :-1])
    assert np.array_equal(batch["actions"].numpy(), obs)
    assert np.array_equal(batch["rewards"].numpy(), obs)
    done = {step["number"]: step["done"] for step in model.steps}
    assert np.array_equal(batch["dones"].numpy(), np.vectorize(done.get)(obs))


def test_shapes_and_dtypes_are_those_of_the_original():
    """Positions, keywords, keys, shapes and dtypes; ``learning`` comes beside them."""
    target = fill(ReplayBuffer(capacity=30, obs_shape=SHAPE, action_dim=1, device="cpu"), 40)

    single, windows = target.sample(4), target.sample_sequence(4, 5, burn_in=2)

    assert list(single) == ["obs", "actions", "rewards", "dones", "next_obs"]
    assert single["obs"].shape == single["next_obs"].shape == (4, 3, 8, 6)
    assert [single[name].shape for name in ("actions", "rewards", "dones")] == [(4,)] * 3
    assert windows["obs"].shape == windows["next_obs"].shape == (4, 5, 3, 8, 6)
    assert [windows[name].shape for name in ("actions", "rewards", "dones")] == [(4, 5)] * 3
    for batch in (single, windows):
        assert [batch[name].dtype for name in ("obs", "actions", "rewards", "dones")] == [
            torch.float32,
            torch.int64,
            torch.float32,
            torch.bool,
        ]
    assert windows["learning"].tolist() == [[False, False, True, True, True]] * 4
    assert target.is_ready(30)
    assert not target.is_ready(31)
    assert ReplayBuffer(obs_shape=(4, 4, 1)).capacity == 1000


def test_each_row_equals_the_original():
    """Beside simulusion, the same steps give tensors equal in keys, shapes, dtypes and numbers."""
    theirs_module = pytest.importorskip("simulusion.datasets.diamond_dataset")
    theirs, ours = theirs_module.ReplayBuffer(40, SHAPE, 1, "cpu"), buffer(40)
    for target in (theirs, ours):
        fill(target, 33)
    a, b = theirs_module.SequenceDataset(theirs), SequenceDataset(ours)

    assert len(a) == len(b)
    for i in range(len(a)):
        for name, value in a[i].items():
            assert torch.equal(b[i][name], value), name
            assert b[i][name].dtype == value.dtype
    assert theirs.episode_boundaries().tolist() == ours.episode_boundaries().tolist()
    for name, value in theirs.sample_sequence(3, 4).items():
        assert (ours.sample_sequence(3, 4)[name].shape, ours.sample(3)[name].dtype) == (value.shape, value.dtype)
    crossed = theirs.sample_sequence(2000, 4)["dones"][:, :-1].any(1)
    assert crossed.any()
    assert not ours.sample_sequence(2000, 4)["dones"][:, :-1].any()
    fill(theirs, 28, start=33)
    fill(ours, 28, start=33)
    assert any(a[i]["dones"][:-1].any() for i in range(len(a))), "it goes by the ends of steps that are gone"
    assert not any(b[i]["dones"][:-1].any() for i in range(len(b)))
    assert ours.nbytes < theirs.observations.nbytes + theirs.next_observations.nbytes + 64 * 144 + 2**13


def test_what_the_original_gets_wrong():
    """Its fractions become 0, its state is alive, and its documented checkpoint cannot be read."""
    theirs_module = pytest.importorskip("simulusion.datasets.diamond_dataset")
    theirs, ours = theirs_module.ReplayBuffer(40, SHAPE, 1, "cpu"), buffer(40)
    for target in (theirs, ours):
        target.add(picture(0), 0.75, 0.0, False, picture(1))
    assert theirs.sample(1)["actions"].tolist() == [0]
    assert ours.sample(1)["actions"].tolist() == [0.75]

    states = theirs.state_dict(), ours.state_dict()
    assert np.shares_memory(states[0]["observations"], theirs.observations)
    files = [io.BytesIO(), io.BytesIO()]
    for state, file in zip(states, files, strict=True):
        torch.save(state, file)
        file.seek(0)
    with pytest.raises(Exception, match="Weights only load failed"):
        torch.load(files[0], weights_only=True)
    ours.clear()
    ours.load_state_dict(torch.load(files[1], weights_only=True))
    assert len(ours) == 1


def test_continuous_actions_stay_what_they_are():
    """The first action decides between int64 and float32; a later one that does not fit is refused."""
    target = buffer(action_dim=2)
    target.add(picture(0), [0.25, -0.5], 0.0, False, picture(1))
    assert target.sample(1)["actions"].tolist() == [[0.25, -0.5]]
    assert target.sample(1)["actions"].dtype == torch.float32

    target = fill(buffer(), 3)
    with pytest.raises(SchemaError, match="action"):
        target.add(picture(3), 0.7, 0.0, False, picture(4))
    assert len(target) == 3

    target = buffer(action_dtype=np.float64)
    target.add(picture(0), 0.7, 0.0, False, picture(1))
    assert target.sample(1)["actions"].tolist() == [0.7]


def test_tensors_are_taken_and_copied():
    """What is given may change afterwards, and what is drawn may be written to."""
    target = buffer()
    obs, after = torch.from_numpy(picture(1)), torch.from_numpy(picture(2))
    target.add(obs, torch.tensor([5]), torch.tensor(1.5), torch.tensor(True), after)
    obs.fill_(9)
    batch = target.sample(1)
    batch["obs"].zero_()

    assert read(target.sample(1)["obs"]).tolist() == [1]
    assert read(batch["next_obs"]).tolist() == [2]
    assert target.sample(1)["dones"].tolist() == [True]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"obs": picture(0) / 255}, "obs: expected uint8"),
        ({"next_obs": picture(0).astype(np.float32)}, "next_obs: expected uint8"),
        ({"obs": picture(0).transpose(2, 0, 1)}, "obs"),
        ({"action": [1, 2]}, "action"),
        ({"reward": [1.0, 2.0]}, "reward"),
        ({"done": 2}, "done: expected a bool"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(change, text):
    """Each is a SchemaError that names what is wrong."""
    target = fill(buffer(), 3)
    step = {"obs": picture(3), "action": 3, "reward": 3.0, "done": False, "next_obs": picture(4), **change}

    with pytest.raises(SchemaError, match=text):
        target.add(**step)

    assert (len(target), target.position) == (3, 3)


def test_sizes_that_make_no_sense_are_refused():
    """Typed errors, from the constructor and from samples."""
    with pytest.raises(SchemaError, match="capacity"):
        buffer(0)
    with pytest.raises(SchemaError, match="obs_shape: expected"):
        ReplayBuffer(5, (8, 8), device="cpu")
    target = fill(buffer(), 7)
    with pytest.raises(SchemaError, match="batch_size"):
        target.sample(0)
    with pytest.raises(SchemaError, match="burn_in: expected at most the 3 steps"):
        target.sample_sequence(1, 3, 4)
    with pytest.raises(NotEnoughData, match="the longest run inside one episode is 7"):
        target.sample_sequence(1, 8)


def test_the_documented_checkpoint_works(tmp_path):
    """torch.save and torch.load(weights_only=True) bring everything back, and the next samples are the same."""
    first, second = fill(buffer(action_dim=1), 33), buffer()
    state = first.state_dict()
    torch.save(state, tmp_path / "buffer.pt")
    fill(first, 5, start=33)
    state = torch.load(tmp_path / "buffer.pt", weights_only=True)
    second.load_state_dict(state)
    third = buffer()
    third.load_state_dict(state)

    assert len(second) == 20
    assert read(second.sample(50)["obs"]).max() <= 32
    for name, value in second.sample_sequence(9, 3).items():
        if name == "obs":
            third.sample(50)
            assert torch.equal(third.sample_sequence(9, 3)[name], value)


def test_a_state_of_floats_finds_a_buffer_that_inferred_nothing_yet():
    """An empty buffer takes the dtype of the state; a chosen one does not."""
    first = buffer()
    first.add(picture(0), 0.5, 0.0, False, picture(1))
    second = buffer()
    second.load_state_dict(first.state_dict())

    assert second.sample(1)["actions"].tolist() == [0.5]
    with pytest.raises(CheckpointError):
        buffer(action_dtype=np.int64).load_state_dict(first.state_dict())


@pytest.mark.parametrize("other", [{"capacity": 21}, {"action_dim": 2}, {"action_dtype": np.int32}])
def test_a_state_of_another_buffer_is_refused(other):
    """Another capacity, shape or dtype: nothing is changed, nothing broadcast."""
    target = fill(buffer(), 5)
    with pytest.raises(CheckpointError, match=r"21|action_size: this buffer has 1|expected \(1,\) int64"):
        target.load_state_dict(buffer(**other).state_dict())
    with pytest.raises(CheckpointError, match="expected the keys"):
        target.load_state_dict({"observations": np.zeros((20, *SHAPE), np.uint8)})

    assert len(target) == 5
    assert set(read(target.sample(100)["obs"]).tolist()) == set(range(5))


def test_pixels_come_back_exactly():
    """All 256 values survive the way to the model's domain and back."""
    pixels = torch.arange(256, dtype=torch.uint8)
    frames = to_model_domain(pixels)
    assert (float(frames.min()), float(frames.max())) == (-1.0, 1.0)
    assert torch.equal((to_pixel_domain(frames) * 255).round().to(torch.uint8), pixels)
    assert to_pixel_domain(torch.tensor([-3.0, 3.0])).tolist() == [0.0, 1.0]


def test_a_step_costs_one_image():
    """A full ring costs less than one image and 10 percent a step; a budget holds as many as fit."""
    target = ReplayBuffer(2000, (64, 64, 3), device="cpu")
    assert target.nbytes < 2000 * 64 * 64 * 3 * 1.1
    assert ReplayBuffer(None, (64, 64, 3), device="cpu", budget="8 MiB").nbytes <= 8 * 2**20


def test_the_same_seed_draws_the_same_and_the_global_one_is_not_used():
    """Two buffers of one seed agree, whatever the global generator does."""
    first, second = fill(buffer(), 20), fill(buffer(), 20)
    before = np.random.get_state()[1].copy()  # noqa: NPY002, that it does not move is what is tested
    a, b = first.sample(30), second.sample(30)

    assert torch.equal(a["actions"], b["actions"])
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002
