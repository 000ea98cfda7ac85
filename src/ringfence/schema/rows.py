"""One step of many streams at once, checked: what ``extend`` gets from a vector environment.

Written out as source for each schema, as the check of one step is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import SchemaError
from ringfence.schema import cast, source, tree
from ringfence.schema.field import Field
from ringfence.schema.layout import FLAG, Layout

Array = NDArray[Any]
Rows = tuple[dict[str, Array], dict[str, Array]]
"""Checked steps, one a stream: each leaf an array with the streams as its first axis. First the step by leaf name,
``terminated`` and ``truncated`` among them, then ``next_obs`` by the name of the observation's leaf."""


class RowsCheck:
    """Check one step of several streams against a layout."""

    def __init__(self, layout: Layout) -> None:
        schema = layout.schema
        self._fields = {leaf.name: leaf.field for leaf in schema.leaves()}
        self._fields |= {"terminated": FLAG, "truncated": FLAG}
        scope: dict[str, Any] = {"ndarray": np.ndarray, "check_keys": tree.check_keys, "values": tree.values}
        scope |= {"obs_spec": schema.obs, "action_spec": schema.action, "extras_spec": schema.extras, "fit": _careful}
        self._check = source.compiled(_lines(layout, self._fields, scope), scope)
        self._shapes: tuple[int, tuple[tuple[int, ...], ...]] = (-1, ())

    def rows(self, count: int, step: tuple[Any, ...], extras: Mapping[str, Any]) -> Rows:
        """Check the steps of ``count`` streams: obs, action, reward, next_obs, terminated, truncated, and the extras.

        Raises:
            SchemaError: Anything does not match; the text names the key, what was expected, what came, and where.
        """
        made_for, shapes = self._shapes
        if made_for != count:
            shapes = tuple((count, *field.shape) for field in self._fields.values())
            self._shapes = count, shapes
        rows: Rows = self._check(*step, extras, shapes)
        return rows


def _lines(layout: Layout, fields: dict[str, Field], scope: dict[str, Any]) -> Iterator[str]:
    """Yield the source of the check; the names in it are numbered, never the caller's."""
    schema = layout.schema
    number = {name: at for at, name in enumerate(fields)}
    obs = [leaf.name for leaf in schema.leaves() if leaf.role == "obs"]
    action = [leaf.name for leaf in schema.leaves() if leaf.role == "action"]
    yield "def check(obs, action, reward, next_obs, terminated, truncated, extras, shapes):"
    yield f"{', '.join(f's{at}' for at in number.values())}, = shapes"
    yield from source.unpack("obs", "obs_spec", [f"v{number[name]}" for name in obs], schema.obs)
    yield from source.unpack("next_obs", "obs_spec", [f"n{number[name]}" for name in obs], schema.obs)
    yield from source.unpack("action", "action_spec", [f"v{number[name]}" for name in action], schema.action)
    for name in ("reward", "terminated", "truncated"):
        yield f"v{number[name]} = {name}"
    yield "if extras.keys() != extras_spec.keys(): check_keys('', extras_spec, extras)"
    for name in schema.extras:
        yield f"v{number[name]} = extras[{name!r}]"
    for name, at in number.items():
        yield from _fit(f"v{at}", f"s{at}", fields[name], name, scope)
        if name in obs:
            yield from _fit(f"n{at}", f"s{at}", fields[name], "next_" + name, scope)
    now = ", ".join(f"{name!r}: v{at}" for name, at in number.items())
    then = ", ".join(f"{name!r}: n{number[name]}" for name in obs)
    yield f"return {{{now}}}, {{{then}}}"


def _fit(local: str, shape: str, field: Field, shown: str, scope: dict[str, Any]) -> Iterator[str]:
    scope |= {f"dtype_{local}": None if field.finite else field.kept, f"field_{local}": field}
    exact = f"type({local}) is ndarray and {local}.dtype is dtype_{local} and {local}.shape == {shape}"
    yield f"if not ({exact}): {local} = fit({shape}, field_{local}, {shown!r}, {local})"


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
