"""A field says exactly what it holds, and refuses what memory cannot hold or would give back changed."""

import dataclasses
import re

import numpy as np
import pytest

from ringfence import Field, SchemaError

NUMBERS = [np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
NUMBERS += [np.float16, np.float32, np.float64]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_every_plain_number_can_be_kept(dtype):
    """Bool, integers and floats up to eight bytes are kept as they are."""
    field = Field((2, 3), dtype)

    assert field.kept == field.dtype == np.dtype(dtype)
    assert field.nbytes == 6 * np.dtype(dtype).itemsize


@pytest.mark.parametrize("given", ["f4", ">f4", float, "float32", np.dtype(np.float32).newbyteorder()])
def test_dtypes_come_to_one_form(given):
    """However a dtype is written, the field holds NumPy's own native object for it."""
    dtype = Field((), given).dtype

    assert dtype is np.dtype(f"f{np.dtype(given).itemsize}")


@pytest.mark.parametrize(
    ("given", "shape"),
    [(3, (3,)), (np.int32(3), (3,)), ([84, 84], (84, 84)), (np.array([2, 3]), (2, 3)), ((), ()), ((1,), (1,))],
)
def test_shapes_come_to_one_form(given, shape):
    """A shape may be a number or any sequence; it becomes a tuple of Python ints."""
    field = Field(given, np.uint8)

    assert field.shape == shape
    assert all(type(size) is int for size in field.shape)
    assert field == Field(shape, np.uint8)
    assert hash(field) == hash(Field(shape, np.uint8))


@pytest.mark.parametrize("shape", [(0,), (3, 0), -1, (2, -3), (2.5,), ("a",), "ab", (None,), ((2, 3),)])
def test_shapes_that_make_no_sense_are_refused(shape):
    """Every size must be a whole number of one or more."""
    with pytest.raises(SchemaError, match=re.escape(f"shape: expected sizes of 1 or more, got {shape!r}")):
        Field(shape, np.uint8)


@pytest.mark.parametrize("dtype", [object, "O", str, "U5", "S3", "M8[s]", "m8[s]", complex, "V8", [("a", "f4")]])
def test_dtypes_that_are_no_plain_numbers_are_refused(dtype):
    """Objects, text, dates, complex and structured values cannot be kept."""
    with pytest.raises(SchemaError, match=r"dtype: .* cannot be kept; memory holds bool, integer and float"):
        Field((), dtype)


def test_a_dtype_that_numpy_does_not_know_is_refused():
    """A word that is no dtype is refused by what was given."""
    with pytest.raises(SchemaError, match="dtype: 'quux' is not a dtype"):
        Field((), "quux")


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="long double is a plain double here")
def test_long_doubles_are_refused():
    """Floats wider than eight bytes have no place in a record."""
    with pytest.raises(SchemaError, match=r"dtype: .* cannot be kept"):
        Field((), np.longdouble)


@pytest.mark.parametrize(
    ("dtype", "stored"),
    [("f4", "f2"), ("f8", "f4"), ("i8", "u1"), ("i8", "i2"), ("u8", "u1"), ("i8", "u4"), ("f4", "f4")],
)
def test_stored_may_be_narrower(dtype, stored):
    """A narrower dtype whose every value the presented dtype holds is what memory keeps."""
    field = Field((10,), dtype, stored=stored)

    assert field.kept == np.dtype(stored)
    assert field.dtype == np.dtype(dtype)
    assert field.nbytes == 10 * np.dtype(stored).itemsize


@pytest.mark.parametrize(
    ("dtype", "stored"),
    [("f2", "f4"), ("i1", "i8"), ("f4", "i1"), ("i8", "f2"), ("u1", "?"), ("?", "u1")],
)
def test_stored_of_another_kind_or_wider_is_refused(dtype, stored):
    """Memory keeps a narrower form of the same kind of number, nothing else."""
    with pytest.raises(
        SchemaError, match=f"stored: expected a narrower dtype .*{np.dtype(dtype)}.*, got {np.dtype(stored)}"
    ):
        Field((), dtype, stored=stored)


@pytest.mark.parametrize(("dtype", "stored"), [(np.uint32, np.int16), (np.int8, np.uint8), (np.uint8, np.int8)])
def test_stored_that_the_presented_dtype_cannot_hold_is_refused(dtype, stored):
    """-1 kept for an unsigned field would come back as four billion, so such a pair is not accepted."""
    with pytest.raises(SchemaError, match=f"stored: expected a narrower dtype .*got {np.dtype(stored)}"):
        Field((), dtype, stored=stored)


def test_stored_objects_are_refused():
    """The stored dtype obeys the same rules, and the text names it."""
    with pytest.raises(SchemaError, match="stored: object cannot be kept"):
        Field((), np.float32, stored=object)


@pytest.mark.parametrize(
    ("axis", "presented"), [(0, (4, 84, 80)), (-1, (84, 80, 4))], ids=["frames first", "frames last"]
)
def test_a_stack_is_presented_and_one_frame_kept(axis, presented):
    """A stacked field costs one frame a step and presents all of them along the axis asked for."""
    field = Field((84, 80), np.uint8, stack=4, stack_axis=axis)

    assert field.presented == presented
    assert field.shape == (84, 80)
    assert field.nbytes == 84 * 80


def test_without_a_stack_the_shape_is_presented():
    """Without a stack one step's shape is what a sample gives."""
    assert Field((84, 80), np.uint8).presented == (84, 80)
    assert Field((), np.uint8, stack=1).presented == (1,)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stack": 0}, "stack: expected a number of frames of 1 or more, got 0"),
        ({"stack": -4}, "stack: expected a number of frames of 1 or more, got -4"),
        ({"stack": 2.0}, "stack: expected a number of frames of 1 or more, got 2.0"),
        ({"stack": "4"}, "stack: expected a number of frames of 1 or more, got '4'"),
        ({"stack": 4, "stack_axis": 1}, "stack_axis: expected 0 or -1, got 1"),
        ({"stack": 4, "stack_axis": 2}, "stack_axis: expected 0 or -1, got 2"),
        ({"stack": 4, "pad": "edge"}, 'pad: expected "first" or "zero", got \'edge\''),
    ],
)
def test_stacks_that_make_no_sense_are_refused(options, words):
    """The number of frames, their axis and their padding are refused by name."""
    with pytest.raises(SchemaError, match=re.escape(words)):
        Field((4,), np.uint8, **options)


def test_a_field_is_a_value():
    """Fields compare and hash by what they say, and cannot be changed."""
    field = Field((3,), np.float32, stack=2)

    assert field == Field([3], "f4", stack=2)
    assert field != Field((3,), np.float32, stack=2, pad="zero")
    assert len({field, Field((3,), np.float32, stack=2)}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError, match="shape"):
        field.shape = (4,)


def test_a_field_reads_in_a_few_words():
    """Its text gives shape, dtype, and what is stored or stacked."""
    assert str(Field((84, 84), np.uint8, stack=4)) == "(84, 84) uint8, stack 4"
    assert str(Field((), np.float32, stored=np.float16)) == "() float32 stored as float16"


@pytest.mark.parametrize("shape", [None, 3.0, True, (2, True), np.float64(2)])
def test_a_shape_that_is_no_count_is_refused(shape):
    """What is no whole number, a bool among them, is no size."""
    with pytest.raises(SchemaError, match="shape: expected sizes of 1 or more, got"):
        Field(shape, np.uint8)


def test_a_dtype_must_be_given():
    """None would silently mean float64 to NumPy; it is refused."""
    with pytest.raises(SchemaError, match="dtype: expected a dtype, got None"):
        Field((), None)
