"""One soak: warm up, build the ring, walk, measure, and come to a verdict."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringfence.cli import environment
from ringfence.cli.progress import Progress
from ringfence.cli.refusal import Refusal, refusing
from ringfence.cli.signals import Stop, stopping
from ringfence.cli.trace import Trace
from ringfence.cli.verdict import Marks, Verdict
from ringfence.cli.walk import walk
from ringfence.guard import Slope, slope
from ringfence.integrations.gymnasium import Recorder
from ringfence.plan import Plan, plan
from ringfence.replay import Replay
from ringfence.schema import Schema

REHEARSAL = 2000  # steps and a few seconds at most, in which code, caches and the environment's own memory settle
REHEARSAL_SECONDS = 5
ENOUGH = 20  # measurements that a slope after the full ring is worth having from
WARM = 0.1  # of a run, after which the slope is measured where the ring was full too late or never
LOOK = 16  # turns between two looks at the clock and at the ring, which cost as much as half a step


@dataclass(frozen=True, slots=True)
class Course:
    """What a soak does."""

    env: str
    steps: int
    capacity: int | None
    budget: str | None
    num_envs: int | None
    """None for one environment that is no vector."""
    episode_length: int
    sample_every: int
    seed: int


def run(course: Course) -> tuple[Verdict, Trace]:
    """Soak one environment; the verdict is partial where a signal asked to stop.

    Raises:
        Refusal: The environment cannot be made or failed, the ring does not fit, or a signal came before any step.
    """
    env = _made(course)
    try:
        with refusing():
            ring = _planned(env, course)
            ring.check()
        with stopping() as stop, closing(Progress(course.steps, ring.capacity)) as progress:
            return _soaked(env, ring, course, stop, progress)
    finally:
        env.close()


def _made(course: Course) -> Any:
    if course.num_envs is None:
        return environment.make(course.env)
    return environment.make_vector(course.env, course.num_envs)


def _planned(env: Any, course: Course) -> Plan:
    return plan(
        Schema.from_env(env),
        course.capacity,
        budget=course.budget,
        streams=course.num_envs or 1,
        episode_length=course.episode_length,
    )


def _replay(ring: Plan, course: Course, capacity: int) -> Replay:
    with refusing():
        return Replay(
            ring.schema,
            capacity,
            streams=ring.streams,
            seed=course.seed,
            episode_length=course.episode_length,
        )


def _soaked(env: Any, ring: Plan, course: Course, stop: Stop, progress: Progress) -> tuple[Verdict, Trace]:
    progress.stage("warming up")
    _rehearse(env, ring, course, stop)
    gc.collect()
    trace = Trace(course.steps)
    before = trace.resident()
    progress.stage("taking the ring's memory")
    replay = _replay(ring, course, ring.capacity)
    built = trace.measure(0)
    if stop.asked:
        raise Refusal("stopped before the first step", code=130)
    made = _measured(_walked(env, replay, course), replay, course.steps, stop, trace, progress)
    return _judged(ring, course, replay, made, Marks(before, built, trace.full, int(trace.nbytes[-1])), trace), trace


def _rehearse(env: Any, ring: Plan, course: Course, stop: Stop) -> None:
    """Do all that the run does with a small ring, so that what is measured afterwards is the ring alone."""
    share = min(ring.capacity // ring.streams, max(256, ring.schema.stack))
    replay = _replay(ring, course, share * ring.streams)
    trace = Trace(REHEARSAL)
    for made in _walked(env, replay, course):
        if made >= REHEARSAL or trace.seconds >= REHEARSAL_SECONDS or stop.asked:
            return
        if trace.due(made):
            trace.measure(made, turning=_turning(replay))


def _measured(steps: Iterator[int], replay: Replay, asked: int, stop: Stop, trace: Trace, progress: Progress) -> int:
    """Walk to the end, or until asked to stop; give the number of steps made."""
    for turn, made in enumerate(steps, 1):
        last = made >= asked or stop.asked
        if not last and turn % LOOK:
            continue
        turning = trace.full is not None or _turning(replay)
        if last or trace.due(made) or (turning and trace.full is None):
            progress.update(made, trace.measure(made, turning=turning), len(replay))
        if last:
            return made
    raise AssertionError("a walk has no end")


def _turning(replay: Replay) -> bool:
    """Tell whether the ring drops its oldest steps: it is full, or had no room for so many ended episodes."""
    figures = replay.stats()
    return bool(figures["size"] == replay.capacity or figures["early"])


def _walked(env: Any, replay: Replay, course: Course) -> Iterator[int]:
    made = 0
    try:
        for made in walk(Recorder(env, replay), sample_every=course.sample_every, seed=course.seed):
            yield made
    except Exception as error:  # the environment is anyone's code and may raise anything
        text = f"{course.env}, after {made:,} steps: {type(error).__name__}: {error}"
        raise Refusal(text, code=1) from error


def _judged(ring: Plan, course: Course, replay: Replay, made: int, marks: Marks, trace: Trace) -> Verdict:
    figures = replay.stats()
    line, watched = _slope(trace, made)
    return Verdict(
        env=course.env,
        asked=course.steps,
        made=made,
        planned=ring.bytes,
        nbytes=replay.nbytes,
        marks=marks,
        full_at=trace.full_at,
        capacity=replay.capacity,
        held=figures["size"],
        early=figures["early"],
        slope=line,
        watched=watched,
        seconds=trace.seconds,
    )


def _slope(trace: Trace, made: int) -> tuple[Slope | None, int]:
    """Give the slope and the steps it was measured over: since the ring was full where that is long enough."""
    since = WARM * made
    if trace.full_at is not None and np.count_nonzero(trace.steps >= trace.full_at) >= ENOUGH:
        since = trace.full_at
    chosen = trace.steps >= since
    steps = trace.steps[chosen]
    if len(np.unique(steps)) < 2:
        return None, 0
    return slope(steps, trace.nbytes[chosen]), int(steps[-1] - steps[0])
