"""``add`` takes every form of a right value, and refuses a wrong one by name with nothing changed."""

import contextlib
import sys
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schema.refusal import SCHEMA, filled, merged, part, refused, replaced, state, step

from ringfence import Field, Replay, Schema, SchemaError

RAGGED = [[1.0], [1.0, 2.0]]
OBJECTS = np.array([[1.0, None, 2.0]] * 4, object)
MASKED = np.ma.masked_array(np.ones((4, 3), np.float32), np.eye(4, 3))
SHAPES = [
    # a batch of one, a lost axis, a turned one, a number: nothing is broadcast, squeezed or turned
    ("vector", np.zeros((1, 4, 3), np.float32), "(4, 3)", "(1, 4, 3)"),
    ("vector", np.zeros((4, 3, 1), np.float32), "(4, 3)", "(4, 3, 1)"),
    ("vector", np.zeros((3, 4), np.float32), "(4, 3)", "(3, 4)"),
    ("vector", np.zeros((1, 3), np.float32), "(4, 3)", "(1, 3)"),
    ("vector", np.zeros(3, np.float32), "(4, 3)", "(3,)"),
    ("vector", np.zeros(12, np.float32), "(4, 3)", "(12,)"),
    ("vector", np.zeros((0, 3), np.float32), "(4, 3)", "(0, 3)"),
    ("vector", 1.0, "(4, 3)", "()"),
    ("image", np.zeros((1, 6, 6, 4), np.uint8), "(6, 6, 4)", "(1, 6, 6, 4)"),
    ("image", np.zeros((6, 6, 1), np.uint8), "(6, 6, 4)", "(6, 6, 1)"),
    ("image", np.zeros((4, 6, 6), np.uint8), "(6, 6, 4)", "(4, 6, 6)"),
    ("image", np.zeros((6, 6, 5), np.uint8), "(6, 6)", "(6, 6, 5)"),
    ("image", np.zeros((6,), np.uint8), "(6, 6)", "(6,)"),
    ("image", 7, "(6, 6)", "()"),
    ("pixel", np.zeros(1, np.uint8), "()", "(1,)"),
    ("pair.0", np.zeros((5, 1), np.int64), "(5,)", "(5, 1)"),
    ("pair.1", [True], "()", "(1,)"),
]
VALUES = [
    ("pixel", 0.7, "uint8", "0.7"),
    ("pixel", np.float32(1), "uint8", "float32"),
    ("pixel", 300, "uint8", "300"),
    ("pixel", -1, "uint8", "-1"),
    ("pixel", 2**70, "a value that fits", str(2**70)),
    ("image", np.full((6, 6), 0.7, np.float32), "uint8", "0.7"),
    ("image", np.full((6, 6), 300), "uint8", "300", "[0, 0]"),
    ("image", np.arange(36).reshape(6, 6) - 1, "uint8", "-1", "[0, 0]"),
    ("image", np.full((6, 6, 4), 256), "uint8", "256"),
    ("half", np.array([1, 70000], np.float32), "float16", "70000.0", "[1]"),
    ("half", [1.0, -70000.0], "float16", "-70000.0", "[1]"),
    ("half", np.array([1, 2049]), "float16", "2049"),
    ("vector", np.full((4, 3), 1e39), "float32", "1e+39", "[0, 0]"),
    ("vector", np.full((4, 3), 2**24 + 1), "float32", "16777217"),
    ("vector", np.full((4, 3), 2**60 + 1), "float32", str(2**60 + 1)),
    ("exact", [0.0, np.nan, 0.0], "finite", "nan", "[1]"),
    ("exact", [0.0, 0.0, -np.inf], "finite", "-inf", "[2]"),
    ("exact", [0, 2**53 + 1, 0], "float64", str(2**53 + 1)),
    ("pair.0", [0, 40000, 0, 0, 0], "int16", "40000", "[1]"),
    ("pair.0", np.full(5, 2**63, np.uint64), "int16", str(2**63)),
    ("pair.1", 2, "bool", "2"),
    ("pair.1", 1.0, "bool", "1.0"),
    ("vector", OBJECTS, "numbers", "object"),
    ("vector", np.full((4, 3), "1"), "numbers", "<U1"),
    ("vector", np.zeros((4, 3), complex), "numbers", "complex128"),
    ("vector", np.zeros((4, 3), "M8[s]"), "numbers", "datetime64"),
    ("vector", np.zeros((4, 3), [("a", "f4")]), "numbers"),
    ("vector", None, "numbers", "NoneType"),
    ("vector", {"a": 1}, "numbers", "dict"),
    ("vector", RAGGED, "list"),
    ("image", RAGGED, "list"),
    ("vector", MASKED, "mask"),
]
REST = [
    ("action", 0.7, "int64", "0.7"),
    ("action", np.float32(2), "int64", "float32"),
    ("action", 2**63, "int64", str(2**63)),
    ("action", [1], "()", "(1,)"),
    ("action", "left", "numbers", "<U4"),
    ("action", None, "numbers", "NoneType"),
    ("reward", np.zeros(1, np.float32), "()", "(1,)"),
    ("reward", np.zeros((1, 1)), "()", "(1, 1)"),
    ("reward", 1e39, "float32", "1e+39"),
    ("reward", 2**24 + 1, "float32", "16777217"),
    ("reward", "1", "numbers", "<U1"),
    ("reward", None, "numbers", "NoneType"),
    ("terminated", 2, "bool", "2"),
    ("terminated", 0.0, "bool", "0.0"),
    ("terminated", None, "numbers", "NoneType"),
    ("truncated", [True], "()", "(1,)"),
    ("truncated", "no", "numbers"),
    ("log_prob", np.nan, "finite", "nan"),
    ("log_prob", np.float32(-np.inf), "finite", "-inf"),
    ("log_prob", {"mean": 0.0}, "numbers", "dict"),
    ("hidden", np.zeros((1, 200), np.float32), "(200,)", "(1, 200)"),
    ("hidden", 0.0, "(200,)", "()"),
]
BAD = [
    (f"{top}.{path}", value, *words) for path, value, *words in SHAPES + VALUES for top in ("obs", "next_obs")
] + REST
KEYS = [
    ("obs", {"image": 0}, "missing key vector, half"),
    ("obs", [1, 2, 3], "expected a dict with the keys", "list"),
    ("next_obs", None, "expected a dict with the keys", "NoneType"),
    ("obs", {**step(9)["obs"], "depth": 1}, "unknown key depth", "expected image, vector"),
    ("next_obs", {**step(9)["obs"], 5: 1}, "unknown key 5"),
    ("obs.pair", (np.arange(5),), "expected a tuple of 2 parts, got 1 parts"),
    ("next_obs.pair", (np.arange(5), True, True), "expected a tuple of 2 parts, got 3 parts"),
    ("obs.pair", {"0": 1, "1": 2}, "expected a tuple of 2 parts, got dict"),
]


def stream() -> Replay:
    """Build a ring with an open episode in stream 0 that step 9 continues."""
    return filled()


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: f"{bad[0]} {np.shape(bad[1]) if bad in SHAPES else ''}")
def test_a_wrong_value_is_refused_by_name(bad):
    """The text names the key, what was expected, what came and where; nothing whatever has changed."""
    path, value, *words = bad
    replay = stream()
    with refused(replay, f"{path}: ", *words):
        replay.add(**replaced(step(9), path, value))


@pytest.mark.parametrize("bad", KEYS, ids=lambda bad: f"{bad[0]} {bad[2]}")
def test_wrong_keys_are_refused_by_name(bad):
    """A missing or unknown key of a nest is named, and nothing whatever has changed."""
    path, value, *words = bad
    replay = stream()
    with refused(replay, f"{path}: ", *words):
        replay.add(**replaced(step(9), path, value))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"log_prob": None}, "missing key log_prob; expected log_prob, hidden"),
        ({"done": True}, "unknown key done; expected log_prob, hidden"),
        ({"done": True, "log_prob": None}, "missing key log_prob"),
    ],
)
def test_wrong_extras_are_refused_by_name(change, words):
    """A declared extra that is missing, or a word that was not declared, is named; nothing has changed."""
    replay = stream()
    given = {key: value for key, value in {**step(9), **change}.items() if value is not None}
    with refused(replay, words):
        replay.add(**given)


@pytest.mark.parametrize("number", [-1, 4, 2**63, 1.0, "0", None, True, [0]])
def test_a_stream_that_does_not_exist_is_refused(number):
    """The stream is a whole number within range; nothing has changed."""
    replay = stream()
    with refused(replay, "stream: expected a number from 0 to 3", repr(number)):
        replay.add(**step(9), stream=number)


def test_refused_steps_leave_no_trace_in_what_follows():
    """After any number of refusals the ring goes on byte for byte as one that never met them."""
    tried, twin = stream(), stream()
    for tag in range(9, 40):
        for path, value, *_ in BAD[tag % 5 :: 5]:
            with pytest.raises(SchemaError, match=path):
                tried.add(**replaced(step(tag), path, value), stream=1)
        tried.add(**step(tag), stream=1)
        twin.add(**step(tag), stream=1)

    assert state(tried) == state(twin)


class Named(np.ndarray):
    """An array of another class."""


class Foreign:
    """Something that only says how it becomes an array."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        """Give the array."""
        return self.array


def frozen(array):
    """Make an array read-only."""
    array.flags.writeable = False
    return array


FORMS = {
    "read-only": lambda array: frozen(array.copy()),
    "Fortran order": lambda array: array.copy(order="F"),
    "every second": lambda array: np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim else array,
    "backwards": lambda array: array[::-1].copy()[::-1] if array.ndim else array,
    "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "list": lambda array: array.tolist(),
    "wider": lambda array: array.astype(np.float64 if array.dtype.kind == "f" else np.int64),
    "0-d": lambda array: np.array(array) if not array.ndim else array,
    "subclass": lambda array: array.view(Named),
    "buffer": lambda array: memoryview(np.ascontiguousarray(array)) if array.ndim else array,
    "array interface": Foreign,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_right_value_is_stored_right(form):
    """Read-only, strided, big-endian and other forms of the same values give the very same bytes."""
    odd, plain = stream(), stream()
    for tag in range(9, 20):
        odd.add(**merged(lambda value: FORMS[form](np.asarray(value)), step(tag)), stream=2)
        plain.add(**step(tag), stream=2)

    assert state(odd) == state(plain)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("action", True),
        ("action", np.uint8(3)),
        ("action", np.array(3, np.int16)),
        ("reward", 3),
        ("reward", True),
        ("reward", np.float16(0.5)),
        ("reward", np.array(0.5)),
        ("terminated", 1),
        ("terminated", np.bool_(True)),
        ("truncated", np.array(True)),
        ("truncated", np.uint8(0)),
        ("obs.pixel", np.int64(200)),
        ("obs.image", np.arange(36).reshape(6, 6)),
        ("obs.image", np.eye(6, dtype=np.bool_)),
        ("obs.vector", np.full((4, 3), 2**24)),
        ("obs.vector", np.full((4, 3), np.nan)),
        ("obs.half", np.array([65504.0, -65504.0])),
        ("obs.pair.0", np.array([0, 1, 32767, 5, 6], np.uint64)),
        ("obs.pair", [np.arange(5), np.bool_(1)]),
    ],
)
def test_a_cast_that_loses_nothing_is_taken(path, value):
    """Values of another dtype that fit exactly are stored as if they had come in the declared one."""
    replay = Replay(SCHEMA, capacity=4, seed=0)
    replay.add(**replaced(step(0), path, value))

    batch = replay.sample(1)
    if path == "obs.pair":
        assert np.array_equal(batch.obs["pair"][0][0], np.arange(5))
    else:
        kept = part(dict(batch), path)[0]
        assert np.array_equal(kept if path != "obs.image" else kept[..., -1], np.asarray(value), equal_nan=True)


def test_of_a_stack_the_newest_frame_is_kept():
    """A whole stack stores the same as its newest frame, whatever the older frames hold."""
    stacks, frames = stream(), stream()
    for tag in range(9, 15):
        given = step(tag)
        for top in ("obs", "next_obs"):
            frame = given[top]["image"]
            given = replaced(given, f"{top}.image", np.stack([frame + 1, frame + 2, frame + 3, frame], axis=-1))
        stacks.add(**given)
        frames.add(**step(tag))

    assert state(stacks) == state(frames)


def numbers():
    """Draw a number in any form in which Python and NumPy write one, at the edges of every dtype more often."""
    edges = st.sampled_from([7, 8, 11, 15, 16, 24, 31, 32, 53, 63, 64]).flatmap(
        lambda power: st.sampled_from([sign * 2**power + off for sign in (1, -1) for off in (-1, 0, 1)])
    )
    whole = st.integers(-300, 300) | edges | st.integers(-(2**65), 2**65)
    reals = st.floats(width=64) | st.floats(width=32) | st.sampled_from([0.7, 1.0, 65504.0, 65520.0, 3.5e38])
    fixed = st.sampled_from([np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]).flatmap(
        lambda kind: st.integers(np.iinfo(kind).min, np.iinfo(kind).max).map(kind)
    )
    return (
        whole
        | reals
        | fixed
        | st.booleans()
        | st.floats(width=32).map(np.float32)
        | st.floats(width=16).map(np.float16)
    )


KINDS = ["bool", "int8", "int32", "int64", "uint8", "uint64", "float16", "float32", "float64"]


@settings(max_examples=400)
@given(kind=st.sampled_from(KINDS), number=numbers())
def test_a_number_is_stored_as_it_is_or_refused(kind, number):
    """What comes back equals what was given, or is the nearest float to a float, or the number was refused."""
    replay = Replay(Schema(obs=Field((), np.bool_), action=Field((), kind)), capacity=1, seed=0)
    with contextlib.suppress(SchemaError):  # test_cast.py says which are refused
        replay.add(False, number, 0.0, True, False)
    if not len(replay):
        return
    came = replay.sample(1).action[0].item()
    if isinstance(number, (float, np.floating)) and kind.startswith("float"):
        with np.errstate(over="ignore"):
            assert np.array_equal(came, np.asarray(number).astype(kind), equal_nan=True)
        assert np.isinf(came) == np.isinf(number)
    else:
        assert came == (number.item() if isinstance(number, np.generic) else number)


def test_nothing_that_was_added_stays_referenced():
    """Every array of a step can be collected as soon as the caller lets go, and none was kept meanwhile."""
    replay = stream()
    for tag in range(9, 25):
        given = merged(np.array, step(tag))
        watched = [
            part(given, path) for path in ("obs.image", "obs.vector", "next_obs.half", "next_obs.pair.0", "hidden")
        ]
        counts = [sys.getrefcount(array) for array in watched]
        replay.add(**given)
        assert [sys.getrefcount(array) for array in watched] == counts
        gone = [weakref.ref(array) for array in watched]
        del given, watched
        assert [reference() for reference in gone] == [None] * len(gone)


def test_nothing_that_was_refused_stays_referenced():
    """A refused step leaves no reference behind either, once its error is gone."""
    replay = stream()
    given = merged(np.array, replaced(step(9), "log_prob", np.nan))
    with pytest.raises(SchemaError, match="log_prob"):
        replay.add(**given)
    gone = weakref.ref(given["obs"]["vector"])
    del given

    assert gone() is None


def test_a_tensor_is_stored_by_value_and_one_with_a_graph_refused():
    """CPU tensors are taken like arrays; one that requires grad would keep its whole graph, and is refused by name."""
    torch = pytest.importorskip("torch")
    replay, twin = stream(), stream()
    tensors = merged(lambda value: torch.from_numpy(np.array(value)), step(9))
    replay.add(**tensors)
    twin.add(**step(9))
    assert state(replay) == state(twin)

    for path in ("obs.vector", "next_obs.half", "reward", "log_prob", "hidden"):
        graph = torch.from_numpy(np.array(part(step(10), path))).clone().requires_grad_(True)
        for tensor in (graph, graph * 2):
            with refused(replay, f"{path}: ", "requires grad", "detach"):
                replay.add(**replaced(step(10), path, tensor))
    stack = torch.zeros(6, 6, 4, requires_grad=True)
    with refused(replay, "obs.image: ", "requires grad"):
        replay.add(**replaced(step(10), "obs.image", stack))
