"""What one worker does for each workload: build, check a small ring, fill a big one, hand out what to time."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle, islice
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.checks import Verdict, check
from benchmarks.data import Frames, Steps
from benchmarks.meter import Timer, calls, forever, made, resident, stream
from benchmarks.peers import Unsupported, builder
from benchmarks.peers.base import Ring
from benchmarks.priorities import Trip, faults, some
from benchmarks.screens import WINDOWS, Screens, check_windows

STREAMS = 64
BATCHES = (32, 256, 1024, 4096)
N_STEP, GAMMA = 3, 0.99
SMALL = 400
"""Capacity of the rings that are checked row by row, two and a half laps in."""


@dataclass(frozen=True)
class Size:
    """How big a run is."""

    capacity: int = 1_000_000
    frames: int = 50_000
    laps: int = 3
    """Further laps over the full ring in `memory`,"""
    seconds: float = 30.0
    """but at most this long for them: some peers would take minutes."""
    recorded: bool = True
    """Real frames; or else random ones."""
    torch: bool = True
    screens: int = 100_000
    """Steps of `sequences`."""
    rings: tuple[int, ...] = (10_000, 100_000, 1_000_000, 10_000_000)
    """Capacities of `scaling`."""


@dataclass
class Bench:
    """One peer ready to be timed."""

    verdict: Verdict
    cases: dict[str, Timer] = field(default_factory=dict)
    facts: dict[str, float] = field(default_factory=dict)
    """Figures that need no rounds: bytes, and how many adds they come from."""


def add(peer: str, size: Size) -> Bench:
    """Add one step of one environment to a full ring, from its raw values."""
    bench, ring, data = full(peer, size)
    rows = list(data.rows(min(2000, len(data))))
    bench.cases["1 step"] = stream(ring.add, cycle(rows))
    return bench


def add64(peer: str, size: Size) -> Bench:
    """Add one step of each of 64 environments to a full ring, from their raw arrays."""
    bench, ring, data = full(peer, size, STREAMS)
    bench.cases["64 steps"] = stream(ring.extend, cycle(list(data.ticks())))
    return bench


def sample(peer: str, size: Size) -> Bench:
    """Draw a uniform batch from a full ring, every field an array (or tensor) of its own."""
    bench, ring, data = full(peer, size)
    for count in BATCHES:
        bench.cases[f"{count} numpy"] = calls(ring.numpy, count)
    if size.torch:
        bench.verdict.merge(check(ring.torch, data, range(len(data)), 256, times=5))
        for count in BATCHES:
            bench.cases[f"{count} torch"] = calls(ring.torch, count)
    return bench


def nstep(peer: str, size: Size) -> Bench:
    """Draw a batch of 3-step transitions: summed reward, the observation it ends at, that step's flags."""
    build = partial(builder(peer, "nstep"), n=N_STEP, gamma=GAMMA)
    lap = Steps.generate(SMALL * 5 // 2, episode=97, closed=False, window=N_STEP, gamma=GAMMA)
    bench = Bench(wrapped(build(SMALL), lap))
    data = Steps.generate(size.capacity, window=N_STEP, gamma=GAMMA)
    ring = build(size.capacity)
    ring.fill(data)
    bench.verdict.merge(check(ring.numpy, data, range(len(data)), 256, times=200))
    bench.cases["256 numpy"] = calls(ring.numpy, 256)
    return bench


def atari(peer: str, size: Size) -> Bench:
    """Keep frame stacks of real games: what a transition weighs, what a step and a batch cost."""
    build = builder(peer, "frames")
    data = Frames.recorded(size.frames) if size.recorded else Frames.generate(size.frames)
    bench = Bench(wrapped(build(SMALL), data.short(SMALL * 5 // 2)))
    before = resident()
    ring = build(size.frames)
    ring.fill(data)
    bench.facts["bytes a transition"] = (resident() - before) / size.frames
    bench.verdict.merge(check(ring.numpy, data, range(size.frames), 32, times=20))
    bench.cases["add"] = made(ring.add, forever(data.rows))
    bench.cases["sample 32"] = calls(ring.numpy, 32)
    return bench


def per(peer: str, size: Size) -> Bench:
    """Draw by priority from a full ring, every field and the weights, update the whole batch, and add one step."""
    bench, ring, data = full(peer, size, kind="per")
    rows = cycle(list(data.rows(min(2000, len(data)))))
    bench.verdict.faults += faults(ring, data, rows, turns=50)
    ring.assign(some(np.random.default_rng(3), len(data)))
    trip = Trip(ring, rows)
    for count in (256, 32, 1024, 4096):
        bench.cases[f"{count} trip"] = calls(trip.of(count))
    return bench


def sequences(peer: str, size: Size) -> Bench:
    """Draw 16 windows of 64 consecutive steps with 64 x 64 colour frames, from episodes of 1000 steps."""
    build, bench = builder(peer, "windows"), Bench(Verdict())
    small = Screens(SMALL * 5 // 2, episode=97)
    ring = build(SMALL)
    for row in small.rows():
        ring.add(*row)
    check_windows(bench.verdict, (ring.numpy(WINDOWS) for _ in range(40)), small, SMALL)
    data = Screens(size.screens)
    ring = build(len(data))
    ring.fill_screens(data)
    check_windows(bench.verdict, (ring.numpy(WINDOWS) for _ in range(40)), data, len(data))
    bench.cases["16 x 64 numpy"] = calls(ring.numpy, WINDOWS)
    return bench


def scaling(peer: str, size: Size) -> Bench:
    """Draw from full rings of growing size, ours alone: nanoseconds a drawn row, every field read."""
    if peer != "ringfence":
        raise Unsupported(f"{peer} has no scaling")
    from benchmarks.peers.ringfence import views

    bench = Bench(Verdict())
    for capacity in size.rings:
        data = Steps.generate(min(capacity // STREAMS, 2000), STREAMS)
        rings = views(capacity // STREAMS * STREAMS, STREAMS, n=N_STEP, gamma=GAMMA)
        for tick in islice(forever(data.ticks), capacity // STREAMS):
            rings["uniform"].extend(*tick)
        rings["prioritized"].assign(some(np.random.default_rng(3), capacity // STREAMS * STREAMS))
        for name, ring in rings.items():
            truth = replace(data, window=N_STEP, gamma=GAMMA) if name == "3-step" else data
            bench.verdict.merge(check(ring.numpy, truth, range(len(data)), 256, times=5))
            bench.cases |= {f"{name}, {count} of {capacity}": calls(ring.numpy, count) for count in BATCHES}
    return bench


def memory(peer: str, size: Size) -> Bench:
    """Weigh a ring over its life: resident memory beyond the bytes of its arrays (negative: not committed yet)."""
    build = builder(peer, "ring")
    bench = Bench(wrapped(build(SMALL), Steps.generate(SMALL * 5 // 2, episode=97, closed=False)))
    data = Steps.generate(size.capacity)
    before = resident()
    ring = build(size.capacity)
    built = resident() - before
    ring.fill(data)
    filled = resident() - before
    added, stop = 0, perf_counter() + size.seconds
    for row in forever(data.rows):
        ring.add(*row)
        added += 1
        if added == size.laps * size.capacity or (added % 1000 == 0 and perf_counter() > stop):
            break
    del row
    after = resident() - before
    bench.facts = {"nbytes": ring.nbytes, "built": built - ring.nbytes, "filled": filled - ring.nbytes}
    bench.facts |= {"later": after - ring.nbytes, "growth": after - filled, "adds": added}
    return bench


def full(peer: str, size: Size, streams: int = 1, kind: str = "ring") -> tuple[Bench, Any, Steps]:
    """Return a full ring of a kind with the steps in it, checked, after a small one was."""
    build = builder(peer, kind)
    few = min(streams, 8)
    lap = Steps.generate(SMALL * 5 // 2 // few, few, episode=97, closed=False)
    bench = Bench(wrapped(build(SMALL, few), lap))
    data = Steps.generate(size.capacity // streams, streams)
    ring = build(len(data), streams)
    ring.fill(data)
    bench.verdict.merge(check(ring.numpy, data, range(len(data)), 256, times=10))
    return bench, ring, data


def wrapped(ring: Ring, data: Steps | Frames) -> Verdict:
    """Feed a ring of SMALL transitions two and a half laps, step by step, and look at all it holds."""
    if isinstance(data, Steps) and data.streams > 1:
        for tick in data.ticks():
            ring.extend(*tick)
    else:
        for row in data.rows():
            ring.add(*row)
    return check(ring.numpy, data, range(len(data) - SMALL, len(data)), 128, times=80)


WORKS: dict[str, Callable[[str, Size], Bench]] = {
    "add": add,
    "add64": add64,
    "sample": sample,
    "nstep": nstep,
    "per": per,
    "sequences": sequences,
    "atari": atari,
    "memory": memory,
    "scaling": scaling,
}
