"""Bring a saved ring back: check what the save says, make the ring, and fill it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.checkpoint import Directory, Manifest, decode
from ringfence.errors import CheckpointError
from ringfence.saving.body import Body
from ringfence.saving.log import Segment
from ringfence.saving.parts import shapes
from ringfence.saving.ring import Ring
from ringfence.saving.sink import Sink
from ringfence.schema import Layout

log = logging.getLogger("ringfence")
Array = NDArray[Any]
Blocks = Callable[[Segment, str, np.dtype[Any], tuple[int, ...]], Iterator[Array]]


def read_body(directory: Directory, found: Manifest) -> Body:
    """Read all that a save says beside its steps.

    Raises:
        CheckpointError: It is damaged, or was not made by a replay.
    """

    def fetch(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        return directory.whole(_entry(found, name), dtype, shape)

    body = Body.of(decode(found.body, fetch))
    layout = Layout.of(body.schema)
    for segment in body.segments:
        _check_files(found, segment, layout)
    return body


def fill(body: Body, directory: Directory, found: Manifest, ring: Ring) -> int:
    """Fill a new ring from a save; give how many of the oldest steps it had no room for.

    Raises:
        CheckpointError: A file is damaged, or what they hold makes no ring.
    """

    def blocks(segment: Segment, part: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Iterator[Array]:
        return directory.blocks(_entry(found, segment.files[part]), dtype, shape)

    return pour(body, blocks, Sink(ring, body.moment))


def pour(body: Body, blocks: Blocks, sink: Sink) -> int:
    """Fill a ring with what ``blocks(segment, part, dtype, shape)`` gives; see :func:`fill`."""
    sink.check(body.segments)
    dropped = sink.fit()
    for segment in body.segments:
        for part, dtype, shape in shapes(segment, Layout.of(body.schema)):
            sink.put(segment, part, blocks(segment, part, dtype, shape))
    sink.finish()
    if dropped:
        log.info("the %d oldest steps of the save found no room", dropped)
    return dropped


def _entry(found: Manifest, name: str) -> Any:
    if name not in found.files:
        raise CheckpointError(f"{name}: is not among the files of the save")
    return found.files[name]


def _check_files(found: Manifest, segment: Segment, layout: Layout) -> None:
    """Refuse a segment whose files are not those of the schema, or do not have the size that its steps need."""
    expected = [part for part, _, _ in shapes(segment, layout)]
    if sorted(segment.files) != sorted(expected):
        raise CheckpointError(f"segments: expected files for {', '.join(expected)}, got {', '.join(segment.files)}")
    for name in segment.files.values():
        _entry(found, name)
