"""One step of many streams at once, checked: what ``extend`` gets from a vector environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import SchemaError
from ringfence.schema import cast, tree
from ringfence.schema.field import Field
from ringfence.schema.layout import FLAG, Layout
from ringfence.schema.schema import Leaf

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Rows:
    """Checked steps, one a stream, each leaf an array with the streams as its first axis."""

    values: Arrays
    """By leaf name, ``terminated`` and ``truncated`` among them."""
    successors: Arrays
    """``next_obs``, by the name of the observation's leaf."""


class RowsCheck:
    """Check one step of several streams against a layout."""

    def __init__(self, layout: Layout) -> None:
        schema = layout.schema
        self._schema = schema
        self._obs = [leaf for leaf in schema.leaves() if leaf.role == "obs"]
        self._action = [leaf for leaf in schema.leaves() if leaf.role == "action"]
        self._rest = [Leaf("terminated", FLAG, "extra"), Leaf("truncated", FLAG, "extra")]
        self._rest += [leaf for leaf in schema.leaves() if leaf.role in ("reward", "extra")]

    def rows(self, count: int, step: Mapping[str, Any], extras: Mapping[str, Any]) -> Rows:
        """Check the steps of ``count`` streams.

        Raises:
            SchemaError: Anything does not match; the text names the key, what was expected, what came, and where.
        """
        schema = self._schema
        if extras.keys() != schema.extras.keys():
            tree.check_keys("", schema.extras, extras)
        values = self._parts(count, self._obs, schema.obs, step["obs"], "obs")
        successors = self._parts(count, self._obs, schema.obs, step["next_obs"], "next_obs")
        values |= self._parts(count, self._action, schema.action, step["action"], "action")
        for leaf in self._rest:
            given = step[leaf.name] if leaf.name in step else extras[leaf.name]
            values[leaf.name] = _fit(count, leaf.field, leaf.name, given)
        return Rows(values, successors)

    def _parts(self, count: int, leaves: list[Leaf], spec: Any, given: Any, name: str) -> Arrays:  # noqa: ANN401, PLR0913
        if isinstance(spec, Field):
            return {leaves[0].name: _fit(count, spec, name, given)}
        parts = zip(leaves, tree.values(spec, given, name), strict=True)
        return {leaf.name: _fit(count, leaf.field, name + leaf.name[leaf.name.index(".") :], part) for leaf, part in parts}


def _fit(count: int, field: Field, name: str, value: Any) -> NDArray[Any]:  # noqa: ANN401
    shape = (count, *field.shape)
    if type(value) is np.ndarray and value.shape == shape and value.dtype is field.kept and not field.finite:
        return value
    if field.stack is not None:
        value = _newest(count, field, name, value)
    return cast.fit(name, value, shape, field)


def _newest(count: int, field: Field, name: str, value: Any) -> Any:  # noqa: ANN401
    """Of presented stacks give the newest frames; of frames, the frames."""
    given, stacks = np.shape(value), (count, *field.presented)
    if given == stacks:
        array = cast.as_array(name, value)
        return array[:, -1] if field.stack_axis == 0 else array[..., -1]
    if given != (count, *field.shape):
        frames = (count, *field.shape)
        raise SchemaError(f"{name}: expected shape {frames} (frames) or {stacks} (stacks), got {given}")
    return value
