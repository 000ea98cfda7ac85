"""Count the steps that a double DQN needs to solve a task with one rare reward, with uniform and prioritized replay.

The task is FrozenLake-v1 without slipping, on its 4x4 and its 8x8 map: 1 for reaching the goal, 0 for everything else,
and a hole ends the episode. Actions at random reach the goal of the large map about once in 17,000 steps.

Until the goal was reached once there is nothing to learn but zeros, and no way to replay can matter: up to then all
actions are random, and the same for both ways. What is counted is the steps in all, and those after that first reward.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from torch import nn

import ringfence as rf
from ringfence.integrations.gymnasium import Recorder
from studies import page

EXAMPLE = "Example: python -m studies.per_sparse --seeds 5 --limit 60000 --out results --cpu 1"
STATES = {"4x4": 16, "8x8": 64}
ACTIONS = 4
RESAMPLES = 10_000
IN_A_ROW = 5
"""Looks at the greedy policy that have to reach the goal one after the other; the first of them counts as solved."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """All that the learner is told; the same for both ways to replay."""

    gamma: float = 0.97
    hidden: int = 64
    learning_rate: float = 1e-3
    batch: int = 32
    train_every: int = 4
    sync_every: int = 250
    """Steps between copies of the weights to the target network."""
    begin: int = 1000
    """Steps before the first update."""
    capacity: int = 200_000
    explore: int = 10_000
    """Steps after the first reward in which the share of random actions falls from 1 to `exploration`."""
    exploration: float = 0.05
    look_every: int = 100
    """Steps between looks at the greedy policy."""
    limit: int = 150_000
    """Steps after which a run is given up."""


WAYS: dict[str, Callable[[], rf.Prioritized | None]] = {
    "uniform": lambda: None,
    "prioritized": lambda: rf.Prioritized(alpha=0.6, beta=0.4),
}
COLOURS = {"uniform": page.INK, "prioritized": "#0b5cad"}


class Learner:
    """A double DQN (van Hasselt et al. 2016) whose input is the number of the state."""

    def __init__(self, states: int, actions: int, settings: Settings) -> None:
        self._settings = settings
        self._online, self._target = (
            # a one-hot vector times a matrix is a row of it
            nn.Sequential(nn.Embedding(states, settings.hidden), nn.ReLU(), nn.Linear(settings.hidden, actions))
            for _ in range(2)
        )
        self._states = torch.arange(states)
        self._optimizer = torch.optim.Adam(self._online.parameters(), settings.learning_rate, fused=True)
        self.sync()
        self._decide()

    @torch.no_grad()
    def sync(self) -> None:
        """Copy the weights to the target network."""
        self._target.load_state_dict(self._online.state_dict())
        # there are so few states that both networks are asked about all of them at once, and seldom
        self._values = self._target(self._states)

    @torch.no_grad()
    def _decide(self) -> None:
        self._best = self._online(self._states).argmax(1)
        self.policy: list[int] = self._best.tolist()
        """The best action of each state."""

    def learn(self, batch: rf.Batch) -> Floats:
        """Make one update; give the size of each TD error before it."""
        obs, action, reward, following, discount, weights = (
            torch.from_numpy(batch[name]) for name in ("obs", "action", "reward", "next_obs", "discount", "weights")
        )
        target = reward + discount * self._values[following, self._best[following]]
        value = self._online(obs).gather(1, action[:, None])[:, 0]
        loss = nn.functional.huber_loss(value, target, reduction="none")
        self._optimizer.zero_grad()
        (weights * loss).mean().backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        self._decide()
        errors: Floats = (target - value.detach()).abs().double().numpy()
        return errors


def _lake(field: str) -> gymnasium.Env[Any, Any]:
    return gymnasium.make("FrozenLake-v1", map_name=field, is_slippery=False)


class Trial:
    """One run: one way to replay, one map, one seed."""

    def __init__(self, way: str, field: str, seed: int, settings: Settings) -> None:
        self._settings = settings
        torch.manual_seed(seed)
        self._random = np.random.default_rng([seed, 1])
        env = _lake(field)
        self._looked_at = _lake(field)
        self._replay = rf.Replay(rf.Schema.from_env(env), capacity=settings.capacity, seed=seed, episode_length=4)
        self._env = Recorder(env, self._replay)
        self._env.reset(seed=seed)
        self._draw = WAYS[way]()
        self._view = self._replay.transitions(gamma=settings.gamma, draw=self._draw)
        self._learner = Learner(STATES[field], ACTIONS, settings)
        self._first_reward: int | None = None
        self._rewards = 0

    def run(self) -> dict[str, Any]:
        """Act and learn until solved; give the step of the first reward and of the solution, None without one."""
        settings = self._settings
        solved, in_a_row = None, 0
        state, _ = self._env.reset()
        for step in range(1, settings.limit + 1):
            state = self._act(step, state)
            if step >= settings.begin and step % settings.train_every == 0:
                self._train()
            if step % settings.sync_every == 0:
                self._learner.sync()
            if step % settings.look_every == 0:
                in_a_row = in_a_row + 1 if self._reaches_goal() else 0
                solved = (solved or step) if in_a_row else None
                if in_a_row == IN_A_ROW:
                    break
        return {
            "first_reward": self._first_reward,
            "solved": solved if in_a_row == IN_A_ROW else None,
            "rewards": self._rewards,
            "effective_share": None if self._draw is None else round(self._draw.stats()["effective_share"], 4),
        }

    def _act(self, step: int, state: int) -> int:
        random = self._random.random() < self._share_of_random(step)
        action = int(self._random.integers(ACTIONS)) if random else self._learner.policy[state]
        state, reward, terminated, truncated, _ = self._env.step(action)
        if reward:
            self._rewards += 1
            self._first_reward = self._first_reward or step
        if terminated or truncated:
            state, _ = self._env.reset()
        return int(state)

    def _share_of_random(self, step: int) -> float:
        if self._first_reward is None:
            return 1.0
        gone = min(1.0, (step - self._first_reward) / self._settings.explore)
        return 1 + gone * (self._settings.exploration - 1)

    def _train(self) -> None:
        batch = self._view.sample(self._settings.batch)
        errors = self._learner.learn(batch)
        if self._draw is not None:
            self._view.update_priorities(batch.ids, errors)

    def _reaches_goal(self) -> bool:
        """Tell whether the greedy policy reaches the goal; without slipping, one episode tells all."""
        state, _ = self._looked_at.reset(seed=0)
        ended = False
        while not ended:
            state, reward, terminated, truncated, _ = self._looked_at.step(self._learner.policy[state])
            ended = terminated or truncated
        return bool(reward)


def measure(field: str, seeds: range, settings: Settings, tell: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Run both ways on a map for each seed."""
    for seed in seeds:
        for way in WAYS:
            began = time.perf_counter()
            run = {"map": field, "way": way, "seed": seed, **Trial(way, field, seed, settings).run()}
            yield run | {"seconds": round(time.perf_counter() - began, 1)}
            tell(
                f"{field} seed {seed:<2} {way:<12} first reward {run['first_reward']!s:>6}, solved {run['solved']!s:>6}"
            )


def taken(runs: list[dict[str, Any]], field: str, *, limit: int, after: bool) -> tuple[Floats, Floats]:
    """Give the steps to the solution by seed, uniform and prioritized, in all or after the first reward.

    A run that was given up counts with the limit, and one without any reward with 0 after it.
    """
    found = {
        (run["way"], run["seed"]): (run["solved"] or limit) - ((run["first_reward"] or limit) if after else 0)
        for run in runs
        if run["map"] == field
    }
    seeds = sorted({seed for _, seed in found})
    uniform, prioritized = (np.array([found[way, seed] for seed in seeds], np.float64) for way in WAYS)
    return uniform, prioritized


def interval(values: Callable[[NDArray[np.int64]], Floats], seeds: int) -> tuple[float, float]:
    """Give the 95 % bootstrap interval of a figure that is worked out from (resamples, seeds) numbers of seeds."""
    drawn = np.random.default_rng(0).integers(0, seeds, (RESAMPLES, seeds))
    low, high = np.percentile(values(drawn), (2.5, 97.5))
    return float(low), float(high)


def mean_interval(steps: Floats) -> tuple[float, float]:
    """Give the interval of a mean over seeds."""

    def means(drawn: NDArray[np.int64]) -> Floats:
        found: Floats = steps[drawn].mean(-1)
        return found

    return interval(means, len(steps))


def change(uniform: Floats, prioritized: Floats) -> tuple[float, float, float]:
    """Give by how much prioritized replay changes the mean, in percent, and the interval over pairs of one seed."""

    def percent(drawn: NDArray[np.int64]) -> Floats:
        changes: Floats = 100 * (prioritized[drawn].mean(-1) / uniform[drawn].mean(-1) - 1)
        return changes

    return float(percent(np.arange(len(uniform)))), *interval(percent, len(uniform))


def table(runs: list[dict[str, Any]], limit: int) -> str:
    """Write means with their intervals, and the change with its own, for each map."""
    heads = [
        "steps to solve",
        "seeds",
        *(f"{way}, mean" for way in WAYS),
        *(f"{way}, median" for way in WAYS),
        "change",
    ]
    rows = []
    for field in dict.fromkeys(run["map"] for run in runs):
        for words, after in (("in all", False), ("after the first reward", True)):
            both = taken(runs, field, limit=limit, after=after)
            ends = [mean_interval(steps) for steps in both]
            means = [
                f"{steps.mean():,.0f} ({low:,.0f} to {high:,.0f})"
                for steps, (low, high) in zip(both, ends, strict=True)
            ]
            medians = [f"{np.median(steps):,.0f}" for steps in both]
            middle, low, high = change(*both)
            cells = [f"{field}, {words}", str(len(both[0])), *means, *medians]
            rows.append([*cells, f"{middle:+.0f} % ({low:+.0f} to {high:+.0f})"])
    return page.table(heads, rows)


def plot(path: Path, runs: list[dict[str, Any]], limit: int) -> None:
    """Draw the steps after the first reward: a line for each seed, from uniform to prioritized, and the means."""
    from matplotlib.figure import Figure

    fields = list(dict.fromkeys(run["map"] for run in runs))
    figure = Figure(figsize=(8, 4), dpi=200, layout="constrained", facecolor="white")
    for axes, field in zip(np.ravel(figure.subplots(1, len(fields))), fields, strict=True):
        both = taken(runs, field, limit=limit, after=True)
        axes.plot([0, 1], both, color=page.GRID, lw=1.2)
        for place, (steps, colour) in enumerate(zip(both, COLOURS.values(), strict=True)):
            low, high = mean_interval(steps)
            axes.plot([place] * len(steps), steps, "o", color=colour, ms=4, alpha=0.5, mew=0)
            edge = -0.12 if place == 0 else 1.12
            axes.errorbar(
                edge, steps.mean(), [[steps.mean() - low], [high - steps.mean()]], fmt="o", color=colour, capsize=4
            )
        middle, low, high = change(*both)
        title = f"{field}: {middle:+.0f} % ({low:+.0f} to {high:+.0f}), {len(both[0])} seeds"
        axes.set_title(title, loc="left", color=page.INK, fontsize=11)
        axes.set_xticks([0, 1], list(WAYS))
        axes.set(xlim=(-0.35, 1.35), ylim=(0, None))
        page.clean(axes)
    figure.axes[0].set_ylabel("steps from first reward to solved")
    figure.savefig(path)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.per_sparse", description=__doc__, epilog=EXAMPLE)
    parser.add_argument("--seeds", type=int, default=20, help="runs of each kind on the 4x4 map (default: 20)")
    parser.add_argument("--large-seeds", type=int, default=10, help="the same on the 8x8 map (default: 10)")
    parser.add_argument(
        "--limit", type=int, default=150_000, help="steps after which a run is given up (default: 150000)"
    )
    parser.add_argument("--quick", action="store_true", help="two seeds of the 4x4 map: a few seconds")
    parser.add_argument("--out", type=Path, default=Path("docs/studies"), help="folder for per_sparse.json and .png")
    parser.add_argument("--cpu", type=int, help="stay on this CPU")
    chosen = parser.parse_args(given)
    if chosen.quick:
        chosen.seeds, chosen.large_seeds, chosen.limit = 2, 0, 10_000
    return chosen


def main(given: list[str] | None = None) -> list[dict[str, Any]]:
    """Run the study; write figures and picture, print the table."""
    chosen = arguments(given)
    page.pin(chosen.cpu)
    torch.set_num_threads(1)
    chosen.out.mkdir(parents=True, exist_ok=True)
    settings = Settings(limit=chosen.limit)
    about = {"versions": page.versions("ringfence", "numpy", "torch", "gymnasium"), "settings": asdict(settings)}
    tell = Console(stderr=True, highlight=False, soft_wrap=True).out
    runs: list[dict[str, Any]] = []
    for field, seeds in zip(STATES, (chosen.seeds, chosen.large_seeds), strict=True):
        for run in measure(field, range(seeds), settings, tell):
            runs.append(run)
            page.save(chosen.out / "per_sparse.json", about | {"runs": runs})
    plot(chosen.out / "per_sparse.png", runs, chosen.limit)
    Console(highlight=False, soft_wrap=True, markup=False).print(table(runs, chosen.limit))
    return runs


if __name__ == "__main__":
    main()
