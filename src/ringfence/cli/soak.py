"""``ringfence soak``: a real environment through a full ring, and whether memory stayed where it was promised."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ringfence.cli import options, plot, show
from ringfence.cli.refusal import Refusal
from ringfence.cli.verdict import Verdict
from ringfence.plan import EPISODE

EXAMPLES = """Examples:

  ringfence soak HalfCheetah-v5 --steps 2_000_000 --capacity 1_000_000 --plot soak.png

  ringfence soak CartPole-v1 --steps 200k --budget 64MiB --num-envs 8 --json"""
CAPACITY = 1_000_000


def command(
    env: Annotated[str, typer.Argument(help="A Gymnasium environment; module:name imports the module first.")] = (
        "HalfCheetah-v5"
    ),
    *,
    steps: Annotated[Any, typer.Option(parser=options.count, metavar="STEPS", help="Steps to make.")] = "2_000_000",
    capacity: Annotated[
        Any,
        typer.Option(
            parser=options.count, metavar="STEPS", help="Transitions to keep; 1_000_000, or what --budget allows."
        ),
    ] = None,
    budget: Annotated[
        Any, typer.Option(parser=options.size, metavar="BYTES", help="What the ring may take, 2GiB.")
    ] = None,
    num_envs: Annotated[
        int | None,
        typer.Option(min=1, help="Make a vector environment of so many; one that is no vector unless given."),
    ] = None,
    episode_length: Annotated[int, typer.Option(min=1, help="Steps of an average episode.")] = EPISODE,
    sample_every: Annotated[int, typer.Option(min=1, help="Draw a batch of 256 every so many steps.")] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Of the environment, the actions and the draws.")] = 0,
    picture: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw memory over steps: .png, .svg or .pdf.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object in place of the table.")] = False,
) -> int:
    """Step a real environment through a full ring, sample as a learner would, and judge the memory it took.

    Ends with 0 if memory stayed as planned, 1 if not or if the ring does not fit, 2 if the question makes no sense.
    Ctrl-C ends the run with the verdict so far.
    """
    if picture is not None:
        plot.check(picture)
    if capacity is None and budget is None:
        capacity = CAPACITY
    from ringfence.cli.trial import Course, run  # gymnasium takes a second, which --help need not

    verdict, trace = run(Course(env, steps, capacity, budget, num_envs, episode_length, sample_every, seed))
    if as_json:
        typer.echo(json.dumps(_figures(verdict), indent=2))
    else:
        page = show.console()
        page.print(show.verdict_table(verdict))
        page.print(verdict.summary, style="green" if verdict.passed else "bold red")
    if picture is not None:
        try:
            plot.draw(picture, verdict, trace)
        except OSError as error:
            raise Refusal(f"--plot: {picture} cannot be written ({error.strerror})") from error
    return 0 if verdict.passed else 1


def _figures(verdict: Verdict) -> dict[str, Any]:
    """Give the verdict as plain values; JSON has no infinity, so an open end of an interval is null."""
    figures = asdict(verdict)
    if verdict.slope is not None:
        figures["slope"] = {
            name: value if math.isfinite(value) else None for name, value in asdict(verdict.slope).items()
        }
    derived = {name: getattr(verdict, name) for name in ("passed", "partial", "cost", "growth", "beyond")}
    failed = [line.name for line in verdict.lines() if line.passed is False]
    return derived | {"failed": failed} | figures
