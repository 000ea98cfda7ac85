"""Sizes and counts as people write them: "2 GiB" to an int, and back."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real

_PREFIXES = "kmgtp"
_LARGEST = 2**63 - 1
_WRITTEN = re.compile(r"([0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]{1,3})?\s*([a-z]*)", re.IGNORECASE)


def parse_bytes(value: float | str) -> int:
    """Turn a size as people write it into bytes, never into more than was meant.

    Reads "2 GiB", "512MiB", "1.5 GB", "64k", "1e9" and "300_000_000", in upper or lower case, with a space or without.
    KiB, MiB and GiB (or Ki, Mi, Gi) are powers of two, KB, MB and GB powers of ten. A bare k, m or g is a power of ten
    too: it is the smaller of the two readings, so a budget that meant the other one is kept all the same. For that
    reason parts of a byte are dropped.

    Raises:
        ValueError: the text is no number with a known unit, or the size is infinite, under one byte or over 2**63 - 1.
        TypeError: the value is neither a number nor a text.
    """
    nbytes = math.floor(_BYTES.read(value))
    if nbytes < 1:
        raise _BYTES.refusal(value, "it must be at least one byte")
    return nbytes


def parse_count(value: float | str) -> int:
    """Turn a number of steps as people write it ("1e6", "2_000_000", "200k", "1.5M") into an int.

    Raises:
        ValueError: the text is no number with a known unit, or the count is not whole, below one or above 2**63 - 1.
        TypeError: the value is neither a number nor a text.
    """
    count = _COUNTS.read(value)
    if count < 1 or count.denominator != 1:
        raise _COUNTS.refusal(value, "it must be a whole number of at least one")
    return count.numerator


def format_bytes(nbytes: int) -> str:
    """Write a size with two decimals in the unit that suits it, a power of two: "1.86 GiB"."""
    nbytes = int(nbytes)
    size = abs(nbytes)
    if size < 1024:
        return f"{nbytes} B"
    power = min((size.bit_length() - 1) // 10, len(_PREFIXES))
    if round(size / 1024**power, 2) >= 1024 and power < len(_PREFIXES):
        power += 1  # one byte short of a MiB is "1.00 MiB", not "1024.00 KiB"
    return f"{nbytes / 1024**power:.2f} {_PREFIXES[power - 1].upper()}iB"


@dataclass(frozen=True, slots=True)
class _Scale:
    """A kind of quantity: how its texts name it, the units it knows, and examples to show."""

    noun: str
    units: Mapping[str, int]
    known: str
    examples: str

    def read(self, value: object) -> Fraction:
        """Return the exact value, not negative and within 63 bits; it may be zero or have a fraction."""
        if isinstance(value, bool) or not isinstance(value, (str, Real)):
            raise TypeError(
                f"{self.noun} cannot be a {type(value).__name__}: {value!r}; write for example {self.examples}"
            )
        exact = self._text(value) if isinstance(value, str) else self._number(value)
        if exact < 0:
            raise self.refusal(value, "it must not be negative")
        if exact > _LARGEST:
            raise self.refusal(value, "it is more than 2**63 - 1")
        return exact

    def refusal(self, value: object, reason: str) -> ValueError:
        """Return the error that shows what came, what is wrong with it and how to write it."""
        return ValueError(f"cannot read {value!r} as {self.noun}: {reason}; write for example {self.examples}")

    def _number(self, value: Real) -> Fraction:
        if isinstance(value, Integral):
            return Fraction(int(value))
        if not math.isfinite(value):
            raise self.refusal(value, "it must be finite")
        return Fraction(float(value))

    def _text(self, text: str) -> Fraction:
        # 64 characters, because int() refuses some thousands of digits with a text that would name nothing.
        match = _WRITTEN.fullmatch(text.strip()) if len(text) <= 64 else None
        if match is None:
            raise self.refusal(text, "it must be a positive number, with a unit or without")
        digits, exponent, unit = match.groups(default="")
        factor = self.units.get(unit.lower())
        if factor is None:
            raise self.refusal(text, f"the unit {unit!r} is unknown, known are {self.known}")
        return Fraction(digits.replace("_", "").rstrip(".") + exponent) * factor


_TENS = {prefix: 1000**power for power, prefix in enumerate(_PREFIXES, start=1)}
_TWOS = {f"{prefix}i": 1024**power for power, prefix in enumerate(_PREFIXES, start=1)}
_BYTES = _Scale(
    noun="a size in bytes",
    units={unit + end: factor for unit, factor in ({"": 1} | _TENS | _TWOS).items() for end in ("", "b")},
    known="B, KB, MB, GB, TB, PB, KiB, MiB, GiB, TiB and PiB",
    examples="'2 GiB', '512 MB' or 300_000_000",
)
_COUNTS = _Scale(
    noun="a count",
    units={"": 1} | {prefix: _TENS[prefix] for prefix in "kmg"},
    known="k, M and G",
    examples="'1e6', '200k' or 2_000_000",
)
