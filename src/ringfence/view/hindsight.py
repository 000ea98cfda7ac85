"""Transitions seen with hindsight: as if what was achieved had been the goal (Andrychowicz et al. 2017).

Goals are put in the place of others when a batch is drawn, and nothing is stored twice. A step gives as goal what it
led to: the achieved goal of the observation after it, which for an episode's last step is its final observation. Which
steps may give it is the strategy's matter: ``future``, the step itself or a later one of its episode; ``final``, the
last of its episode; ``episode``, any of its episode; ``random``, any at all. Only steps that are held count, each of
them alike. The episode that a stream is in ends, for now, with its newest step.

Over several steps the plain transition says which steps are used: n, or fewer where the episode ends, is cut, or has
not gone further. Each of their rewards is computed with the one new goal, brought to the declared dtype, and the
discounted sum is taken in float64. Where a terminate function is given, they stop after the first step whose outcome
it accepts: the transition then ends there, with that step's successor; if it accepts none, the transition does not
end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringfence.draw import Draw, Drawn
from ringfence.store import Store
from ringfence.timeline import Anchors, Ints, Look, Timeline
from ringfence.view import transitions
from ringfence.view.batch import Batch
from ringfence.view.goals import Goals
from ringfence.view.outcomes import Extras, Outcomes
from ringfence.view.path import Path
from ringfence.view.relabel import Relabel
from ringfence.view.sampler import Sampler, Updated
from ringfence.view.transitions import Taken, Transitions, successor

Array = NDArray[Any]
NOTHING: Array = np.empty(0)


class Seen(NamedTuple):
    """What was copied out of the ring for one batch."""

    taken: Taken
    places: Ints
    """Which rows of the batch are relabelled; of these are all that follow."""
    goals: Array
    """(rows, ...) as presented."""
    path: Path | None
    """The steps that are used; None where that is one of each."""
    achieved: Array
    """By each of these steps, as presented."""
    info: dict[str, Array]
    """Extras of each of these steps, as presented."""


class Hindsight:
    """Sample transitions of which some are relabelled.

    Any number of threads or forked processes may sample, each through a view of its own, while one writer a stream
    adds: a batch that was overtaken is drawn again, goals and all.
    """

    def __init__(
        self,
        store: Store,
        timeline: Timeline,
        draw: Draw,
        generator: np.random.Generator,
        relabel: Relabel,
        *,
        n_step: int = 1,
        gamma: float = 0.99,
    ) -> None:
        """Serve the ring of a store; the draw is started by the caller, with ``transitions.window``."""
        layout = store.layout
        self._timeline, self._random, self._relabel = timeline, generator, relabel
        self._n, self._gammas = n_step, gamma ** np.arange(n_step, dtype=np.float64)
        self._plain = Transitions(store, timeline, draw, n_step=n_step, gamma=gamma)
        self._single = Transitions(store, timeline, draw) if n_step > 1 and relabel.terminate is not None else None
        self._sampler = Sampler(timeline, draw, transitions.window(layout), reach=n_step - 1)
        self._goals = Goals(store, timeline, relabel.strategy, generator)
        self._outcomes, self._extras = Outcomes(store, timeline, relabel.achieved), Extras(store, timeline)
        self._of_last = [successor(leaf.name) for leaf in layout.schema.leaves() if leaf.role == "obs"]
        self._of_last += ["terminated", "truncated"]
        recipes = transitions.recipes_of(layout, n_step, gamma)
        self._batch = Batch.kind(recipes | {"relabelled": lambda taken: taken.arrays["relabelled"]})

    def sample(self, n: int) -> Batch:
        """Draw ``n`` transitions, with replacement, and relabel some.

        Raises:
            NotEnoughData: Nothing can be drawn; the text holds the counts.
            SchemaError: A function of the caller did not give what it should.
        """
        seen = self._sampler.sample(n, self._take)
        self._pay(seen)
        return self._batch(seen.taken)

    def can_sample(self, n: int = 1) -> bool:
        """Tell whether at least ``n`` different transitions can be drawn."""
        return self._sampler.can_sample(n)

    def ids(self) -> Ints:
        """List the id of every transition that can be drawn, stream by stream, oldest first."""
        return self._sampler.ids()

    def update_priorities(self, ids: Any, priorities: Any) -> Updated:
        """Give steps new priorities, under whichever goal they were seen; as of ``Transitions``.

        Raises:
            TypeError: The view's draw has no priorities.
            ValueError: A priority is negative, NaN or infinite, or their number is not that of the ids; none was taken.
        """
        return self._sampler.update(ids, priorities)

    def stats(self) -> dict[str, Any]:
        """Give the draw's figures for a log."""
        return self._sampler.stats()

    @property
    def kind(self) -> str:
        """What a saved state must be of to be taken back."""
        return f"hindsight over {self._n} step(s), drawn by {self._sampler.kind}"

    def state(self) -> dict[str, Any]:
        """Give all that the next batches depend on beside the ring, as plain numbers and arrays."""
        return {"draw": self._sampler.state(), "generator": self._random.bit_generator.state}

    def load(self, state: dict[str, Any]) -> None:
        """Take back what :meth:`state` gave.

        Raises:
            ValueError: It is of another draw, or of another ring.
        """
        self._sampler.load(state["draw"])
        self._random.bit_generator.state = state["generator"]

    def _take(self, look: Look, drawn: Drawn) -> Seen | None:
        """Copy all that a batch needs out of the ring, goals among it; None where they were overtaken."""
        taken = self._plain.take(look, drawn)
        chosen = taken.arrays["relabelled"] = self._random.random(taken.count) < self._relabel.ratio
        places = np.flatnonzero(chosen)
        if not len(places):
            return Seen(taken, places, NOTHING, None, NOTHING, {})
        firsts = drawn.anchors.at(places)
        sources = self._goals.choose(look, firsts)
        if sources is None:
            return None
        kept = self._outcomes.take(sources)
        if not self._timeline.untouched(look, sources, 0, 0):
            return None
        seen = self._follow(taken, places, firsts, self._relabel.shown(kept))
        if self._single is not None:
            if not self._timeline.untouched(look, drawn.anchors, 0, self._n - 1):
                return None  # the caller's function sees only what was there
            seen = self._shorten(self._single, look, seen, firsts)
        for name in (self._relabel.desired, successor(self._relabel.desired)):
            taken.arrays[name][places] = kept
        return seen

    def _follow(self, taken: Taken, places: Ints, firsts: Anchors, goals: Array) -> Seen:
        """Copy what the reward function looks at."""
        shown, extras = self._relabel.shown, self._extras
        if taken.steps is None:  # all of it was copied already
            achieved = taken.arrays[successor(self._relabel.achieved)][places]
            return Seen(taken, places, goals, None, shown(achieved), extras.shown(taken.arrays, places))
        path = Path.of(taken.steps[places])
        steps = path.steps(firsts)
        return Seen(taken, places, goals, path, shown(self._outcomes.take(steps)), extras.take(steps))

    def _shorten(self, single: Transitions, look: Look, seen: Seen, firsts: Anchors) -> Seen:
        """Let transitions over several steps stop where the new goal is reached."""
        taken, places, path = seen.taken, seen.places, seen.path
        assert taken.steps is not None
        assert path is not None
        marked = self._relabel.ends(seen.achieved.copy(), seen.goals[path.owners])
        lengths = path.until(marked)
        used = path.ahead < lengths[path.owners]
        shorter = np.flatnonzero(lengths < path.lengths)
        last = firsts.at(shorter)
        if len(shorter):
            again = single.take(look, Drawn(last._replace(times=last.times + lengths[shorter] - 1)))
            for name in self._of_last:
                taken.arrays[name][places[shorter]] = again.arrays[name]
        taken.steps[places] = lengths
        taken.arrays["terminated"][places] = False
        taken.arrays["terminated"][places[path.owners[marked]]] = True
        info = {name: values[used] for name, values in seen.info.items()}
        return seen._replace(path=Path.of(lengths), achieved=seen.achieved[used], info=info)

    def _pay(self, seen: Seen) -> None:
        """Put the rewards under the new goals, and the ends, in the place of those stored."""
        taken, places, path, relabel = seen.taken, seen.places, seen.path, self._relabel
        if not len(places):
            return
        if path is not None:
            assert taken.returns is not None
            rewards = relabel.rewards(seen.achieved, seen.goals[path.owners], seen.info)
            taken.returns[places] = path.sums(rewards, self._gammas)
            return
        if relabel.terminate is not None:
            taken.arrays["terminated"][places] = relabel.ends(seen.achieved.copy(), seen.goals.copy())
        rewards = relabel.rewards(seen.achieved, seen.goals, seen.info)
        presented = taken.arrays["reward"] = taken.arrays["reward"].astype(relabel.paid.dtype)
        presented[places] = rewards
