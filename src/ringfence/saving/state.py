"""A ring as one dict of plain arrays and text, for those who keep everything in one file of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.checkpoint import decode, encode
from ringfence.errors import CheckpointError
from ringfence.saving.body import Body
from ringfence.saving.load import pour
from ringfence.saving.log import Segment
from ringfence.saving.moment import Moment
from ringfence.saving.parts import shapes
from ringfence.saving.ring import Ring
from ringfence.saving.sink import Sink
from ringfence.saving.source import BLOCK_BYTES, Source

Array = NDArray[Any]
VERSION = 1


def everything(moment: Moment) -> Segment:
    """Give the one segment that holds all of a moment."""
    parts = []
    for lows, ends in ((moment.tails, moment.ends), (moment.firsts, moment.ended)):
        runs = np.stack([np.arange(len(lows)), lows, ends - lows], axis=1)
        parts.append(runs[runs[:, 2] > 0])
    return Segment(parts[0], parts[1])


def to_state(ring: Ring, body: Body) -> dict[str, Any]:
    """Copy all that a body tells of: takes as much memory as the steps held.

    Raises:
        CheckpointError: Steps were overwritten while they were copied.
    """
    source, segment = Source(ring), everything(body.moment)
    arrays: dict[str, Array] = {}
    for name, dtype, shape, blocks in source.parts(segment):
        whole, done = np.empty(shape, dtype), 0
        for block in blocks:
            whole[done : done + len(block)] = block
            done += len(block)
        arrays[name] = _bare(whole)
    lost = body.moment.forget(source.overtaken(segment, body.moment))
    if lost:
        raise CheckpointError(f"{lost} steps were overwritten while they were copied; do not add meanwhile")
    body.segments = [segment]

    def put(array: Array) -> str:
        name = f"state {len(arrays)}"
        arrays[name] = _bare(array)
        return name

    return {"version": VERSION, "about": json.dumps(encode(body.plain(), put)), "arrays": arrays}


def read_state(state: Any) -> Body:
    """Read what a state says beside its steps.

    Raises:
        CheckpointError: It is no such state.
    """
    if not isinstance(state, Mapping) or state.keys() != {"version", "about", "arrays"}:
        raise CheckpointError("state: expected the keys version, about and arrays, as state_dict() gives them")
    if state["version"] != VERSION:
        raise CheckpointError(f"state: is of version {state['version']!r}, and this library reads {VERSION}")
    try:
        about = json.loads(state["about"])
    except (TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"state: about: is damaged: {error}") from error
    return Body.of(decode(about, lambda name, dtype, shape: _array(state, name, dtype, shape)))


def fill_from(state: Mapping[str, Any], body: Body, ring: Ring) -> None:
    """Fill a ring of the same shape from a state, in place of all that it holds.

    Raises:
        CheckpointError: An array is missing, or what they hold makes no ring. Nothing was changed.
    """

    def blocks(_: Segment, part: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Iterator[Array]:
        whole = _array(state, part, dtype, shape)
        most = max(1, BLOCK_BYTES // max(1, dtype.itemsize * int(np.prod(shape[1:]))))
        return (whole[start : start + most] for start in range(0, len(whole), most))

    if len(body.segments) != 1:
        raise CheckpointError(f"state: expected one segment, got {len(body.segments)}")
    segment, sink = body.segments[0], Sink(ring, body.moment)
    sink.check(body.segments)
    for part, dtype, shape in shapes(segment, ring.store.layout):
        found = blocks(segment, part, dtype, shape)
        if part == "records":
            sink.rehearse(segment, found)
    ring.writer.clear()
    pour(body, blocks, sink)


def _array(state: Mapping[str, Any], name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    arrays = state["arrays"]
    if not isinstance(arrays, Mapping) or name not in arrays:
        raise CheckpointError(f"state: {name}: is missing")
    found = np.asarray(arrays[name])
    bare = _bare(np.empty((0, *shape[1:]) if shape else (), dtype))
    dims = (*shape, *bare.shape[len(shape) :])
    if found.dtype != bare.dtype or found.shape != dims:
        raise CheckpointError(f"state: {name}: expected {dims} of {bare.dtype}, got {found.shape} of {found.dtype}")
    return np.ascontiguousarray(found).view(dtype).reshape(shape)


def _bare(array: Array) -> Array:
    """Give records as rows of bytes, which every library can hold."""
    if array.dtype.kind != "V":
        return array
    return np.ascontiguousarray(array).view(np.uint8).reshape(*array.shape, array.dtype.itemsize)
