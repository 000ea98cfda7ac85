"""``extend`` takes every form of right values, and refuses a wrong row of any stream by name with nothing changed."""

import contextlib
import sys
import weakref
from operator import itemgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schema.refusal import STREAMS, filled, merged, part, refused, replaced, rows, state
from tests.schema.test_check import FORMS

from ringfence import Field, Replay, Schema, SchemaError

SHAPES = [
    # one step for all streams, one stream too few or too many, and an axis that nothing asked for
    ("obs.vector", np.zeros((4, 3), np.float32), "(4, 4, 3)", "(4, 3)"),
    ("obs.vector", np.zeros((1, 4, 3), np.float32), "(4, 4, 3)", "(1, 4, 3)"),
    ("obs.vector", np.zeros((3, 4, 3), np.float32), "(4, 4, 3)", "(3, 4, 3)"),
    ("obs.vector", np.zeros((5, 4, 3), np.float32), "(4, 4, 3)", "(5, 4, 3)"),
    ("obs.vector", np.zeros((0, 4, 3), np.float32), "(4, 4, 3)", "(0, 4, 3)"),
    ("obs.vector", 1.0, "(4, 4, 3)", "()"),
    ("next_obs.vector", np.zeros((4, 3, 4), np.float32), "(4, 4, 3)", "(4, 3, 4)"),
    ("obs.image", np.zeros((6, 6), np.uint8), "(4, 6, 6)", "(6, 6)"),
    ("obs.image", np.zeros((6, 6, 4), np.uint8), "(4, 6, 6, 4)", "(6, 6, 4)"),
    ("obs.image", np.zeros((4, 4, 6, 6), np.uint8), "(4, 6, 6, 4)", "(4, 4, 6, 6)"),
    ("next_obs.image", np.zeros((3, 6, 6, 4), np.uint8), "(4, 6, 6, 4)", "(3, 6, 6, 4)"),
    ("obs.pixel", np.zeros(3, np.uint8), "(4,)", "(3,)"),
    ("obs.pixel", np.uint8(1), "(4,)", "()"),
    ("action", np.zeros(3, np.int64), "(4,)", "(3,)"),
    ("action", np.int64(1), "(4,)", "()"),
    ("reward", np.zeros((4, 1), np.float32), "(4,)", "(4, 1)"),
    ("reward", np.zeros((1, 4), np.float32), "(4,)", "(1, 4)"),
    ("reward", 0.0, "(4,)", "()"),
    ("terminated", np.bool_(0), "(4,)", "()"),
    ("terminated", np.zeros((4, 1), np.bool_), "(4,)", "(4, 1)"),
    ("truncated", False, "(4,)", "()"),
    ("log_prob", np.zeros((4, 1), np.float32), "(4,)", "(4, 1)"),
    ("hidden", np.zeros((200,), np.float32), "(4, 200)", "(200,)"),
]
ODD = [
    ("obs.vector", [[1.0], [1.0, 2.0]], "list"),
    ("next_obs.image", [[1.0], [1.0, 2.0]], "list"),
    ("obs.vector", np.ma.masked_array(np.ones((4, 4, 3), np.float32), np.arange(48).reshape(4, 4, 3) == 5), "mask"),
    ("reward", [1.0, None, 2.0, 3.0], "numbers", "object"),
    ("action", ["left"] * 4, "numbers", "<U4"),
    ("terminated", None, "numbers", "NoneType"),
    ("obs", np.zeros((4, 3)), "expected a dict with the keys", "ndarray"),
    ("next_obs", {"image": 0}, "missing key vector"),
    ("obs.pair", (np.zeros((4, 5)),), "expected a tuple of 2 parts, got 1 parts"),
]


ROWS = [
    ("obs.pixel", 300, "uint8", "300 at [{row}]"),
    ("next_obs.pixel", -1, "uint8", "-1 at [{row}]"),
    ("obs.pixel", 0.7, "uint8", "float64"),
    ("obs.image", np.full((6, 6), 256), "uint8", "256 at [{row}, 0, 0]"),
    ("next_obs.image", np.full((6, 6), 0.7), "uint8", "float64"),
    ("obs.half", np.array([1, 70000], np.float32), "float16", "70000.0 at [{row}, 1]"),
    ("next_obs.half", np.array([-1e9, 1]), "float16", "at [{row}, 0]"),
    ("obs.vector", np.full((4, 3), 1e39), "float32", "1e+39 at [{row}, 0, 0]"),
    ("next_obs.vector", np.full((4, 3), 1e200), "float32", "1e+200 at [{row}, 0, 0]"),
    ("obs.vector", np.full((4, 3), 2**60 + 1), "float32", f"{2**60 + 1} at [{{row}}, 0, 0]"),
    ("obs.exact", np.array([0, np.nan, 0]), "finite", "nan at [{row}, 1]"),
    ("next_obs.exact", np.array([0, 0, -np.inf], np.float32), "finite", "-inf at [{row}, 2]"),
    ("obs.pair.0", np.array([0, 40000, 0, 0, 0]), "int16", "40000 at [{row}, 1]"),
    ("obs.pair.1", 2, "bool", "2 at [{row}]"),
    ("action", 0.7, "int64", "float64"),
    ("action", np.uint64(2**63), "int64", f"{2**63} at [{{row}}]"),
    ("reward", 1e39, "float32", "1e+39 at [{row}]"),
    ("reward", 2**24 + 1, "float32", "16777217 at [{row}]"),
    ("terminated", 2, "bool", "2 at [{row}]"),
    ("truncated", 0.5, "bool", "float64"),
    ("log_prob", np.float32(np.nan), "finite", "nan at [{row}]"),
    ("log_prob", np.inf, "finite", "inf at [{row}]"),
    ("hidden", np.full(200, 1e39), "float32", "1e+39 at [{row}, 0]"),
]


@pytest.mark.parametrize("bad", SHAPES + ODD, ids=lambda bad: f"{bad[0]} {bad[-1]}")
def test_a_wrong_shape_is_refused_by_name(bad):
    """No step is spread over streams, no axis dropped; key, expected and given shape are named, nothing has changed."""
    path, value, *words = bad
    replay = filled()
    with refused(replay, f"{path}: ", *words):
        replay.extend(**replaced(rows(9), path, value))


@pytest.mark.parametrize("bad", ROWS, ids=lambda bad: f"{bad[0]} {bad[2]}")
@pytest.mark.parametrize("row", [0, STREAMS - 1])
def test_one_wrong_row_refuses_all(bad, row):
    """A value that does not fit in one stream is named with its place, and no stream has changed."""
    path, value, *words = bad
    array = part(rows(9), path).astype(np.asarray(value).dtype)
    array[row] = value
    replay = filled()
    with refused(replay, f"{path}: ", *(word.format(row=row) for word in words)):
        replay.extend(**replaced(rows(9), path, array))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"log_prob": None}, "missing key log_prob; expected log_prob, hidden"),
        ({"done": np.zeros(STREAMS)}, "unknown key done; expected log_prob, hidden"),
    ],
)
def test_wrong_extras_are_refused_by_name(change, words):
    """A declared extra that is missing, or a word that was not declared, is named; nothing has changed."""
    replay = filled()
    given = {key: value for key, value in {**rows(9), **change}.items() if value is not None}
    with refused(replay, words):
        replay.extend(**given)


@pytest.mark.parametrize(
    ("streams", "words"),
    [
        ([0, 1, 2, 4], "expected numbers from 0 to 3, got [0, 1, 2, 4]"),
        ([0, 1, 2, -1], "expected numbers from 0 to 3, got [0, 1, 2, -1]"),
        (np.array([0, 1, 2, 2**64 - 1], np.uint64), "expected numbers from 0 to 3"),
        ([0, 1, 2, 2], "expected each stream at most once, got [0, 1, 2, 2]"),
        ([0.0, 1.0, 2.0, 3.0], "expected a list of stream numbers"),
        ([True, True, False, True], "expected a list of stream numbers"),
        ([[0, 1, 2, 3]], "expected a list of stream numbers"),
        ([[0], [1, 2]], "expected a list of stream numbers"),
        (["0", "1", "2", "3"], "expected a list of stream numbers"),
        (2, "expected a list of stream numbers"),
    ],
)
def test_streams_that_do_not_exist_are_refused(streams, words):
    """Stream numbers are whole, within range and each given once; nothing has changed."""
    replay = filled()
    with refused(replay, f"streams: {words}"):
        replay.extend(**rows(9), streams=streams)


def test_rows_must_be_as_many_as_streams():
    """Three streams and four rows do not match, whichever way round; nothing has changed."""
    replay = filled()
    with refused(replay, "obs.image: ", "(3, 6, 6)", "(4, 6, 6)"):
        replay.extend(**rows(9), streams=[0, 1, 2])
    with refused(replay, "obs.image: ", "(4, 6, 6)", "(3, 6, 6)"):
        replay.extend(**merged(lambda array: array[:3], rows(9)))


def test_refused_rows_leave_no_trace_in_what_follows():
    """After any number of refusals the ring goes on byte for byte as one that never met them."""
    tried, twin = filled(), filled()
    for tag in range(9, 30):
        for path, value, *_ in (SHAPES + ODD)[tag % 3 :: 3]:
            with pytest.raises(SchemaError, match=path):
                tried.extend(**replaced(rows(tag), path, value))
        with pytest.raises(SchemaError, match="truncated"):
            tried.extend(**{**rows(tag), "terminated": np.ones(STREAMS, np.bool_), "truncated": [0, 0, 0, 2]})
        tried.extend(**rows(tag))
        twin.extend(**rows(tag))

    assert state(tried) == state(twin)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_right_rows_is_stored_right(form):
    """Read-only, strided, big-endian and other forms of the same values give the very same bytes."""
    odd, plain = filled(), filled()
    for tag in range(9, 20):
        odd.extend(**merged(FORMS[form], rows(tag)))
        plain.extend(**rows(tag))

    assert state(odd) == state(plain)


def test_of_stacks_the_newest_frames_are_kept():
    """Whole stacks store the same as their newest frames, whatever the older frames hold."""
    stacks, frames = filled(), filled()
    for tag in range(9, 15):
        given = rows(tag)
        for top in ("obs", "next_obs"):
            frame = given[top]["image"]
            given = replaced(given, f"{top}.image", np.stack([frame + 1, frame + 2, frame + 3, frame], axis=-1))
        stacks.extend(**given)
        frames.extend(**rows(tag))

    assert state(stacks) == state(frames)


@pytest.mark.parametrize("streams", [None, [0, 1, 2, 3], [3, 1, 0, 2], [2, 0]])
def test_rows_are_stored_as_single_steps_are(streams):
    """One call for several streams keeps what one ``add`` a stream would: ids, counts, every field of every draw."""
    wide, single = filled(), filled()
    numbers = range(STREAMS) if streams is None else streams
    for tag in range(9, 25):
        given = merged(lambda array: array[: len(numbers)], rows(tag))
        ids = wide.extend(**given, streams=streams)
        for row, stream in enumerate(numbers):
            assert ids[row] == single.add(**merged(itemgetter(row), given), stream=stream)

    assert {**state(wide), "ring": ""} == {**state(single), "ring": ""}
    for n_step in (1, 3):
        one, other = (replay.transitions(n_step).sample(200) for replay in (wide, single))
        merged(np.testing.assert_array_equal, dict(one), dict(other))


WHOLE = st.integers(-3, 300) | st.sampled_from([2**24 + 1, 2**31, 2**53 + 1, -(2**63), 2**63 - 1])
REALS = st.floats() | st.sampled_from([0.7, 1.0, 65519.0, 65520.0, 3.5e38])


@settings(max_examples=200)
@given(
    st.sampled_from(["bool", "int8", "int64", "uint8", "uint32", "float16", "float32", "float64"]),
    st.lists(WHOLE, min_size=2, max_size=2) | st.lists(REALS, min_size=2, max_size=2),
)
def test_numbers_are_stored_as_they_are_or_refused(kept, numbers):
    """What comes back equals what was given, or is the nearest float to a float, or all of it was refused."""
    actions = np.array(numbers)
    replay = Replay(Schema(obs=Field((), np.int8), action=Field((), kept)), capacity=2, streams=2, seed=0)
    with contextlib.suppress(SchemaError):  # test_cast.py says which are refused
        replay.extend([0, 0], actions, [0.0, 0.0], [1, 1], [False, False], [False, False])
    if not len(replay):
        return
    batch = replay.sample(8)
    expected = actions[batch.ids >> 44]
    if actions.dtype.kind == np.dtype(kept).kind == "f":
        assert np.array_equal(batch.action, expected.astype(kept), equal_nan=True)
        assert np.array_equal(np.isinf(batch.action), np.isinf(expected))
    else:
        assert batch.action.tolist() == expected.tolist()


def test_nothing_that_was_added_stays_referenced():
    """Every array of the rows can be collected as soon as the caller lets go, and none was kept meanwhile."""
    replay = filled()
    paths = ("obs.image", "obs.vector", "next_obs.half", "next_obs.pair.0", "hidden", "terminated", "reward")
    for tag in range(9, 25):
        given = rows(tag)
        streams = np.array([2, 0, 1, 3])
        watched = [streams, *(part(given, path) for path in paths)]
        counts = [sys.getrefcount(array) for array in watched]
        ids = replay.extend(**given, streams=streams)
        assert [sys.getrefcount(array) for array in watched] == counts
        gone = [weakref.ref(array) for array in watched]
        del given, watched, streams
        assert [reference() for reference in gone] == [None] * len(gone)
        assert not np.shares_memory(ids, np.frombuffer(replay._store._map, np.uint8))


def test_what_the_caller_does_to_the_rows_afterwards_changes_nothing():
    """An environment that writes its next observation into the same buffers does not reach into the ring."""
    replay, twin = filled(), filled()
    given = rows(9)
    ids = replay.extend(**given)
    twin.extend(**rows(9))
    merged(lambda array: array.fill(1), given)
    ids[:] = 0

    assert state(replay) == state(twin)


def test_tensors_are_stored_by_value_and_those_with_a_graph_refused():
    """CPU tensors are taken like arrays; those that require grad are refused by name."""
    torch = pytest.importorskip("torch")
    replay, twin = filled(), filled()
    replay.extend(**merged(torch.from_numpy, rows(9)))
    twin.extend(**rows(9))
    assert state(replay) == state(twin)

    for path in ("obs.vector", "next_obs.half", "reward", "log_prob", "hidden"):
        graph = torch.from_numpy(part(rows(10), path)).clone().requires_grad_(True)
        for tensor in (graph, graph * 2):
            with refused(replay, f"{path}: ", "requires grad", "detach"):
                replay.extend(**replaced(rows(10), path, tensor))
    for shape in ((STREAMS, 6, 6), (STREAMS, 6, 6, 4), (3, 3)):
        with refused(replay, "obs.image: ", "requires grad"):
            replay.extend(**replaced(rows(10), "obs.image", torch.zeros(shape, requires_grad=True)))
