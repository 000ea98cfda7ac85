"""Nested observations and actions: dicts and tuples of leaves, flattened in one fixed order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ringfence.errors import SchemaError


def leaves(tree: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield each leaf with its dotted name, dicts in their own order."""
    if isinstance(tree, Mapping):
        for key, part in tree.items():
            yield from leaves(part, f"{name}.{key}")
    elif isinstance(tree, tuple):
        for place, part in enumerate(tree):
            yield from leaves(part, f"{name}.{place}")
    else:
        yield name, tree


def rebuild(tree: Any, take: Callable[[str], Any], name: str) -> Any:
    """Give a tree of the same shape whose leaves are ``take(dotted name)``."""
    if isinstance(tree, Mapping):
        return {key: rebuild(part, take, f"{name}.{key}") for key, part in tree.items()}
    if isinstance(tree, tuple):
        return tuple(rebuild(part, take, f"{name}.{place}") for place, part in enumerate(tree))
    return take(name)


def copied(tree: Any) -> Any:
    """Give a tree of the same leaves that nobody else can change."""
    if isinstance(tree, Mapping):
        return {key: copied(part) for key, part in tree.items()}
    return tuple(copied(part) for part in tree) if isinstance(tree, tuple) else tree


def values(tree: Any, given: Any, name: str) -> Iterator[Any]:
    """Yield what was given for each leaf of ``tree``, in the tree's order.

    Raises:
        SchemaError: A key is missing or unknown, or a dict or tuple was expected and something else came.
    """
    if isinstance(tree, Mapping):
        if not isinstance(given, Mapping):
            raise SchemaError(f"{name}: expected a dict with the keys {sorted(tree)}, got {type(given).__name__}")
        check_keys(name, tree, given)
        for key, part in tree.items():
            yield from values(part, given[key], f"{name}.{key}")
    elif isinstance(tree, tuple):
        if not isinstance(given, tuple | list) or len(given) != len(tree):
            came = f"{len(given)} parts" if isinstance(given, tuple | list) else type(given).__name__
            raise SchemaError(f"{name}: expected a tuple of {len(tree)} parts, got {came}")
        for place, part in enumerate(tree):
            yield from values(part, given[place], f"{name}.{place}")
    else:
        yield given


def check_keys(name: str, expected: Mapping[Any, Any], given: Mapping[Any, Any]) -> None:
    """Refuse missing and unknown keys by name."""
    if given.keys() == expected.keys():
        return
    where = f"{name}: " if name else ""
    missing = [str(key) for key in expected if key not in given]
    unknown = [str(key) for key in given if key not in expected]
    if missing:
        raise SchemaError(f"{where}missing key {', '.join(missing)}; expected {', '.join(map(str, expected))}")
    raise SchemaError(f"{where}unknown key {', '.join(unknown)}; expected {', '.join(map(str, expected)) or 'none'}")
