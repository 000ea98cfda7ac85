"""What people write behind an option, read or refused with the option's name."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import typer

from ringfence.schema import Field
from ringfence.units import parse_bytes, parse_count

_SHAPE = re.compile(r"[0-9]{1,9}(x[0-9]{1,9})*", re.IGNORECASE)


def count(text: str) -> int:
    """Read a number of steps: 1e6, 2_000_000, 200k."""
    try:
        return parse_count(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def size(text: str) -> str:
    """Check a size such as 2GiB and give it as it was written, which is how reports then name it."""
    try:
        parse_bytes(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    return text.strip()


def shape(text: str) -> tuple[int, ...]:
    """Read a shape: 17, 84x84."""
    sizes = tuple(map(int, re.split("x", text.strip(), flags=re.IGNORECASE))) if _SHAPE.fullmatch(text.strip()) else ()
    if not sizes or 0 in sizes:
        raise typer.BadParameter(f"cannot read {text!r} as a shape: write sizes of 1 or more, for example 17 or 84x84")
    return sizes


def dtype(text: str) -> np.dtype[Any]:
    """Read a dtype that memory can hold, by NumPy's name."""
    try:
        return Field((), np.dtype(text)).dtype
    except (ValueError, TypeError, SyntaxError) as error:  # NumPy parses some texts as Python
        raise typer.BadParameter(f"{text!r}: write a bool, integer or float dtype, for example uint8") from error
