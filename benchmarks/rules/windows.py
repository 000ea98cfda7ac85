# ruff: noqa: D401 - a rule states a behaviour, it commands nothing
"""Frames and steps that belong together: stacks and sequences."""

from collections import deque
from itertools import pairwise
from types import ModuleType

import numpy as np

from benchmarks.rules.base import CAPACITY, Rule, Truth, Verdict, excess, fed, kind, refusal, resident, share, story
from benchmarks.subjects.base import SIDE, Array, Stacks, Step

K, LENGTH = 4, 5
FRAMES, WIDE = 3000, 64


def _stacked(subject: ModuleType, place: str, *, drawn_at_all: bool = True) -> Verdict:
    """Judge the stacks of observations and of their successors, of all steps that lie at a place."""
    ring = kind(subject, "stacks", CAPACITY, K, SIDE)
    told, frames = list(story()), deque([0] * K, K)
    wanted, ages, age = {}, {}, 0
    for at, step in enumerate(told):
        age = 0 if at == 0 or told[at - 1].terminated or told[at - 1].truncated else age + 1
        if not age:
            frames.extend([step.obs] * K)
        before = tuple(frames)
        frames.append(step.next_obs)
        ring.add_stacks(step, before, tuple(frames))
        wanted[step.action], ages[step.action] = (before, tuple(frames)), age
    places = {step.action: _place(at, step, ages[step.action]) for at, step in enumerate(told[-CAPACITY:])}
    bad = of = 0
    for _ in range(12):
        batch = ring.draw(250)
        for action, obs, later in zip(batch["action"].ravel().tolist(), batch["obs"], batch["next_obs"], strict=True):
            if places.get(action) == place:
                of, bad = of + 1, bad + ((tuple(obs.tolist()), tuple(later.tolist())) != wanted[action])
    return Verdict(not bad and (of > 0 or not drawn_at_all), share(bad, of) if of else "never drawn")


def _place(at: int, step: Step, age: int) -> str:
    """Say where the step lies that is number ``at`` of those held."""
    if step.terminated or step.truncated:
        return "termination" if step.terminated else "truncation"
    if at == CAPACITY - 1:
        return "newest"
    if age >= K - 1 > at or age > at:
        return "oldest"  # some of its frames were overwritten
    return "start" if age < K - 1 else "inside"


def stack_inside(subject: ModuleType) -> Verdict:
    """Stacked frames are right: inside an episode, in a ring that wrapped."""
    return _stacked(subject, "inside")


def stack_start(subject: ModuleType) -> Verdict:
    """Stacked frames are right: in the first steps of an episode."""
    return _stacked(subject, "start")


def stack_truncated(subject: ModuleType) -> Verdict:
    """Stacked frames are right, those of the next observation too: at a truncation."""
    return _stacked(subject, "truncation")


def stack_newest(subject: ModuleType) -> Verdict:
    """Stacked frames are right, those of the next observation too, or the step not drawn: of the newest step."""
    return _stacked(subject, "newest", drawn_at_all=False)


def stack_oldest(subject: ModuleType) -> Verdict:
    """Stacked frames are right, or the step not drawn: of the oldest steps, whose earlier frames were overwritten."""
    return _stacked(subject, "oldest", drawn_at_all=False)


def stack_once(subject: ModuleType) -> Verdict:
    """Each frame of a stack is kept once: at most 1.5 frames a step are in memory."""
    fill(kind(subject, "stacks", 50, K, WIDE), 60)  # whatever the library loads and keeps for itself
    before = resident()
    ring = kind(subject, "stacks", FRAMES, K, WIDE)
    fill(ring, FRAMES)
    frames = (resident() - before) / FRAMES / WIDE**2
    return Verdict(frames <= 1.5, f"{frames:.2f} frames a step")


def fill(ring: Stacks, count: int) -> None:
    """Add steps of one long episode."""
    ring.side = WIDE
    frames = deque([0] * K, K)
    for number in range(count):
        before = tuple(frames)
        frames.append((number + 1) % 256)
        ring.add_stacks(Step(0, number % 256, 0.0, 0, False, False), before, tuple(frames))


def _windows(subject: ModuleType, times: int = 40) -> tuple[Truth, Array]:
    """Draw many sequences from a ring that wrapped."""
    ring = kind(subject, "sequences", CAPACITY, LENGTH)
    truth = fed(ring)
    return truth, np.concatenate([ring.draw(100)["obs"] for _ in range(times)])


def sequence_ends(subject: ModuleType) -> Verdict:
    """A sequence lies inside one episode."""
    truth, windows = _windows(subject)
    ends = {step.obs for step in truth.told if step.terminated or step.truncated}
    bad = sum(bool(ends & set(window[:-1].tolist())) for window in windows)
    return Verdict(not bad, f"{bad} of {len(windows)} cross an end" if bad else f"{len(windows)} inside")


def sequence_head(subject: ModuleType) -> Verdict:
    """A sequence never joins the newest step to the oldest, and holds only steps that follow each other."""
    truth, windows = _windows(subject)
    after = {step.obs: later.obs for step, later in pairwise(truth.told)}
    bad = sum(any(after.get(a) != b for a, b in pairwise(w)) for w in windows.tolist())
    return Verdict(not bad, f"{bad} of {len(windows)} spliced" if bad else f"{len(windows)} whole")


def sequence_reach(subject: ModuleType) -> Verdict:
    """Every sequence inside an episode can be drawn, the newest too."""
    truth, windows = _windows(subject)
    legal = truth.windows(LENGTH)
    missing = set(legal) - set(windows[:, 0].tolist())
    newest = "; the newest among them" if legal[-1] in missing else ""
    return Verdict(not missing, f"{len(missing)} of {len(legal)} never drawn{newest}")


def sequence_uniform(subject: ModuleType) -> Verdict:
    """Every sequence inside an episode is equally likely."""
    truth, windows = _windows(subject, 80)
    legal = truth.windows(LENGTH)
    counts = np.array([np.count_nonzero(windows[:, 0] == first) for first in legal])
    if not counts.sum():
        return Verdict(False, "none of them was drawn")
    worst, least = excess(counts), counts.min()
    spread = f"likeliest to rarest {counts.max() / least:.1f} : 1" if least else "some never drawn"
    return Verdict(worst < 1, f"chi-squared {worst:.2f} of the bound; {spread}")


def sequence_short(subject: ModuleType) -> Verdict:
    """Where no episode is long enough for a sequence, an error says so at once."""
    ring = kind(subject, "sequences", CAPACITY, LENGTH)
    fed(ring, 3)
    error = refusal(lambda: ring.draw(4))
    return Verdict(error is not None, error or "gave a batch of 4 windows of 5 steps from 3 steps")


def sequence_life(subject: ModuleType) -> Verdict:
    """A draw of sequences answers, or refuses, at every moment of a ring's life."""
    ring = kind(subject, "sequences", 20, 15)
    answers = refused = 0
    for number in range(60):
        ring.add(Step(number, number, 0.0, number + 1, False, False))
        if number >= 15:
            error = refusal(lambda: ring.draw(4))
            answers, refused = answers + (error is None), refused + (error is not None)
    return Verdict(True, f"{answers} answers, {refused} refusals")


RULES: tuple[Rule, ...] = (
    stack_inside,
    stack_start,
    stack_truncated,
    stack_newest,
    stack_oldest,
    stack_once,
    sequence_ends,
    sequence_head,
    sequence_reach,
    sequence_uniform,
    sequence_short,
    sequence_life,
)
