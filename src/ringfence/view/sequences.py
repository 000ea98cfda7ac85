"""Sequences: windows of consecutive steps of one stream, for recurrent networks and world models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.draw import Draw, Drawn
from ringfence.errors import NotEnoughData
from ringfence.schema.layout import FINAL_FIELD, Place
from ringfence.store import Store
from ringfence.timeline import Anchors, Ints, Look, Timeline
from ringfence.view.batch import Batch
from ringfence.view.census import Census
from ringfence.view.finals import Finals
from ringfence.view.fold import ETA, fold, weight
from ringfence.view.gathering import Gathering, Part
from ringfence.view.grid import Grid
from ringfence.view.pool import Pool
from ringfence.view.sampler import Sampler, Updated
from ringfence.view.span import Span
from ringfence.view.strip import Strip
from ringfence.view.unroll import Taken, Unroll
from ringfence.view.writing import Writing, Written

Array = NDArray[Any]


class Sequences:
    """Sample windows of consecutive steps.

    Any number of threads or forked processes may sample, each through a view of its own, while one writer a stream
    adds: a batch that was overtaken is drawn again.
    """

    def __init__(self, store: Store, timeline: Timeline, draw: Draw, span: Span) -> None:
        """Serve the ring of a store; the draw is started by the caller, with :meth:`Span.window`."""
        self.time_major = span.time_major
        """Whether batches are (T, B, ...)."""
        self._store, self._timeline, self._layout, self._span = store, timeline, store.layout, span
        self._window = span.window(store.layout.schema)
        self._sampler = Sampler(timeline, draw, self._window, reach=span.steps - 1)
        self._grid = Grid(span.steps, time_major=span.time_major)
        self._obs_grid = Grid(span.steps + span.bootstrap, time_major=span.time_major)
        self._finals, self._writing = Finals(store), Writing(store, timeline)
        self._census: Census | None = None
        roles: dict[str, list[Part]] = {"obs": [], "state": [], "rest": []}
        for place in store.layout.packed:
            roles[self._role(place)].append(Part(place.leaf.name, place.leaf.field, place.offset))
        if not span.bootstrap:  # one copy takes all
            roles["rest"] += roles.pop("obs")
        self._gatherings = {role: Gathering(store, parts) for role, parts in roles.items() if parts}
        self._final = Gathering(store, [Part("final", FINAL_FIELD, store.layout.final_offset)])
        self._strips = {
            leaf.name: Strip(store, timeline, at, leaf.field, self._obs_grid)
            for at, leaf in enumerate(store.layout.columns)
            if leaf.field.stack is not None
        }
        self._pools = {leaf.name: Pool(leaf.field.shape, leaf.field.kept) for leaf in store.layout.columns}
        self._batch = Batch.kind(Unroll(store.layout.schema, span).recipes())

    def _role(self, place: Place) -> str:
        if place.leaf.role == "obs":
            return "obs"
        return "state" if place.leaf.name in self._span.state else "rest"

    # -- what a user asks

    def sample(self, n: int) -> Batch:
        """Draw ``n`` windows, with replacement.

        Raises:
            NotEnoughData: Nothing can be drawn; the text holds the counts.
        """
        try:
            return self._batch(self._sampler.sample(n, self._take))
        except NotEnoughData as error:
            raise self._refused(error) from None

    def _refused(self, error: NotEnoughData) -> NotEnoughData:
        """Add to an error what was asked for."""
        least = self._span.steps if self._span.boundary != "pad" else 1
        never = f", and no stream of this ring ever holds {least} steps" if least > self._timeline.capacity else ""
        return NotEnoughData(f"{error}; asked for {self._span}{never}")

    def can_sample(self, n: int = 1) -> bool:
        """Tell whether at least ``n`` different windows can be drawn."""
        return self._counted().legal >= n

    def ids(self) -> Ints:
        """List the id of the first step of every window that can be drawn, stream by stream, oldest first."""
        return self._sampler.ids()

    def update_priorities(self, ids: Any, td: Any, mask: Any = None, eta: float = ETA) -> Updated:
        """Give windows new priorities; tell how many were applied.

        Ids of steps that are gone are skipped and counted. A window without any step to learn from keeps the priority
        that it has.

        Args:
            ids: (n,) of a batch.
            td: (n,) priorities of 0 or more, or the TD errors of the steps, laid out as the batch is: of all steps, or
                of those after the burn-in alone. These are folded to ``eta * max + (1 - eta) * mean`` of the absolute
                errors of the steps to learn from (Kapturowski et al. 2019).
            mask: Which steps to learn from, laid out as ``td``: the batch's ``learning``. Needed only for
                ``boundary="pad"`` where an open episode may have grown since the batch was drawn; unless given, what
                is held now decides.
            eta: Weight of the largest error against the mean.

        Raises:
            TypeError: The view's draw has no priorities.
            ValueError: The shapes differ, or a priority is negative, NaN or infinite; none was taken.
        """
        errors, share = np.asarray(td, np.float64), weight(eta)
        if errors.ndim != 2:
            return self._sampler.update(ids, errors)
        names = np.asarray(ids, np.int64)
        learning = self._learning(names, errors.shape)
        if mask is not None:
            learning = np.asarray(mask, np.bool_)
            if learning.shape != errors.shape:
                raise ValueError(f"mask: expected shape {errors.shape} as td, got {learning.shape}")
        some = learning.any(axis=self._grid.axis)
        return self._sampler.update(names[some], fold(errors, learning, self._grid.axis, share)[some])

    def write(self, ids: Any, **extras: Any) -> Written:
        """Overwrite declared extras of steps that are held; tell how many were applied.

        Steps that are gone are skipped and counted, and so are windows' padding steps, whose id is -1, without being
        counted. It counts as adding to the streams of these steps: one thread at a time, and a batch that is drawn
        meanwhile may hold a value of which only half is new.

        Args:
            ids: Of any shape: ``ids`` of a batch for its first steps, ``step_ids`` for all.
            extras: Values by name, each of the shape of ``ids`` and then of the extra's field; checked as by ``add``.

        Raises:
            SchemaError: Anything does not match the schema. Nothing was changed.
        """
        return self._writing.write(ids, extras)

    def stats(self) -> dict[str, Any]:
        """Give the draw's figures for a log."""
        return self._sampler.stats()

    @property
    def kind(self) -> str:
        """What a saved state must be of to be taken back."""
        return f"{self._span}, drawn by {self._sampler.kind}"

    def state(self) -> dict[str, Any]:
        """Give all that the next batches depend on beside the ring, as plain numbers and arrays."""
        return self._sampler.state()

    def load(self, state: dict[str, Any]) -> None:
        """Take back what :meth:`state` gave.

        Raises:
            ValueError: It is of another draw, or of another ring.
        """
        self._sampler.load(state)

    # -- reading

    def _take(self, look: Look, drawn: Drawn) -> Taken:
        """Copy all that a batch needs out of the ring."""
        timeline, grid, anchors = self._timeline, self._grid, drawn.anchors
        first_rows = timeline.rows(anchors)
        rows = timeline.rows(grid.anchors(anchors, grid.offsets))
        taken = Taken(drawn, timeline.ages(first_rows))
        if self._span.boundary == "cross":
            taken.ages = timeline.ages(rows)
        elif self._span.boundary == "pad":
            taken.counts = self._counts(look, anchors, timeline.ages(rows))
        taken.arrays = self._gatherings["rest"].take(rows.reshape(-1))
        if "state" in self._gatherings:
            taken.arrays |= self._gatherings["state"].take(first_rows)
        obs_rows = self._take_successors(taken) if self._span.bootstrap else rows
        self._take_columns(taken, rows, obs_rows)
        if taken.counts is not None:
            self._blank(taken, taken.counts)
        if drawn.probabilities is None:
            taken.census = self._counted()
        return taken

    def _counts(self, look: Look, anchors: Anchors, ages: Array) -> Ints:
        """Count the steps of each window: those held from its anchor on, as long as they are of its episode."""
        grid = self._grid
        inside = ages == ages.take([0], grid.axis) + grid.offsets
        inside &= grid.offsets < grid.across(look.room(anchors))
        counts: Ints = inside.sum(axis=grid.axis)
        return counts

    def _take_successors(self, taken: Taken) -> Ints:
        """Copy the small observations, the successor of each last step too; give the rows of all observations."""
        timeline, grid, anchors = self._timeline, self._obs_grid, taken.drawn.anchors
        counts = np.full(taken.windows, self._grid.steps) if taken.counts is None else taken.counts
        rows = timeline.rows(grid.anchors(anchors, grid.offsets))
        if "obs" in self._gatherings:
            taken.arrays |= self._gatherings["obs"].take(rows.reshape(-1))
        last = anchors._replace(times=anchors.times + (counts - 1))
        numbers = self._final.take(timeline.rows(last))["final"]
        ended = np.flatnonzero(numbers >= 0)
        if len(ended):
            places = self._finals.places(last.at(ended), numbers[ended])
            at = grid.places(counts[ended], ended, taken.windows)
            self._finals.put(taken.arrays, places, at)
            rows.reshape(-1)[at] = self._finals.rows(places)
        return rows

    def _take_columns(self, taken: Taken, rows: Ints, obs_rows: Ints) -> None:
        """Copy the big fields."""
        for at, leaf in enumerate(self._layout.columns):
            if leaf.name in self._strips:
                strip = self._strips[leaf.name]
                taken.arrays[leaf.name] = strip.take(taken.drawn.anchors, obs_rows)
                continue
            if leaf.name in self._span.state:
                chosen = self._timeline.rows(taken.drawn.anchors)
            else:
                chosen = (obs_rows if leaf.role == "obs" else rows).reshape(-1)
            taken.arrays[leaf.name] = self._store.frames(at, chosen, self._pools[leaf.name].take(len(chosen)))

    def _blank(self, taken: Taken, counts: Ints) -> None:
        """Put zeros where windows have no steps, and other steps were copied."""
        beyond = np.flatnonzero(self._grid.offsets >= self._grid.across(counts))
        obs_beyond = beyond
        if self._span.bootstrap:
            obs_beyond = np.flatnonzero(self._obs_grid.offsets > self._grid.across(counts))
        for leaf in self._layout.schema.leaves():
            if leaf.name not in self._strips and leaf.name not in self._span.state:
                taken.arrays[leaf.name][obs_beyond if leaf.role == "obs" else beyond] = 0
        for flag in ("terminated", "truncated"):
            taken.arrays[flag][beyond] = False

    def _counted(self) -> Census:
        """Give the census of this moment, the last one again where nothing was added since."""
        census = self._census
        if census is None or census.marks != self._store.marks.tobytes():
            census = self._census = Census(self._store, self._timeline, self._window)
        return census

    def _learning(self, ids: Ints, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Tell which steps of these windows are there to learn from, for errors of this shape."""
        span, grid = self._span, self._grid
        short = Grid(span.length, time_major=span.time_major)
        if ids.ndim != 1 or shape not in (grid.shape(len(ids)), short.shape(len(ids))):
            raise ValueError(
                f"td: expected shape {(len(ids),)}, {grid.shape(len(ids))} or {short.shape(len(ids))}, got {shape}"
            )
        learning = np.broadcast_to(grid.offsets >= span.burn_in, grid.shape(len(ids)))
        if span.boundary == "pad":
            counts = np.zeros(len(ids), np.int64)
            held = self._timeline.holds(ids)
            if held.any():
                anchors = self._timeline.anchors(ids[held])
                ages = self._timeline.ages(self._timeline.rows(grid.anchors(anchors, grid.offsets)))
                counts[held] = self._counts(self._timeline.look(), anchors, ages)
            counts[~held] = span.steps  # the draw will call them stale
            learning = learning & (grid.offsets < grid.across(counts))
        if shape == grid.shape(len(ids)):
            return learning
        return learning[span.burn_in :] if span.time_major else learning[:, span.burn_in :]
