"""Nested values come back from JSON as they were, and text that no encoder wrote is refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ringfence import CheckpointError
from ringfence.checkpoint import tree

DTYPES = st.sampled_from(["|b1", "|u1", "|i1", "<i2", ">i4", "<u8", "<f2", ">f4", "<f8"])
ARRAYS = DTYPES.flatmap(lambda name: arrays.arrays(name, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0)))
NAMES = st.text(max_size=5).filter(lambda name: not name.startswith("$"))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | ARRAYS
VALUES = st.recursive(LEAVES, lambda part: st.lists(part, max_size=3) | st.dictionaries(NAMES, part, max_size=3))


def through(value):
    """Send a value through JSON text; give it back, and how many arrays were files."""
    files = {}

    def put(array):
        files[f"file{len(files)}"] = array.copy()
        return f"file{len(files) - 1}"

    def fetch(name, dtype, shape):
        assert (files[name].dtype, files[name].shape) == (dtype, shape)
        return files[name]

    text = json.dumps(tree.encode(value, put), allow_nan=False)
    return tree.decode(json.loads(text), fetch), len(files)


def equal(got, want):
    """Tell whether two values are the same to the bit, kinds of numbers included."""
    if type(got) is not type(want):
        return False
    if isinstance(want, np.ndarray):
        return got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()
    if isinstance(want, dict):
        return got.keys() == want.keys() and all(equal(got[name], want[name]) for name in want)
    if isinstance(want, list):
        return len(got) == len(want) and all(map(equal, got, want))
    if isinstance(want, float) and math.isnan(want):
        return math.isnan(got)
    return got == want


def refuse(name, dtype, shape):
    """Stand for files where none should be asked for."""
    raise AssertionError((name, dtype, shape))


@given(VALUES)
def test_values_come_back_as_they_were(value):
    """Numbers, text and arrays, nested in any way, come back with their kind, dtype and shape."""
    assert equal(through(value)[0], value)


@pytest.mark.parametrize(("nbytes", "files"), [(tree.SMALL, 0), (tree.SMALL + 1, 1)])
def test_only_arrays_above_the_bound_become_files(nbytes, files):
    """An array of exactly the bound still lies in the text."""
    got, found = through({"a": [np.arange(nbytes, dtype=np.uint8)]})
    assert found == files
    assert got["a"][0].nbytes == nbytes


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, object()]}, r"a\.1: a object cannot be saved"),
        ({"a": np.array([None])}, "a: an array of object cannot be saved"),
        ({"a": np.array(["x"])}, "a: an array of <U1 cannot be saved"),
        ({"a": {1: 2}}, "a: expected names as keys, got 1"),
        ({"$array": 1}, "value: expected names as keys"),
    ],
)
def test_what_cannot_be_saved_is_named(value, text):
    """An unknown kind of value is refused with the place where it stands."""
    with pytest.raises(TypeError, match=text):
        tree.encode(value, refuse)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"$array": "AA==", "dtype": "|O", "shape": [1]}, "is not known"),
        ({"$array": "AA==", "dtype": "|u1", "shape": [2]}, "of 1 bytes is not"),
        ({"$array": "A*==", "dtype": "|u1", "shape": [1]}, "text is damaged"),
        ({"$array": "AA==", "dtype": "|u1", "shape": [1], "more": 0}, "not an array"),
        ({"$array": "AA==", "$file": "x", "dtype": "|u1", "shape": [1]}, "not an array"),
        ({"$file": "x", "dtype": "<f4", "shape": [-1]}, "not a shape"),
        ({"$file": "x", "dtype": "<f4", "shape": [True]}, "not a shape"),
        ({"$file": "x", "dtype": "<f4", "shape": [1 << 62]}, "not a shape"),
        ({"$file": "x", "dtype": "<f4", "shape": [1 << 31, 0, 1 << 31]}, "not a shape"),
        ({"$file": "x", "dtype": "<f4", "shape": [1] * 33}, "not a shape"),
        ({"$float": "1e5"}, "expected nan, inf or -inf"),
    ],
)
def test_text_that_no_encoder_wrote_is_refused(value, text):
    """Unknown dtypes, wrong lengths and absurd shapes are refused before any file is asked for."""
    with pytest.raises(CheckpointError, match=text):
        tree.decode({"a": [value]}, refuse)
