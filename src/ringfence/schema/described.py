"""A schema as plain data, such as JSON holds, and back.

``{"obs": {"shape": [84, 84], "dtype": "uint8", "stack": 4}, "action": {"shape": [], "dtype": "int64"}}`` is one; an
observation or action of several parts is an object of such fields by name, or a list of them, and ``extras`` is an
object of fields.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from ringfence.errors import SchemaError
from ringfence.schema.field import Field
from ringfence.schema.schema import Schema

PARTS = ("obs", "action", "reward", "extras")
USUAL = {"stored": None, "stack": None, "stack_axis": 0, "pad": "first", "finite": False}
"""What a field is unless something else is written down."""


def describe(schema: Schema) -> dict[str, Any]:
    """Write a schema as plain data.

    Raises:
        SchemaError: A dict of the observation or action has a key that is no text.
    """
    return {
        "obs": _plain("obs", schema.obs),
        "action": _plain("action", schema.action),
        "reward": _plain("reward", schema.reward),
        "extras": {name: _plain(name, field) for name, field in schema.extras.items()},
    }


def _plain(name: str, part: Any) -> Any:
    if isinstance(part, Field):
        values = {"shape": list(part.shape), "dtype": part.dtype.name}
        for key, usual in USUAL.items():
            value = getattr(part, key)
            if value != usual:
                values[key] = value.name if isinstance(value, np.dtype) else value
        return values
    if isinstance(part, dict):
        for key in part:
            if not isinstance(key, str):
                raise SchemaError(f"{name}: the key {key!r} is no text, which cannot be written down")
        return {key: _plain(f"{name}.{key}", value) for key, value in part.items()}
    return [_plain(f"{name}.{place}", value) for place, value in enumerate(part)]


def described(content: Any) -> Schema:
    """Read a schema from plain data.

    Raises:
        SchemaError: A key is missing or unknown, or a value is not what a field takes; the text names the key.
    """
    if not isinstance(content, dict):
        raise SchemaError(f"expected an object with the keys {', '.join(PARTS)}, got {_shown(content)}")
    _known("", content, PARTS)
    for key in ("obs", "action"):
        if key not in content:
            raise SchemaError(f"{key}: is missing")
    extras = content.get("extras", {})
    if not isinstance(extras, dict):
        raise SchemaError(f"extras: expected an object of fields by name, got {_shown(extras)}")
    return Schema(
        obs=_tree("obs", content["obs"]),
        action=_tree("action", content["action"]),
        reward=_field("reward", content["reward"]) if "reward" in content else None,
        extras={name: _field(f"extras.{name}", field) for name, field in extras.items()},
    )


def _tree(name: str, content: Any) -> Any:
    """Give a field, or the dict or tuple of them that stands there."""
    if content in ({}, []) and "." in name:  # a part without fields is of no use, and allowed
        return type(content)() if content == {} else ()
    if isinstance(content, list) and content:
        return tuple(_tree(f"{name}.{place}", part) for place, part in enumerate(content))
    if _nested(content):
        return {key: _tree(f"{name}.{key}", part) for key, part in content.items()}
    return _field(name, content)


def _nested(content: Any) -> bool:
    """Tell an object of fields from a field: its values are objects, or lists of them, and a field has neither."""
    return (
        isinstance(content, dict)
        and len(content) > 0
        and all(isinstance(_first(part), dict) for part in content.values())
    )


def _first(content: Any) -> Any:
    while isinstance(content, list) and content:
        content = content[0]
    return content


def _field(name: str, content: Any) -> Field:
    if not isinstance(content, dict):
        raise SchemaError(
            f'{name}: expected a field such as {{"shape": [3], "dtype": "float32"}}, got {_shown(content)}'
        )
    _known(f"{name}.", content, tuple(_VALUES))
    for key in ("shape", "dtype"):
        if key not in content:
            raise SchemaError(f"{name}.{key}: is missing")
    for key, value in content.items():
        expected, holds = _VALUES[key]
        if not holds(value):
            raise SchemaError(f"{name}.{key}: expected {expected}, got {_shown(value)}")
    try:
        return Field(**content)
    except SchemaError as error:
        raise SchemaError(f"{name}.{error}") from error


def _known(prefix: str, content: dict[str, Any], keys: tuple[str, ...]) -> None:
    for key in content:
        if key not in keys:
            raise SchemaError(f"{prefix}{key}: is unknown, known are {', '.join(keys)}")


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _dtype(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(np.dtype(value))
    except (TypeError, ValueError, SyntaxError):  # NumPy parses some texts as Python
        return False


_DTYPE = ("the name of a dtype such as uint8", _dtype)
_VALUES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "shape": ("a list of sizes", lambda value: isinstance(value, list) and all(map(_whole, value))),
    "dtype": _DTYPE,
    "stored": _DTYPE,
    "stack": ("a whole number", _whole),
    "stack_axis": ("0 or -1", _whole),
    "pad": ("first or zero", lambda value: isinstance(value, str)),
    "finite": ("true or false", lambda value: isinstance(value, bool)),
}
