"""Arrays saved as they are, whole each time: for memory in which any place may change at any step."""

from __future__ import annotations

import time
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.checkpoint import Directory, Manifest, decode, encode
from ringfence.errors import CheckpointError
from ringfence.saving.body import Content
from ringfence.saving.save import Saved
from ringfence.version import VERSION

Array = NDArray[Any]


def save(
    path: str | PathLike[str],
    kind: str,
    about: Mapping[str, Any],
    arrays: Mapping[str, Array],
    *,
    keep: int,
    compress: bool,
) -> Saved:
    """Save named arrays, and what is said about them.

    Raises:
        CheckpointError: The directory or the disk refuses. The saves that were there are untouched.
    """
    begun, directory = time.perf_counter(), Directory(path)
    with directory.draft(compress=compress) as draft:
        plain = encode({"kind": kind, **about}, lambda array: draft.array("state", array.dtype, array.shape, [array]))
        plain["arrays"] = {
            name: draft.array("array", array.dtype, array.shape, [array]) for name, array in arrays.items()
        }
        made = draft.commit(plain, [], VERSION, keep)
    nbytes = sum(entry.nbytes for entry in made.files.values())
    steps = max((len(array) for array in arrays.values()), default=0)
    return Saved(str(directory.path), made.number, steps, 0, nbytes, len(made.files) + 1, time.perf_counter() - begun)


class Arrays:
    """Named arrays of a save whose manifest was read."""

    def __init__(self, path: str | PathLike[str], kind: str, number: int | None) -> None:
        """Read what is said about them.

        Raises:
            CheckpointError: The save is missing, damaged, or of another kind.
        """
        self._directory = Directory(path)
        self._found: Manifest = self._directory.read(number)

        def fetch(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
            return self._directory.whole(self._entry(name), dtype, shape)

        self.about = Content(decode(self._found.body, fetch))
        self.about.is_kind(kind)

    def fill(self, name: str, out: Array) -> None:
        """Read one, block by block, into an array of its dtype and shape.

        Raises:
            CheckpointError: It is missing or damaged, or has another shape or dtype.
        """
        names = self.about["arrays"]
        if not isinstance(names, dict) or name not in names:
            raise CheckpointError(f"arrays: {name}: is missing")
        done = 0
        for block in self._directory.blocks(self._entry(names[name]), out.dtype, out.shape):
            out[done : done + len(block)] = block
            done += len(block)

    def _entry(self, name: Any) -> Any:
        if name not in self._found.files:
            raise CheckpointError(f"{name}: is not among the files of the save")
        return self._found.files[name]
