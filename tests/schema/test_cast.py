"""Casting to what memory keeps: exact, or rounded where the rule says so, or refused with the place named."""

import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ringfence import Field, SchemaError
from ringfence.schema import cast

KINDS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
KINDS += ["float16", "float32", "float64"]


def values(kind):
    """Draw small arrays of a dtype, the limits of every other dtype among their values."""
    dtype = np.dtype(kind)
    elements = arrays.from_dtype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        powers = [2**power + off for power in (7, 8, 11, 15, 16, 24, 31, 32, 53, 63) for off in (-1, 0, 1)]
        near = [edge for power in powers for edge in (power, -power) if limits.min <= edge <= limits.max]
        elements = elements | st.sampled_from(near).map(dtype.type)
    return arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=2, max_side=3), elements=elements)


def exact(array, kept):
    """Tell whether a dtype holds each of these integers exactly, in Python's own unbounded arithmetic."""
    with np.errstate(all="ignore"):
        there = array.astype(kept)
    return array.ravel().tolist() == there.ravel().tolist()


@settings(max_examples=600)
@given(kept=st.sampled_from(KINDS), array=st.sampled_from(KINDS).flatmap(values))
def test_a_cast_is_exact_or_rounds_a_float_or_is_refused(kept, array):
    """Never anything else: no wrapping, no cutting, no infinity out of a number, and no refusal without need."""
    dtype = np.dtype(kept)
    both_floats = array.dtype.kind == dtype.kind == "f"
    with np.errstate(all="ignore"):
        plain = array.astype(dtype)
    overflows = both_floats and bool((np.isinf(plain) & ~np.isinf(array)).any())
    from_float = array.dtype.kind == "f" and dtype.kind != "f"
    field = Field(array.shape, dtype)
    if overflows if both_floats else from_float or not exact(array, dtype):
        with pytest.raises(SchemaError, match=r"^x: expected "):
            cast.fit("x", array, array.shape, field)
    else:
        fitted = cast.fit("x", array, array.shape, field)
        assert fitted.dtype == dtype
        assert np.array_equal(fitted, plain, equal_nan=dtype.kind == "f")


@settings(max_examples=60)
@given(st.sampled_from(KINDS).flatmap(values))
def test_lists_fit_like_arrays(array):
    """A nested list of Python numbers gives the same as the array of their dtype."""
    field = Field(array.shape, array.dtype)
    assume(array.dtype != np.uint64 or not array.size or array.max() < 2**63)  # NumPy reads these mixed with small ones

    assert np.array_equal(cast.fit("x", array.tolist(), array.shape, field), array, equal_nan=array.dtype.kind == "f")


@settings(max_examples=60)
@given(arrays.arrays(np.float64, 3))
def test_mujoco_observations_take_the_short_way_to_the_same_end(array):
    """float64 vectors into float32, the hot case, round like any other cast, overflow is refused and NaN kept."""
    field = Field(3, np.float32)
    with np.errstate(over="ignore"):
        plain = array.astype(np.float32)
    if (np.isinf(plain) & ~np.isinf(array)).any():
        with pytest.raises(SchemaError, match="x: expected a value that fits float32"):
            cast.fit("x", array, (3,), field)
    else:
        assert cast.fit("x", array, (3,), field).tobytes() == plain.tobytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("given_as", [np.float16, np.float32, np.float64, np.dtype(">f4")])
def test_finite_fields_refuse_what_is_not_finite(bad, given_as):
    """Where a field is declared finite, NaN and infinity are refused in any float dtype, with their place."""
    array = np.zeros((2, 3), given_as)
    array[1, 2] = bad
    with pytest.raises(SchemaError, match=re.escape(f"x: expected a finite value, got {bad} at [1, 2]")):
        cast.fit("x", array, (2, 3), Field((2, 3), np.float32, finite=True))


def test_finite_fields_take_numbers_of_any_kind():
    """Integers are finite, and so are the largest floats."""
    field = Field((2,), np.float32, finite=True)

    assert cast.fit("x", [1, -2], (2,), field).tolist() == [1.0, -2.0]
    assert cast.fit("x", [3e38, -3e38], (2,), field).dtype == np.float32


@pytest.mark.parametrize("number", [0.1, 1e-50, 16777217.0, -0.0])
def test_float64_rounds_to_the_nearest_float32(number):
    """By rule a float64 may lose digits on its way into a float32."""
    assert cast.fit("x", number, (), Field((), np.float32)).tobytes() == np.float32(number).tobytes()


@pytest.mark.parametrize("number", [0.1, 1e-9, 65519.0, 2049.0])
def test_floats_round_to_a_stored_float16(number):
    """By rule a float may lose digits on its way into a narrower float that the field declares to store."""
    field = Field((), np.float32, stored=np.float16)

    assert cast.fit("x", np.float32(number), (), field).tobytes() == np.float16(number).tobytes()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.array([[0, 1], [0, 300]]), "x: expected a value that fits uint8, got 300 at [1, 1]"),
        (np.array([[0, -1], [0, 300]]), "x: expected a value that fits uint8, got -1 at [0, 1]"),
        (np.full((2, 2), 0.7), "x: expected uint8, got float64 (for example 0.7)"),
        (np.zeros((2, 1), np.uint8), "x: expected shape (2, 2), got (2, 1); nothing is broadcast or squeezed"),
        ([[1], [1, 2]], "x: list cannot be read as an array"),
        (np.array([[None] * 2] * 2), "x: expected numbers, got dtype object"),
        ("text", "x: expected numbers, got dtype <U4 (str)"),
    ],
)
def test_the_text_says_what_was_expected_and_what_came(value, text):
    """The key comes first, then what was expected, what came, and at which place."""
    with pytest.raises(SchemaError, match="^" + re.escape(text)):
        cast.fit("x", value, (2, 2), Field((2, 2), np.uint8))


def test_what_came_is_left_as_it_was():
    """An int64 array into uint8 gives a new array, and the caller's stays the same."""
    came = np.arange(256).reshape(16, 16)
    before = came.copy()
    fitted = cast.fit("x", came, (16, 16), Field((16, 16), np.uint8))

    assert fitted.dtype == np.uint8
    assert not np.shares_memory(fitted, came)
    assert np.array_equal(came, before)
