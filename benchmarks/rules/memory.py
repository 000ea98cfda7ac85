# ruff: noqa: D401 - a rule states a behaviour, it commands nothing
"""Who owns which bytes, and when they are paid."""

import gc
import os
import warnings
import weakref
from types import ModuleType

import numpy as np

from benchmarks.rules.base import CAPACITY, PAGE, Rule, Verdict, drawn, fed, kind, refusal, resident, share, story
from benchmarks.subjects.base import Ring

LARGE = 1_000_000
"""Steps of a ring whose bytes are looked at: about 30 MB."""
HUGE = 40 * 10**9
"""Bytes of a ring that is too large for most machines."""


def committed(subject: ModuleType) -> Verdict:
    """All memory is taken when the ring is built, not while it fills."""
    warm = kind(subject, "ring", CAPACITY)
    fed(warm, 20)
    gc.collect()
    before = resident()
    ring = kind(subject, "ring", LARGE)
    built = resident() - before
    step = next(story())
    ring.add(step)
    first = resident() - before
    least = LARGE * 2 * ring.encode(0).nbytes
    told = (
        f"{built / 1e6:.0f} MB when built, {first / 1e6:.0f} MB after one step, at least {least / 1e6:.0f} MB when full"
    )
    return Verdict(built >= 0.9 * least, told)


def fits(subject: ModuleType) -> Verdict:
    """A ring larger than the machine is refused when it is built."""
    nbytes = max(HUGE, int(1.6 * PAGE * os.sysconf("SC_PHYS_PAGES")))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        error = refusal(lambda: kind(subject, "big", nbytes))
    told = "; ".join(sorted({str(warning.message)[:100] for warning in caught if "memory" in str(warning.message)}))
    built = f"built {nbytes / 1e9:.0f} GB and took a step" + (f"; it warned: {told}" if told else " without a word")
    return Verdict(error is not None, error or built)


def reuse(subject: ModuleType) -> Verdict:
    """The arrays of a step may be used again once it was added."""
    ring = kind(subject, "ring", CAPACITY)
    obs, later = ring.encode(0), ring.encode(0)
    truth = fed(kind(subject, "ring", CAPACITY))
    for step in story():
        obs[...], later[...] = ring.encode(step.obs), ring.encode(step.next_obs)
        ring.put(obs, *step[1:3], later, *step[4:])
    obs[...] = later[...] = 0
    batch = drawn(ring)
    bad = sum(obs not in truth.by_obs for obs in batch["obs"].tolist())
    return Verdict(not bad, share(bad, len(batch["obs"])))


def reuse_sequences(subject: ModuleType) -> Verdict:
    """The arrays of a step may be used again once it was added to a ring of sequences."""
    ring = kind(subject, "sequences", CAPACITY, 3)
    obs, later = ring.encode(0), ring.encode(0)
    for step in story(60):
        obs[...], later[...] = ring.encode(step.obs), ring.encode(step.next_obs)
        ring.put(obs, *step[1:3], later, *step[4:])
    windows = ring.draw(200)["obs"]
    known = np.isin(windows, [step.obs for step in story(60)])
    bad = int((~known | (windows == windows[:, :1]) & [False, True, True]).any(axis=1).sum())
    return Verdict(not bad, share(bad, len(windows)))


class Simulator:
    """Stand for the big thing that an info dict drags along."""


def info(subject: ModuleType) -> Verdict:
    """Objects in an info dict are let go: the ring keeps no reference to them."""
    ring = kind(subject, "ring", CAPACITY)
    if type(ring).put_info is Ring.put_info:
        return Verdict(True, "takes no info dict")
    watched = []
    for step in story(10):
        simulator = Simulator()
        watched.append(weakref.ref(simulator))
        ring.put_info(step, {"simulator": simulator})
        del simulator
    gc.collect()
    alive = sum(reference() is not None for reference in watched)
    return Verdict(not alive, f"{alive} of {len(watched)} objects kept alive")


def copies(subject: ModuleType) -> Verdict:
    """A batch is the caller's own: writing into it does not change the ring."""
    ring = kind(subject, "ring", CAPACITY)
    truth = fed(ring)
    for _ in range(20):
        for array in ring.arrays(50):
            array[...] = 0
    batch = drawn(ring)
    bad = 0
    for obs, later in zip(batch["obs"].tolist(), batch["next_obs"].tolist(), strict=True):
        step = truth.by_obs.get(obs)
        bad += step is None or later != step.next_obs
    return Verdict(not bad, share(bad, len(batch["obs"])))


RULES: tuple[Rule, ...] = (committed, fits, reuse, reuse_sequences, info, copies)
