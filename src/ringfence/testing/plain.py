"""What a state may be made of: numbers, texts, arrays, and dicts and lists of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

SCALARS = (bool, int, float, str, type(None), np.generic)


def leaves(state: Any, name: str = "state") -> Iterator[tuple[str, Any]]:
    """Go through all that is no dict, list or tuple, each by its path."""
    if isinstance(state, dict):
        for key, part in state.items():
            yield from leaves(part, f"{name}[{key!r}]")
    elif isinstance(state, list | tuple):
        for at, part in enumerate(state):
            yield from leaves(part, f"{name}[{at}]")
    else:
        yield name, state


def check(state: Any) -> None:
    """Raise AssertionError, with the path, for anything that is neither a number, a text, None nor an array of them."""
    assert isinstance(state, dict), f"expected a dict, got {type(state).__name__}"
    for name, leaf in leaves(state):
        array = isinstance(leaf, np.ndarray) and leaf.dtype.kind != "O"
        assert array or isinstance(leaf, SCALARS), f"{name} is a {type(leaf).__name__}, neither a number nor an array"


def copied(state: Any) -> Any:
    """Copy a state, arrays too."""
    return copy.deepcopy(state)


def same(left: Any, right: Any) -> bool:
    """Tell whether two states are equal; NaN equals itself."""
    pairs = [dict(leaves(state)) for state in (left, right)]
    return pairs[0].keys() == pairs[1].keys() and all(
        np.array_equal(one, pairs[1][name], equal_nan=np.asarray(one).dtype.kind == "f")
        for name, one in pairs[0].items()
    )


def nbytes(state: Any) -> int:
    """Count the bytes of a state, about: arrays and texts as they are, eight for any other leaf."""
    return sum(
        leaf.nbytes if isinstance(leaf, np.ndarray) else len(leaf) if isinstance(leaf, str) else 8
        for _, leaf in leaves(state)
    )
