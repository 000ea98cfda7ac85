"""Sizes and counts as people write them."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ringfence.units import format_bytes, parse_bytes, parse_count

FACTORS = {
    "": 1,
    "B": 1,
    "k": 10**3,
    "kB": 10**3,
    "MB": 10**6,
    "G": 10**9,
    "tb": 10**12,
    "KiB": 2**10,
    "Mi": 2**20,
    "GiB": 2**30,
    "tib": 2**40,
    "PiB": 2**50,
}


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("2 GiB", 2 * 2**30),
        ("512MiB", 512 * 2**20),
        ("1.5GB", 1_500_000_000),
        ("1e9", 1_000_000_000),
        ("1e-3 GB", 1_000_000),
        ("300_000_000", 300_000_000),
        (" 7 b\n", 7),
        (".5 KiB", 512),
        ("1.kb", 1000),
    ],
)
def test_sizes_are_read_as_people_write_them(text, nbytes):
    """Numbers with and without unit, space, fraction, exponent and underscores are understood."""
    assert parse_bytes(text) == nbytes


@pytest.mark.parametrize("text", ["64k", "64K", "64 kb", "64KB"])
def test_a_bare_letter_is_the_smaller_reading(text):
    """Without the i, and in whatever case, a prefix is a power of ten, so no budget is exceeded by a misreading."""
    assert parse_bytes(text) == 64_000


@pytest.mark.parametrize("number", [5, 5.0, 5.9, np.int64(5), np.float32(5.5)])
def test_numbers_are_bytes_and_parts_of_a_byte_are_dropped(number):
    """Ints and floats, Python's and NumPy's, are taken as bytes and come out as a plain int."""
    nbytes = parse_bytes(number)

    assert nbytes == 5
    assert type(nbytes) is int


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("0", "at least one byte"),
        (0, "at least one byte"),
        (0.5, "at least one byte"),
        ("1e-9 KB", "at least one byte"),
        (-5, "must not be negative"),
        (-0.5, "must not be negative"),
        ("-5 GB", "must be a positive number"),
        ("", "must be a positive number"),
        ("GB", "must be a positive number"),
        ("nan", "must be a positive number"),
        ("inf", "must be a positive number"),
        ("1,5 GB", "must be a positive number"),
        ("1__0", "must be a positive number"),
        ("0x10", "must be a positive number"),
        ("9" * 5000, "must be a positive number"),
        (math.nan, "must be finite"),
        (math.inf, "must be finite"),
        ("5 parsecs", r"the unit 'parsecs' is unknown, known are B, KB"),
        ("5 Gb/s", "must be a positive number"),
        ("1e999", r"more than 2\*\*63 - 1"),
        (2**63, r"more than 2\*\*63 - 1"),
    ],
)
def test_a_size_that_makes_no_sense_is_refused_by_name(value, reason):
    """The error shows what came, says what is wrong with it, and gives an example."""
    with pytest.raises(ValueError, match=reason) as caught:
        parse_bytes(value)

    assert repr(value) in str(caught.value)
    assert "'2 GiB'" in str(caught.value)


@pytest.mark.parametrize("value", [None, True, [1], b"2 GiB", 1j])
def test_a_size_of_a_wrong_type_is_refused(value):
    """What is neither number nor text is a mistake in the caller's types; True is not one byte."""
    with pytest.raises(TypeError, match=r"a size in bytes cannot be a .*write for example '2 GiB'"):
        parse_bytes(value)


@pytest.mark.parametrize(
    ("text", "count"),
    [("1e6", 10**6), ("2_000_000", 2 * 10**6), ("200k", 200_000), ("1.5M", 1_500_000), (7, 7), (1e6, 10**6)],
)
def test_counts_are_read_as_people_write_them(text, count):
    """Steps are written with exponents, underscores or k, M and G."""
    assert parse_count(text) == count


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("0", "a whole number of at least one"),
        ("1.5", "a whole number of at least one"),
        ("1e-3", "a whole number of at least one"),
        (2.5, "a whole number of at least one"),
        ("-1", "must be a positive number"),
        (-1, "must not be negative"),
        ("2 GiB", "the unit 'GiB' is unknown, known are k, M and G"),
        (math.nan, "must be finite"),
    ],
)
def test_a_count_that_makes_no_sense_is_refused_by_name(value, reason):
    """A count is whole and positive, and has no bytes in it; the error says so with an example."""
    with pytest.raises(ValueError, match=reason) as caught:
        parse_count(value)

    assert repr(value) in str(caught.value)
    assert "'200k'" in str(caught.value)


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (2_000_000_000, "1.86 GiB"),
        (2**20 - 1, "1.00 MiB"),
        (2**62, "4096.00 PiB"),
        (-(2**20), "-1.00 MiB"),
        (np.int64(1536), "1.50 KiB"),
    ],
)
def test_sizes_are_written_in_the_unit_that_suits(nbytes, text):
    """Two decimals and a power of two, never 1024 of one unit."""
    assert format_bytes(nbytes) == text


@given(st.integers(1, 2**62))
@example(2**30 - 1)
def test_what_is_written_is_read_back(nbytes):
    """A written size is read back to half a percent, below 1 KiB exactly; plain digits are exact always."""
    back = parse_bytes(format_bytes(nbytes))

    assert abs(back - nbytes) <= (0.005 * nbytes if nbytes >= 1024 else 0)
    assert (
        parse_bytes(nbytes) == parse_bytes(str(nbytes)) == parse_bytes(f"{nbytes:_}") == parse_count(nbytes) == nbytes
    )


@given(st.integers(1, 8000), st.integers(0, 999), st.sampled_from(sorted(FACTORS)), st.sampled_from(["", " "]))
def test_numbers_times_units_are_exact(whole, thousandths, unit, space):
    """No rounding of binary fractions creeps in: 1.001 GB is 1_001_000_000 bytes."""
    nbytes = parse_bytes(f"{whole}.{thousandths:03d}{space}{unit}")

    assert nbytes == (whole * 1000 + thousandths) * FACTORS[unit] // 1000


@pytest.mark.parametrize("parse", [parse_bytes, parse_count])
@given(value=st.text(max_size=12) | st.text("0123456789._ekGiB- ", max_size=8) | st.floats())
def test_anything_else_is_refused_with_a_value_error(parse, value):
    """Whatever is typed comes out as a positive int or as an error that shows it."""
    try:
        number = parse(value)
    except ValueError as error:
        assert repr(value) in str(error)  # noqa: PT017 - either outcome is right, and both are checked
    else:
        assert 0 < number < 2**63
