"""What callers give: tensors, flags of any kind and counts, brought to what a ring takes, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.errors import SchemaError


def plain(value: Any) -> Any:
    """Give the numbers of a tensor, without its graph and from whatever device; anything else as it is."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def share(name: str, value: Any) -> float:
    """Give a flag as a number: 0 for no, 1 for yes, or what lies between.

    Raises:
        SchemaError: It is no single number from 0 to 1.
    """
    value = plain(value)
    number = -1.0
    if isinstance(value, bool | int | float | np.generic | np.ndarray) and np.ndim(value) == 0:
        number = float(value) if np.asarray(value).dtype.kind in "biuf" else -1.0
    if not 0 <= number <= 1:
        raise SchemaError(f"{name}: expected a bool or a number from 0 to 1, got {_short(value)}")
    return number


def image(name: str, obs: Any) -> Any:
    """Give the image of an observation.

    Raises:
        SchemaError: It is no dict with the key "image".
    """
    try:
        return plain(obs["image"])
    except (TypeError, KeyError, IndexError, ValueError):
        found = f"one with {', '.join(map(repr, obs)) or 'nothing'}" if isinstance(obs, dict) else _short(obs)
        raise SchemaError(f'{name}: expected a dict with the key "image", got {found}') from None


def count(name: str, value: Any, least: int = 1) -> int:
    """Give a whole number.

    Raises:
        SchemaError: It is none, or less than ``least``.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise SchemaError(f"{name}: expected a whole number of at least {least}, got {value!r}")
    return int(value)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.shape} {value.dtype}"
    return f"{type(value).__name__} {str(value)[:40]}"
