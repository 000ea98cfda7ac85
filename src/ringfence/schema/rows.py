"""One step of many streams at once, checked: what ``extend`` gets from a vector environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import SchemaError
from ringfence.schema import cast, tree
from ringfence.schema.field import Field
from ringfence.schema.layout import FLAG, Layout

Array = NDArray[Any]


class Rows(NamedTuple):
    """Checked steps, one a stream: each leaf an array with the streams as its first axis."""

    values: dict[str, Array]
    """By leaf name, ``terminated`` and ``truncated`` among them."""
    successors: dict[str, Array]
    """``next_obs``, by the name of the observation's leaf."""


class RowsCheck:
    """Check one step of several streams against a layout."""

    def __init__(self, layout: Layout) -> None:
        schema = layout.schema
        self._obs, self._action, self._extras = schema.obs, schema.action, schema.extras
        self._nested = not (isinstance(schema.obs, Field) and isinstance(schema.action, Field))
        fields = {leaf.name: leaf.field for leaf in schema.leaves()}
        obs = [leaf.name for leaf in schema.leaves() if leaf.role == "obs"]
        rest = [leaf.name for leaf in schema.leaves() if leaf.role == "action"]
        rest += ["reward", "terminated", "truncated", *schema.extras]
        fields |= {"terminated": FLAG, "truncated": FLAG}
        self._now = [(name, name, fields[name]) for name in obs + rest]
        self._next = [(name, "next_obs" + name[3:], fields[name]) for name in obs]
        self._count = -1  # the number of streams that the two lists of wants were made for
        self._wants: tuple[list[_Want], list[_Want]] = ([], [])

    def rows(self, count: int, step: tuple[Any, ...], extras: Mapping[str, Any]) -> Rows:
        """Check the steps of ``count`` streams: obs, action, reward, next_obs, terminated, truncated, and the extras.

        Raises:
            SchemaError: Anything does not match; the text names the key, what was expected, what came, and where.
        """
        obs, action, reward, next_obs, terminated, truncated = step
        now: Any = (obs, action, reward, terminated, truncated)
        later: Any = (next_obs,)
        if self._nested:
            later = tree.values(self._obs, next_obs, "next_obs")
            now = (*tree.values(self._obs, obs, "obs"), *tree.values(self._action, action, "action"), *now[2:])
        if extras or self._extras:
            tree.check_keys("", self._extras, extras)
            now = (*now, *(extras[name] for name in self._extras))
        if count != self._count:
            self._count, self._wants = count, (_wants(count, self._now), _wants(count, self._next))
        return Rows(_fit(self._wants[0], now), _fit(self._wants[1], later))


_Want = tuple[str, Any, tuple[int, ...], str, Field]  # name, dtype that needs no cast, shape, name in errors, field


def _wants(count: int, leaves: list[tuple[str, str, Field]]) -> list[_Want]:
    return [
        (name, None if field.finite else field.kept, (count, *field.shape), shown, field)
        for name, shown, field in leaves
    ]


def _fit(wants: list[_Want], given: Any) -> dict[str, Array]:
    fitted, ndarray = {}, np.ndarray
    for (name, exact, shape, shown, field), value in zip(wants, given, strict=True):
        good = type(value) is ndarray and value.dtype is exact and value.shape == shape
        fitted[name] = value if good else _careful(shape, field, shown, value)
    return fitted


def _careful(shape: tuple[int, ...], field: Field, name: str, value: Any) -> Array:
    """Fit one array; of presented stacks the newest frames are kept."""
    if field.stack is not None:
        value = cast.as_array(name, value)
        given, stacks = value.shape, (shape[0], *field.presented)
        if given == stacks:
            value = value[:, -1] if field.stack_axis == 0 else value[..., -1]
        elif given != shape:
            raise SchemaError(f"{name}: expected shape {shape} (frames) or {stacks} (stacks), got {given}")
    return cast.fit(name, value, shape, field)
