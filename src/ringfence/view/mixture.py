"""Batches from several replays or views: so many rows from each, laid one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ringfence.draw.split import Split, normalised
from ringfence.errors import SchemaError
from ringfence.schema import tree
from ringfence.view.batch import Batch, Recipe
from ringfence.view.sampler import Updated

Array = NDArray[Any]
Spec = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]
"""Dtype and shape of each array of a batch, the rows' axis left out, by dotted name."""


class Samples(Protocol):
    """Whatever gives batches: a replay, a view, or a mixture's part of another making."""

    def sample(self, n: int) -> Batch:
        """Draw ``n`` rows."""
        ...


class Mixture:
    """Draw each batch from several replays or views, by shares: half old data, half new (RLPD: Ball et al. 2023).

    The split is exact: a share that is no whole number of rows is made up for in the batches that follow. Rows lie in
    the order of the parts; a further field ``source``, (n,) int64, says from which part each came. ``ids``, ``weights``
    and ``probabilities`` are those that a row has in its part.

    One thread at a time may sample; what its parts allow beside that stays allowed.

    Args:
        parts: Pairs of a replay or view and its share, in any unit. All must give the same fields, shapes and dtypes;
            sequences have to be (B, T, ...).
        schedule: Gives the shares of the next batch, one a part, when called with the number of batches drawn so far;
            they replace those of ``parts``. A part whose share is 0 is not asked at all.

    Raises:
        SchemaError: A part is time-major.
        TypeError: A part cannot sample.
        ValueError: There is no part, or a share is negative or not finite, or none is above 0.
    """

    def __init__(
        self, parts: Sequence[tuple[Samples, float]], schedule: Callable[[int], Sequence[float]] | None = None
    ) -> None:
        self._parts = [part for part, _ in parts]
        self._split = Split([share for _, share in parts])
        self._schedule = schedule
        self._drawn, self._rows = 0, np.zeros(len(self._parts), np.int64)
        for number, part in enumerate(self._parts):
            if not callable(getattr(part, "sample", None)):
                raise TypeError(f"part {number}: expected a replay or a view, got {type(part).__name__}")
            if getattr(part, "time_major", False):
                raise SchemaError(f"part {number}: is time-major; make its view with time_major=False")
        self._first: tuple[int, Spec] | None = None
        """The first part that gave rows, and what it gave: the others have to give the same."""
        self._known: set[int] = set()
        self._batch: type[Batch] = Batch

    def sample(self, n: int) -> Batch:
        """Draw ``n`` rows.

        Raises:
            NotEnoughData: A part that has to give rows has nothing to draw.
            SchemaError: A part's fields, shapes or dtypes are not those of the others; the text names them.
            ValueError: ``n`` is no number of rows, or the schedule's shares make no sense.
        """
        counts = self._counts(n)
        batches = []
        for number, rows in enumerate(counts):
            if rows:
                batches.append(self._parts[number].sample(rows))
                if number not in self._known:
                    self._meet(number, rows, batches[-1])
        self._split.give(counts)
        self._drawn += 1
        self._rows += counts
        return self._batch((batches, counts))

    def can_sample(self, n: int = 1) -> bool:
        """Tell whether every part can give as many different rows as the next batch of ``n`` asks of it."""
        return all(
            not rows or (part.can_sample(rows) if hasattr(part, "can_sample") else len(part) >= rows)  # type: ignore[arg-type]
            for part, rows in zip(self._parts, self._counts(n), strict=True)
        )

    def update_priorities(self, batch: Batch, td: Any) -> Updated:
        """Give the steps of a batch of this mixture new priorities, each in its part; tell how many were applied.

        Rows of parts without priorities are left out.

        Args:
            batch: As it was drawn.
            td: (n,) priorities of 0 or more, or (n, T) TD errors of sequences.

        Raises:
            TypeError: No part has priorities.
            ValueError: The number of rows differs, or a priority is negative, NaN or infinite; none was taken.
        """
        sources, ids, values = np.asarray(batch["source"]), np.asarray(batch["ids"]), np.asarray(td, np.float64)
        _check_priorities(ids, values)
        learning = np.asarray(batch["learning"]) if values.ndim > 1 and "learning" in batch else None
        parts = [number for number, part in enumerate(self._parts) if _has_priorities(part)]
        if not parts:
            raise TypeError("no part has priorities; make one a view with draw=Prioritized(...)")
        applied = stale = 0
        for number in parts:
            rows = np.flatnonzero(sources == number)
            options = {} if learning is None else {"mask": learning[rows]}
            update: Any = self._parts[number].update_priorities  # type: ignore[attr-defined]
            updated = update(ids[rows], values[rows], **options)
            applied, stale = applied + updated.applied, stale + updated.stale
        return Updated(applied, stale)

    def stats(self) -> dict[str, Any]:
        """Give ``batches`` drawn, and ``rows`` given by each part."""
        return {"batches": self._drawn, "rows": self._rows.tolist()}

    def state(self) -> dict[str, Any]:
        """Give what the next split depends on; the parts' own state is theirs to give."""
        return {"batches": self._drawn, "rows": self._rows.copy(), "owed": self._split.carry.copy()}

    def load(self, state: dict[str, Any]) -> None:
        """Take it back; ValueError if it is of another number of parts."""
        self._split.load(state["owed"])
        self._drawn, self._rows = int(state["batches"]), np.array(state["rows"], np.int64)

    def _counts(self, n: int) -> list[int]:
        """Split the next batch."""
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"n: expected a whole number of at least 1, got {n!r}")
        if self._schedule is not None:
            shares = self._schedule(self._drawn)
            if len(shares) != len(self._parts):
                raise ValueError(f"schedule: expected {len(self._parts)} shares, one a part, got {shares!r}")
            self._split.shares = normalised(shares)
        return self._split.of(int(n))

    def _meet(self, number: int, rows: int, batch: Batch) -> None:
        """Look at a part's first batch."""
        given = _spec(number, rows, batch)
        if self._first is None:
            self._first = number, given
            self._batch = Batch.kind({**{name: _join(name) for name in batch}, "source": _sources})
        first, expected = self._first
        for name in [*expected, *given]:
            if name not in given or name not in expected:
                have, lack = (first, number) if name in expected else (number, first)
                raise SchemaError(f"{name}: part {have} has it, part {lack} has not")
            if given[name] != expected[name]:
                told = [f"{dtype} {shape}" for dtype, shape in (expected[name], given[name])]
                raise SchemaError(f"{name}: part {first} gives {told[0]}, part {number} gives {told[1]}")
        self._known.add(number)


def _spec(number: int, rows: int, batch: Batch) -> Spec:
    if "source" in batch:
        raise SchemaError(f"source: part {number} has a field of this name, which the mixture adds by itself")
    spec = {}
    for name, array in _leaves(batch):
        if array.shape[:1] != (rows,):
            raise SchemaError(f"{name}: part {number} was asked for {rows} row(s) and gave shape {array.shape}")
        spec[name] = array.dtype, array.shape[1:]
    return spec


def _leaves(batch: Batch) -> Iterator[tuple[str, Array]]:
    for name in batch:
        yield from tree.leaves(batch[name], name)


def _join(name: str) -> Recipe:
    """Give the recipe of a field: the parts' own, one after the other."""
    return lambda taken: _joined([batch[name] for batch in taken[0]])


def _joined(values: list[Any]) -> Any:
    first = values[0]
    if len(values) == 1:
        return first
    if isinstance(first, dict):
        return {key: _joined([value[key] for value in values]) for key in first}
    if isinstance(first, tuple):
        return tuple(_joined(list(parts)) for parts in zip(*values, strict=True))
    return np.concatenate(values)


def _sources(taken: tuple[list[Batch], list[int]]) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(taken[1])), taken[1])


def _has_priorities(part: Any) -> bool:
    """Ask a part by an update of nothing."""
    update = getattr(part, "update_priorities", None)
    if update is None:
        return False
    try:
        update(np.zeros(0, np.int64), np.zeros(0))
    except TypeError:
        return False
    return True


def _check_priorities(ids: Array, values: Array) -> None:
    """Refuse here what a later part would refuse when others have taken theirs."""
    if values.shape[:1] != ids.shape:
        raise ValueError(f"td: expected {len(ids)} rows, one for each of the batch, got shape {values.shape}")
    if not np.isfinite(values).all() or (values.ndim == 1 and values.size and values.min() < 0):
        raise ValueError("td: expected finite priorities of 0 or more; nothing was updated")
