"""Importance weights: the formula, what they are divided by, and schedules of beta."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence import Field, Replay, Schema
from ringfence.draw.importance import Importance, linear
from ringfence.draw.prioritized import Prioritized
from ringfence.draw.ranked import Ranked

NUMBER = Field((), np.int64)
SCHEMA = Schema(obs=NUMBER, action=NUMBER)


def four(**options):
    """Give four steps the priorities 1, 2, 3 and 4, taken as they are; the view, and the weights that are drawn."""
    replay = Replay(SCHEMA, capacity=4, seed=0)
    ids = np.array([replay.add(step, step, 0.0, step + 1, False) for step in range(4)])
    view = replay.transitions(draw=Prioritized(alpha=1, eps=0, stratified=False, **options))
    view.update_priorities(ids, [1.0, 2.0, 3.0, 4.0])
    return view, lambda n: (batch := view.sample(n)) and dict(zip(batch.action.tolist(), batch.weights, strict=True))


def test_weights_by_memory_are_one_for_the_rarest_step_of_all():
    """Priorities 1 to 4 with alpha and beta 1 weigh 1, 1/2, 1/3 and 1/4, whichever steps are in the batch."""
    _, weights = four(beta=1, normalise="memory")

    for n in (1, 2, 300):
        for step, weight in weights(n).items():
            assert weight == np.float32(1 / (step + 1))


def test_weights_by_batch_are_one_for_the_rarest_step_of_the_batch():
    """A batch without the step of priority 1 is divided by the weight of the next one."""
    _, weights = four(beta=1)

    for n in (1, 2, 2, 3, 300):
        found = weights(n)
        smallest = min(found) + 1
        assert found == {step: pytest.approx(smallest / (step + 1), rel=1e-6) for step in found}


@pytest.mark.parametrize("beta", [0, 0.4, 1, 2.5])
@pytest.mark.parametrize("kind", [Prioritized, Ranked])
def test_weights_are_those_of_the_paper(kind, beta):
    """``(N * P) ** -beta`` over the largest of the batch, with the probabilities that the batch itself tells."""
    replay = Replay(SCHEMA, capacity=50, seed=0)
    ids = [replay.add(step, step, 0.0, step + 1, False) for step in range(70)]
    view = replay.transitions(draw=kind(beta=beta))
    view.update_priorities(ids, np.arange(70) % 9 + 0.5)
    batch = view.sample(40)
    raw = (50 * batch.probabilities) ** -float(beta)

    assert batch.weights == pytest.approx(raw / raw.max(), rel=1e-6)
    assert batch.weights.dtype == np.float32
    assert batch.weights.max() == 1


def test_a_schedule_is_asked_with_the_steps_added():
    """All steps ever added to the ring count, of all streams, also those that are gone."""
    asked = []
    replay = Replay(SCHEMA, capacity=10, streams=2, seed=0)
    view = replay.transitions(draw=Prioritized(beta=lambda added: asked.append(added) or 0.5))
    for step in range(30):
        replay.add(step, step, 0.0, step + 1, False, stream=step % 3 % 2)
        view.sample(2)

    assert asked == list(range(1, 31))


def test_a_linear_schedule_ends_where_it_should():
    """From start to end over so many steps, and not beyond."""
    schedule = linear(0.4, 1.0, 1000)

    assert [schedule(added) for added in (0, 500, 1000, 10**9)] == pytest.approx([0.4, 0.7, 1.0, 1.0])


@pytest.mark.parametrize("steps", [0, -3])
def test_a_linear_schedule_needs_steps(steps):
    """Over no steps at all there is no line."""
    with pytest.raises(ValueError, match=f"steps: expected at least 1, got {steps}"):
        linear(0.4, 1.0, steps)


@pytest.mark.parametrize("beta", [-0.1, np.nan, np.inf, "high", None])
def test_a_beta_that_makes_no_sense_is_refused(beta):
    """When the draw is made; and from a schedule, when it is asked."""
    with pytest.raises(ValueError, match="beta: expected a finite number of at least 0, got"):
        Importance(beta, "batch")
    view, _ = four(beta=lambda _: beta)
    with pytest.raises(ValueError, match="beta: expected a finite number of at least 0, got"):
        view.sample(2)


def test_weights_are_normalised_in_one_of_two_ways():
    """Any other name is refused, with those that there are."""
    with pytest.raises(ValueError, match='normalise: expected "batch" or "memory", got \'max\''):
        Prioritized(normalise="max")
