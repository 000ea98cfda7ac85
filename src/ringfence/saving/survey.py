"""What a checkpoint holds, as plain values; steps are read a block at a time, for rewards and checksums alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.checkpoint import Directory, Manifest
from ringfence.errors import CheckpointError
from ringfence.saving.body import KIND, Body
from ringfence.saving.load import read_body
from ringfence.saving.log import COUNT, FIRST, STREAM
from ringfence.schema import Layout
from ringfence.schema.described import describe

BARS = 12  # of the reward histogram
Array = NDArray[Any]


def survey(path: str | PathLike[str], save: int | None = None, *, verify: bool = False) -> dict[str, Any]:
    """Tell what a save holds, in values that JSON can write; takes a few megabytes of memory.

    The manifest's checksum and the size of every file are always checked, and the checksums of the records, which the
    rewards are read from; those of all other files with ``verify``.

    Raises:
        CheckpointError: The save is missing or damaged; the text names the file.
    """
    directory = Directory(path)
    found = directory.read(save)
    if verify:
        for entry in found.files.values():
            directory.verify(entry)
    files = sum(entry.nbytes for entry in found.files.values())
    manifest = (directory.path / f"save-{found.number:08d}.json").stat().st_size
    kind = found.body.get("kind")
    figures: dict[str, Any] = {
        "path": str(directory.path),
        "kind": kind,
        "save": found.number,
        "saves": directory.saves(),
        "library": found.library,
        "verified": verify,
        "bytes": {"files": files, "manifest": manifest, "manifest_share": manifest / (files + manifest)},
        "files": [
            {"name": entry.name, "bytes": entry.nbytes, "health": "checksum" if verify else "size"}
            for entry in found.files.values()
        ],
    }
    if kind == KIND:
        body = read_body(directory, found)
        figures |= _ring(body)
        figures["bytes"]["raw"] = _raw(body)
        figures["rewards"] = _rewards(body, directory, found)
    return figures


def _ring(body: Body) -> dict[str, Any]:
    """Give the figures of a ring."""
    moment, buffer = body.moment, body.notes.get("buffer") if isinstance(body.notes, dict) else None
    views = body.draws.get("views")
    return {
        "buffer": buffer if isinstance(buffer, str) else None,
        "schema": describe(body.schema),
        "fields": [
            {
                "name": leaf.name,
                "shape": list(leaf.field.shape),
                "dtype": leaf.field.kept.name,
                "bytes": leaf.field.nbytes,
            }
            for leaf in body.schema.leaves()
        ],
        **body.shape._asdict(),
        "steps": int((moment.heads - moment.tails).sum()),
        "added": int(moment.heads.sum()),
        "held": (moment.heads - moment.tails).tolist(),
        "episodes": {
            "ended": int(moment.ended.sum()),
            "ended_held": sum(map(len, moment.finals)),
            "open": int(np.count_nonzero(moment.runs)),
        },
        "breaks": moment.breaks,
        "early": moment.early,
        "views": [str(one["kind"]) for one in views if isinstance(one, dict) and "kind" in one] if views else [],
        "notes": _plain(body.notes),
    }


def _raw(body: Body) -> int:
    """Count the bytes of what is held, without headers, steps that were dropped, and compression."""
    layout, moment = Layout.of(body.schema), body.moment
    steps, finals = int((moment.heads - moment.tails).sum()), sum(map(len, moment.finals))
    each = layout.itemsize + sum(leaf.field.nbytes for leaf in layout.columns)
    final = layout.obs_nbytes + sum(leaf.field.nbytes for leaf in layout.obs_columns)
    return steps * each + finals * final


def _rewards(body: Body, directory: Directory, found: Manifest) -> dict[str, Any]:
    """Give count, mean, extremes and histogram of the rewards held: two readings, since the extremes come first."""
    count, odd, total, low, high = 0, 0, 0.0, math.inf, -math.inf
    for rewards in _blocks(body, directory, found):
        finite = rewards[np.isfinite(rewards)]
        count, odd = count + finite.size, odd + rewards.size - finite.size
        if finite.size:
            total, low, high = (
                total + float(finite.sum()),
                min(low, float(finite.min())),
                max(high, float(finite.max())),
            )
    empty: dict[str, Any] = {
        "count": 0,
        "not_finite": odd,
        "mean": None,
        "low": None,
        "high": None,
        "edges": [],
        "counts": [],
    }
    if not count:
        return empty
    edges = np.linspace(low, high, BARS + 1) if high > low else np.array([low, high])
    counts = np.zeros(len(edges) - 1, np.int64)
    for rewards in _blocks(body, directory, found):
        finite = rewards[np.isfinite(rewards)]
        places = edges[1:-1].searchsorted(finite, "right")
        counts += np.bincount(places, minlength=len(counts))
    bars = {"edges": edges.tolist(), "counts": counts.tolist()}
    return {"count": count, "not_finite": odd, "mean": total / count, "low": low, "high": high, **bars}


def _blocks(body: Body, directory: Directory, found: Manifest) -> Iterator[Array]:
    """Give the rewards of the steps that are held, some at a time."""
    record, moment = Layout.of(body.schema).record, body.moment
    held = moment.heads > moment.tails
    yield moment.newest["records"]["reward"][held].astype(np.float64).reshape(-1)
    for segment in body.segments:
        if not segment.count:
            continue
        pieces, done = segment.steps, 0
        sums = pieces[:, COUNT].cumsum()
        for block in directory.blocks(found.files[segment.files["records"]], record, (segment.count,)):
            at = np.arange(done, done + len(block))
            done += len(block)
            run = sums.searchsorted(at, "right")
            times = pieces[run, FIRST] + at - (sums[run] - pieces[run, COUNT])
            kept = times >= moment.tails[pieces[run, STREAM]]
            yield block["reward"][kept].astype(np.float64).reshape(-1)


def _plain(value: Any) -> Any:
    """Give notes as JSON can hold them: of arrays shape and dtype, of floats that JSON has not, their names."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return f"array of {value.shape} {value.dtype}"
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def is_checkpoint(path: str | PathLike[str]) -> bool:
    """Tell whether a path is a directory that holds saves, sound or not."""
    try:
        return bool(Directory(path).saves())
    except CheckpointError:
        return False
