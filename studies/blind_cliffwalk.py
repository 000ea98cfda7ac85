"""Count the updates that Q-learning needs on the Blind Cliffwalk, by how the replayed transitions are chosen.

Repeats the comparison of Schaul et al. 2016, "Prioritized Experience Replay" (figures 1 and 2, appendix B.1): a memory
of all action sequences, one transition an update, until the mean squared error to the true values is below 1e-3.
"""

from __future__ import annotations

import argparse
import heapq
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

import ringfence as rf
from studies import page
from studies.cliffwalk import Cliffwalk, Learner, Step

EXAMPLE = "Example: python -m studies.blind_cliffwalk --states 2-12 --seeds 5 --out results --cpu 1"
BLOCK = 4096  # uniform draws depend on nothing that was learned, so that many at once are as good as one by one
GAIN = 1e-3
"""Share of the loss that an update has to take away to be of use to the oracle."""
PATIENCE = 200
"""Updates for each transition in memory after which a run is given up."""
LONG = 14
"""States from which on a run takes so long that there are fewer of each kind."""

Memory = NDArray[np.int64]
Way = Callable[[Cliffwalk, Memory, Learner, int], Iterator[Step]]
"""A way to choose: gives one transition after another, each to be learned from before the next is asked for."""


def fill(walk: Cliffwalk, memory: Memory, seed: int) -> rf.Replay:
    """Put all transitions into a ring that holds just these."""
    schema = rf.Schema(obs=rf.Field((), np.int64), action=rf.Field((), np.int64))
    # half of all episodes are a single step: room for one final observation a step
    replay = rf.Replay(schema, capacity=len(memory), seed=seed, episode_length=1)
    for number in memory.tolist():
        state, action, reward, following, terminated = walk.steps[number]
        replay.add(state, action, reward, following, terminated)
    assert len(replay) == len(memory)
    return replay


def steps_of(batch: rf.Batch) -> Iterator[Step]:
    """Give the transitions of a batch one by one."""
    fields = (batch.obs, batch.action, batch.reward, batch.next_obs, batch.terminated)
    return map(Step, *(field.tolist() for field in fields))


def uniform(walk: Cliffwalk, memory: Memory, _learner: Learner, seed: int) -> Iterator[Step]:
    """Choose each transition as often as any other."""
    view = fill(walk, memory, seed).transitions(gamma=walk.gamma)
    while True:
        yield from steps_of(view.sample(BLOCK))


def oracle(walk: Cliffwalk, memory: Memory, learner: Learner, _seed: int) -> Iterator[Step]:
    """Choose the transition after which the true loss is smallest: hindsight that no learner has.

    With a bias it happens that none makes it smaller, and that the best is one that changes nothing, for ever; then the
    one with the largest TD error is taken.
    """
    held = [walk.steps[number] for number in np.unique(memory)]
    while True:
        best = min(held, key=learner.loss_after)
        gains = learner.loss_after(best) < (1 - GAIN) * learner.loss
        yield best if gains else max(held, key=lambda step: abs(learner.error(step)))


def greedy(walk: Cliffwalk, memory: Memory, learner: Learner, _seed: int) -> Iterator[Step]:
    """Choose the transition whose TD error was largest when it was last replayed, or 1 if it never was."""
    heap = [(-1.0, place) for place in range(len(memory))]
    steps = [walk.steps[number] for number in memory.tolist()]
    while True:
        _, place = heap[0]
        error = abs(learner.error(steps[place]))
        yield steps[place]
        heapq.heapreplace(heap, (-error, place))


def prioritized(draw: Callable[[], rf.Prioritized | rf.Ranked]) -> Way:
    """Choose by the priorities of a draw of ours, each set to the TD error when its transition is replayed."""

    def choose(walk: Cliffwalk, memory: Memory, learner: Learner, seed: int) -> Iterator[Step]:
        view = fill(walk, memory, seed).transitions(gamma=walk.gamma, draw=draw())
        while True:
            batch = view.sample(1)
            for step in steps_of(batch):
                error = abs(learner.error(step))
                yield step
                view.update_priorities(batch.ids, [error])

    return choose


# The paper compares them before it brings in importance weights, so beta is 0; its exponents are those of section 4.
WAYS: dict[str, Way] = {
    "uniform": uniform,
    "greedy TD": greedy,
    "rank-based": prioritized(lambda: rf.Ranked(alpha=0.7, beta=0)),
    "proportional": prioritized(lambda: rf.Prioritized(alpha=0.6, beta=0)),
    "oracle": oracle,
}
VALUES = {"tabular": False, "linear": True}
"""How values are held, and whether there is a bias."""
COLOURS = {
    "uniform": page.INK,
    "greedy TD": "#8250df",
    "rank-based": "#cf222e",
    "proportional": "#0b5cad",
    "oracle": "#1a9fb0",
}


def updates(way: str, values: str, states: int, seed: int) -> int | None:
    """Count the updates until the values are learned; None if that did not come about.

    Memory and first weights depend on the seed and on n alone, so they are the same for every way to choose.
    """
    walk = Cliffwalk(states)
    random = np.random.default_rng([seed, states])
    memory = walk.memory(random)
    learner = Learner(walk, random, bias=VALUES[values])
    if learner.converged:
        return 0
    for count, step in enumerate(WAYS[way](walk, memory, learner, seed), 1):
        learner.learn(step)
        if learner.converged:
            return count
        if count >= PATIENCE * len(memory):
            return None
    raise AssertionError("a way to choose never ends")


def measure(states: range, seeds: Callable[[int], int], tell: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Run every way for every n; each entry holds the counts of all seeds, of which there are ``seeds(n)``."""
    for n, values, way in product(states, VALUES, WAYS):
        began = time.perf_counter()
        counts = [updates(way, values, n, seed) for seed in range(seeds(n))]
        seconds = time.perf_counter() - began
        yield {"values": values, "way": way, "states": n, "updates": counts, "seconds": round(seconds, 2)}
        tell(f"{values:<7} n={n:<2} {way:<12} {_cell(counts):>32}   {seconds:6.1f} s")


def _cell(counts: list[int | None]) -> str:
    """Write the median and the range; a run that was given up counts as the longest."""
    known = [float("inf") if count is None else count for count in counts]
    low, middle, high = (f"{x:,.0f}" if x < float("inf") else "never" for x in (min(known), median(known), max(known)))
    return f"{middle} ({low}-{high})"


def table(runs: list[dict[str, Any]], values: str) -> str:
    """Write medians and ranges, one row for each n."""
    found = {(run["states"], run["way"]): _cell(run["updates"]) for run in runs if run["values"] == values}
    rows = [
        [str(n), f"{2 ** (n + 1) - 2:,}", *(found.get((n, way), "") for way in WAYS)]
        for n in sorted({run["states"] for run in runs})
    ]
    return page.table(["n", "transitions", *WAYS], rows)


def plot(path: Path, runs: list[dict[str, Any]]) -> None:
    """Draw medians, and ranges as bands, over the number of transitions in memory."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.4), dpi=200, layout="constrained", facecolor="white")
    for axes, values in zip(figure.subplots(1, 2, sharex=True, sharey=True), VALUES, strict=True):
        for way, colour in COLOURS.items():
            points = [
                run for run in runs if (run["values"], run["way"]) == (values, way) and None not in run["updates"]
            ]
            held = [2 ** (run["states"] + 1) - 2 for run in points]
            low, high = ([end(run["updates"]) for run in points] for end in (min, max))
            axes.fill_between(held, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.plot(held, [median(run["updates"]) for run in points], "o-", color=colour, ms=3, lw=1.6, label=way)
        axes.set(xscale="log", yscale="log", xlabel="transitions in memory")
        axes.set_title(f"{values} values", loc="left", color=page.INK, fontsize=11)
        page.clean(axes)
    figure.axes[0].set_ylabel("updates until learned")
    figure.axes[0].legend(frameon=False, labelcolor=page.INK, fontsize=9)
    figure.savefig(path)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.blind_cliffwalk", description=__doc__, epilog=EXAMPLE)
    parser.add_argument(
        "--states", default="2-16", metavar="A-B", help="from how many states to how many (default: 2-16)"
    )
    parser.add_argument("--seeds", type=int, default=10, help="runs of each kind (default: 10)")
    parser.add_argument("--long-seeds", type=int, default=3, help=f"the same from {LONG} states on (default: 3)")
    parser.add_argument("--quick", action="store_true", help="8 states and 3 seeds: a few seconds")
    parser.add_argument("--out", type=Path, default=Path("docs/studies"), help="folder for cliffwalk.json and .png")
    parser.add_argument("--cpu", type=int, help="stay on this CPU")
    chosen = parser.parse_args(given)
    if chosen.quick:
        chosen.states, chosen.seeds = "8-8", 3
    first, _, last = chosen.states.partition("-")
    if not (first.isdigit() and last.isdigit() and 2 <= int(first) <= int(last) <= 16):
        parser.error(f"--states: expected two numbers from 2 to 16 such as 2-12, got {chosen.states}")
    chosen.states = range(int(first), int(last) + 1)
    return chosen


def main(given: list[str] | None = None) -> list[dict[str, Any]]:
    """Run the study; write figures and picture, print the tables."""
    chosen = arguments(given)
    page.pin(chosen.cpu)
    chosen.out.mkdir(parents=True, exist_ok=True)
    about: dict[str, Any] = {"versions": page.versions("ringfence", "numpy"), "first_seed": 0, "runs": []}
    tell = Console(stderr=True, highlight=False, soft_wrap=True).out
    for run in measure(chosen.states, lambda n: chosen.seeds if n < LONG else chosen.long_seeds, tell):
        about["runs"].append(run)
        page.save(chosen.out / "cliffwalk.json", about)  # each time, so that a run that is stopped leaves what it found
    runs: list[dict[str, Any]] = about["runs"]
    plot(chosen.out / "cliffwalk.png", runs)
    console = Console(highlight=False, soft_wrap=True, markup=False)
    for values in VALUES:
        console.print(f"\n{values} values\n\n{table(runs, values)}")
    return runs


if __name__ == "__main__":
    main()
