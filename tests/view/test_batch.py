"""A batch: arrays by name, as attributes and as a mapping, that refer to nothing but themselves."""

import copy
import gc
import itertools
import pickle
import re
import sys
import weakref

import numpy as np
import pytest

from ringfence import Batch, Field, Replay, Schema

NAMES = ["obs", "action", "reward", "next_obs", "terminated", "truncated", "log_prob", "hidden", "discount", "steps"]
NAMES += ["ids", "weights", "probabilities"]
SCHEMA = Schema(
    obs={
        "image": Field((24, 24), np.uint8, stack=3, stack_axis=-1),
        "frames": Field((4,), np.float32, stack=2, stored=np.float16),
        "state": (Field((3,), np.float32), Field((80,), np.float64), Field((), np.uint16)),
    },
    action=(Field((2,), np.float32), Field((), np.int64)),
    reward=Field((2,), np.float32),
    extras={"log_prob": Field((), np.float32, stored=np.float16), "hidden": Field((200,), np.float32)},
)


def observation(tag):
    """Give an observation, a function of its number."""
    return {
        "image": np.full((24, 24), tag % 256, np.uint8),
        "frames": np.full(4, tag / 8, np.float32),
        "state": (np.arange(3, dtype=np.float32) + tag, np.arange(80) / 4 - tag, np.uint16(tag)),
    }


def filled(streams=2, count=60):
    """Build a ring that has wrapped around, with episodes of seven steps."""
    replay = Replay(SCHEMA, capacity=20 * streams, streams=streams, seed=0)
    for tag, stream in itertools.product(range(count), range(streams)):
        replay.add(
            observation(tag),
            (np.full(2, tag, np.float32), tag),
            [tag, -tag],
            observation(tag + 1),
            tag % 14 == 6,
            tag % 14 == 13,
            stream=stream,
            log_prob=tag / 2,
            hidden=np.full(200, tag, np.float32),
        )
    return replay


def arrays(tree, name=""):
    """List the arrays of a nest with their dotted names."""
    if isinstance(tree, dict):
        return [found for key, part in tree.items() for found in arrays(part, f"{name}.{key}")]
    if isinstance(tree, tuple):
        return [found for place, part in enumerate(tree) for found in arrays(part, f"{name}.{place}")]
    return [(name, tree)]


def pickled(batch):
    """Send a batch through pickle, as to another process."""
    return pickle.loads(pickle.dumps(batch))  # noqa: S301  (our own bytes)


def views(replay):
    """List a view of each kind that draws in another way."""
    return [replay.transitions(), replay.transitions(3), replay.transitions(12, 0.9)]


def test_fields_are_attributes_and_items():
    """Each field is reached by attribute and by name, in a fixed order, and is the same array each time."""
    batch = filled().sample(5)

    assert list(batch) == list(batch.keys()) == NAMES
    assert len(batch) == len(NAMES)
    for name in batch:
        assert batch[name] is getattr(batch, name)
        assert batch[name] is batch.get(name)
    assert dict(batch).keys() == set(NAMES)
    assert "reward" in batch
    assert "done" not in batch
    assert batch.get("done") is None
    assert repr(batch) == f"Batch({', '.join(NAMES)})"


@pytest.mark.parametrize("name", ["done", "next", "", "obs.image", "__array__"])
def test_an_unknown_name_is_refused_with_those_there_are(name):
    """A field that is not there is an AttributeError or a KeyError that lists what is."""
    batch = filled().sample(5)
    words = re.escape(f"{name!r} is not in this batch, which has obs, action, reward, next_obs")
    with pytest.raises(AttributeError, match=words):
        getattr(batch, name)
    with pytest.raises(KeyError, match=words):
        batch[name]


@pytest.mark.parametrize("name", ["keys", "torch", "_taken", "sample"])
def test_what_is_no_field_is_no_item(name):
    """Methods are not items."""
    with pytest.raises(KeyError, match="is not in this batch"):
        filled().sample(5)[name]


def test_shapes_and_dtypes_are_those_declared():
    """Each array leads with the batch and has its field's presented shape and dtype, whatever is stored."""
    for view in views(filled()):
        batch = view.sample(5)
        for side in (batch.obs, batch.next_obs):
            assert [(array.shape, array.dtype) for _, array in arrays(side)] == [
                ((5, 24, 24, 3), np.uint8),
                ((5, 2, 4), np.float32),
                ((5, 3), np.float32),
                ((5, 80), np.float64),
                ((5,), np.uint16),
            ]
        assert [(array.shape, array.dtype) for _, array in arrays(batch.action)] == [
            ((5, 2), np.float32),
            ((5,), np.int64),
        ]
        rest = {name: (batch[name].shape, batch[name].dtype) for name in NAMES[2:3] + NAMES[4:]}
        assert rest == {
            "reward": ((5, 2), np.float32),
            "terminated": ((5,), np.bool_),
            "truncated": ((5,), np.bool_),
            "log_prob": ((5,), np.float32),
            "hidden": ((5, 200), np.float32),
            "discount": ((5,), np.float32),
            "steps": ((5,), np.int64),
            "ids": ((5,), np.int64),
            "weights": ((5,), np.float32),
            "probabilities": ((5,), np.float64),
        }


@pytest.mark.parametrize("count", [1, 2, 33])
def test_a_batch_of_any_size_has_its_axis(count):
    """A batch of one keeps its axis."""
    for view in views(filled()):
        batch = view.sample(count)
        assert {len(array) for _, array in arrays(dict(batch))} == {count}


@pytest.mark.parametrize("streams", [1, 2])
def test_nothing_handed_out_aliases_the_ring(streams):
    """No array of any batch, nor a list of ids, shares a byte with the ring."""
    replay = filled(streams)
    ring = np.frombuffer(replay._store._map, np.uint8)
    for view in views(replay):
        handed = [*arrays(dict(view.sample(8))), ("ids()", view.ids())]
        assert [name for name, array in handed if np.shares_memory(array, ring)] == []


@pytest.mark.parametrize("streams", [1, 2])
def test_whatever_is_done_to_a_batch_the_ring_stays(streams):
    """A learner may change its batch in place: the ring keeps every byte, and the other fields stay as they were."""
    replay = filled(streams)
    before = replay._store._map[:]
    for view in views(replay):
        found = arrays(dict(view.sample(8)))
        expected = [array.copy() for _, array in found]
        for place, (_, array) in enumerate(found):
            array[...] = 1
            others = zip(found[place + 1 :], expected[place + 1 :], strict=True)
            assert [name for (name, other), was in others if not np.array_equal(other, was)] == []

    assert replay._store._map[:] == before


def test_two_batches_share_nothing():
    """A batch that is drawn later is written nowhere near one that is still held."""
    for view in views(filled()):
        one, other = arrays(dict(view.sample(8))), arrays(dict(view.sample(8)))
        assert not [name for name, array in one for _, later in other if np.shares_memory(array, later)]


KEEP = {
    "the batch": lambda batch: batch,
    "an array": lambda batch: batch.obs["image"],
    "a slice": lambda batch: batch.next_obs["image"][3:5, ::2],
    "one row": lambda batch: batch.obs["state"][1][7],
    "a reshaped view": lambda batch: batch.hidden.reshape(-1).view(np.uint32),
    "an iterator": lambda batch: iter(batch.hidden),
    "a buffer": lambda batch: memoryview(batch.hidden),
    "an array on a buffer": lambda batch: np.frombuffer(batch.hidden, np.float32),
    "a mapping": dict,
    "an item of the nest": lambda batch: batch.obs["state"],
}


def bytes_of(kept):
    """Copy out what was kept."""
    if isinstance(kept, (dict, tuple)):
        return [array.tobytes() for _, array in arrays(kept)]
    if isinstance(kept, Batch):
        return bytes_of(dict(kept))
    return [np.array(row).tobytes() for row in ([kept] if isinstance(kept, memoryview) else kept)]


@pytest.mark.parametrize("what", KEEP)
def test_whatever_is_kept_of_a_batch_stays_as_it_was(what):
    """Big batches may use memory again, but never memory of which anybody still holds a part, in whatever way."""
    view, twin = (filled().transitions() for _ in range(2))
    kept = KEEP[what](view.sample(400))
    expected = KEEP[what](twin.sample(400))
    for _ in range(12):
        view.sample(400)

    assert bytes_of(kept) == bytes_of(expected)


def test_a_tensor_keeps_the_memory_it_was_made_from():
    """A tensor outlives its batch, and later batches do not write into it."""
    torch = pytest.importorskip("torch")
    view = filled().transitions()
    tensor = view.sample(400).torch().hidden[5:]
    expected = tensor.clone()
    for _ in range(12):
        view.sample(400)

    assert torch.equal(tensor, expected)


def test_fields_are_cut_when_asked_for_and_stay_what_was_drawn():
    """A field read late, after the ring has turned and been cleared, equals the one read at once."""
    for make in (lambda replay: replay.transitions(), lambda replay: replay.transitions(3)):
        early, late = make(filled()).sample(16), None
        replay = filled()
        late = make(replay).sample(16)
        for tag in range(50):
            hidden = np.zeros(200, np.float32)
            for stream in (0, 1):
                first = observation(2000 + 3 * tag)
                replay.add(
                    first, (np.zeros(2), 0), [0, 0], observation(5), tag % 2, stream=stream, log_prob=0, hidden=hidden
                )
        replay.clear()
        for (name, array), (_, expected) in zip(arrays(dict(late)), arrays(dict(early)), strict=True):
            assert np.array_equal(array, expected), name


def test_a_field_that_nobody_reads_is_not_made():
    """Only what is asked for is cut; the rest waits."""
    batch = filled().sample(4)
    assert batch.reward is not None

    assert "reward" in batch.__dict__
    assert not {"obs", "next_obs", "action", "probabilities"} & batch.__dict__.keys()


def test_a_batch_outlives_its_replay_without_its_memory():
    """Whoever keeps a batch keeps that batch alone; the ring's memory goes with the replay."""
    replay = filled()
    kept = [view.sample(4) for view in views(replay)]
    store = weakref.ref(replay._store)
    del replay
    gc.collect()

    assert store() is None
    assert [len(batch.probabilities) for batch in kept] == [4, 4, 4]


@pytest.mark.parametrize("how", [pickled, copy.copy, copy.deepcopy])
def test_a_batch_survives_a_round_trip(how):
    """Pickling and copying give a batch of the same fields and values, and without the ring's bytes."""
    batch = filled().transitions(3).sample(6)
    again = how(batch)

    assert isinstance(again, Batch)
    assert list(again) == NAMES
    for (name, array), (_, expected) in zip(arrays(dict(again)), arrays(dict(batch)), strict=True):
        assert array.dtype == expected.dtype
        assert np.array_equal(array, expected), name
        assert np.array_equal(again.reward, batch["reward"])


def test_a_pickle_holds_the_arrays_and_little_else():
    """What goes to another process is the batch, not what it was cut from."""
    batch = filled().sample(32)
    size = sum(array.nbytes for _, array in arrays(dict(batch)))

    assert len(pickle.dumps(batch)) < size + 4000


def test_a_batch_of_arrays_that_exist():
    """A batch can be made of arrays, with all that a batch does."""
    batch = Batch.of({"x": np.arange(3), "y": (np.zeros(3), np.ones(3))})

    assert list(batch) == ["x", "y"]
    assert batch.x.tolist() == batch["x"].tolist() == [0, 1, 2]
    assert list(pickled(batch)) == ["x", "y"]
    with pytest.raises(AttributeError, match="'z' is not in this batch, which has x, y"):
        _ = batch.z


def test_batches_compare_by_identity():
    """Two batches are equal only where they are one, and a batch may be a key."""
    view = filled().transitions()
    one, other = view.sample(3), view.sample(3)

    assert one == one  # noqa: PLR0124
    assert one != other
    assert len({one, other}) == 2


@pytest.mark.parametrize("n_step", [1, 3])
def test_tensors_hold_the_same_values(n_step):
    """``torch()`` gives every field as a tensor of the same shape, dtype and values, sharing the batch's memory."""
    torch = pytest.importorskip("torch")
    batch = filled().transitions(n_step).sample(6)
    tensors = batch.torch()

    assert isinstance(tensors, Batch)
    assert list(tensors) == NAMES
    for (name, array), (_, tensor) in zip(arrays(dict(batch)), arrays(dict(tensors)), strict=True):
        assert isinstance(tensor, torch.Tensor), name
        assert tensor.device.type == "cpu"
        assert not tensor.requires_grad
        assert tensor.numpy().dtype == array.dtype
        assert np.array_equal(tensor.numpy(), array), name
        assert np.shares_memory(tensor.numpy(), array)
    assert torch.equal(tensors.obs["state"][0], tensors["obs"]["state"][0])
    assert tensors.obs["frames"].is_contiguous()
    assert tensors.next_obs["state"][1].is_contiguous()


def test_tensors_go_to_the_device_asked_for():
    """A device may be named; ``meta`` stands for any that is not the CPU."""
    torch = pytest.importorskip("torch")
    batch = filled().sample(6)

    assert {tensor.device for _, tensor in arrays(dict(batch.torch("meta")))} == {torch.device("meta")}
    assert batch.torch(torch.device("cpu")).reward.device.type == "cpu"


def test_without_pytorch_the_error_names_the_extra(monkeypatch):
    """Where PyTorch is missing the error says what to install."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'ringfence[torch]'")):
        filled().sample(2).torch()
