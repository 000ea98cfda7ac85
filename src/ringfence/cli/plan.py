"""``ringfence plan``: what a ring takes and whether it fits, before the first step."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ringfence.cli import environment, options, schemafile, show
from ringfence.cli.refusal import Refusal, refusing
from ringfence.limits import MemoryLimit, Rule, memory_limit
from ringfence.plan import EPISODE, Plan, plan
from ringfence.schema import Field, Schema
from ringfence.schema.tree import rebuild
from ringfence.units import format_bytes, parse_bytes

EXAMPLES = """Examples:

  ringfence plan HalfCheetah-v5 --capacity 1e6

  ringfence plan schema.json --budget 2GiB

  ringfence plan --obs 84x84 --dtype uint8 --stack 4 --capacity 1e6 --limit 16GiB"""
Dtype = np.dtype[Any]


def command(
    target: Annotated[str | None, typer.Argument(help="An environment's name, or a schema in a .json file.")] = None,
    *,
    obs: Annotated[
        Any, typer.Option(parser=options.shape, metavar="SHAPE", help="In place of a target: one observation, 84x84.")
    ] = None,
    dtype: Annotated[
        Any, typer.Option(parser=options.dtype, metavar="DTYPE", help="Of --obs; float32 unless given.")
    ] = None,
    stack: Annotated[int | None, typer.Option(min=1, help="Frames that --obs is presented as.")] = None,
    action: Annotated[
        Any, typer.Option(parser=options.shape, metavar="SHAPE", help="Beside --obs; one discrete action unless given.")
    ] = None,
    action_dtype: Annotated[
        Any, typer.Option(parser=options.dtype, metavar="DTYPE", help="float32 with --action, int64 without.")
    ] = None,
    stored: Annotated[
        Any,
        typer.Option(parser=options.dtype, metavar="DTYPE", help="Keep observations in this narrower dtype, float16."),
    ] = None,
    capacity: Annotated[
        Any, typer.Option(parser=options.count, metavar="STEPS", help="Transitions in all, 1e6.")
    ] = None,
    budget: Annotated[Any, typer.Option(parser=options.size, metavar="BYTES", help="As many as fit, 2GiB.")] = None,
    streams: Annotated[int, typer.Option(min=1, help="Environments recorded side by side.")] = 1,
    episode_length: Annotated[int, typer.Option(min=1, help="Steps of an average episode.")] = EPISODE,
    limit: Annotated[
        Any, typer.Option(parser=options.size, metavar="BYTES", help="Pretend that so much is free, 16GiB.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object in place of the table.")] = False,
) -> int:
    """Say what a ring takes, line by line, whether that fits, and what would; nothing is allocated.

    Ends with 0 if it fits, 1 if not, 2 if the question makes no sense.
    """
    if capacity is None and budget is None:
        raise Refusal("give --capacity 1e6 or --budget 2GiB")
    flags = {"--dtype": dtype, "--stack": stack, "--action": action, "--action-dtype": action_dtype}
    schema = _targeted(target, flags) if obs is None else _described(target, obs, flags)
    found = memory_limit().shared if limit is None else _pretended(limit)
    with refusing():
        schema = schema if stored is None else _narrowed(schema, stored)
        answer = plan(schema, capacity, budget=budget, streams=streams, episode_length=episode_length, limit=found)
    if as_json:
        typer.echo(json.dumps(_figures(answer, found), indent=2))
    else:
        _print(answer, found)
    return 0 if answer.fits else 1


def _targeted(target: str | None, flags: dict[str, Any]) -> Schema:
    if target is None:
        raise Refusal("name an environment or a schema file, or describe a step with --obs 84x84")
    astray = [flag for flag, value in flags.items() if value is not None]
    if astray:
        raise Refusal(f"{', '.join(astray)} belongs to --obs; {target} says this by itself")
    path = Path(target)
    with refusing():
        if path.suffix == ".json" or path.is_file():
            return schemafile.read(path)
        env = environment.make(target)
        try:
            return Schema.from_env(env)
        finally:
            env.close()


def _described(target: str | None, obs: tuple[int, ...], flags: dict[str, Any]) -> Schema:
    if target is not None:
        raise Refusal(f"{target} and --obs both say what a step is: give one of them")
    act = flags["--action"]
    act_dtype = flags["--action-dtype"] or np.dtype(np.int64 if act is None else np.float32)
    with refusing():
        frame = Field(obs, flags["--dtype"] or np.dtype(np.float32), stack=flags["--stack"])
        return Schema(obs=frame, action=Field(act or (), act_dtype))


def _narrowed(schema: Schema, stored: Dtype) -> Schema:
    """Store those observations narrower that can be; refuse if none can."""
    by_name = {leaf.name: leaf.field for leaf in schema.leaves() if leaf.role == "obs"}
    wider = {name: field for name, field in by_name.items() if field.dtype.itemsize > stored.itemsize}
    fields = {name: dataclasses.replace(field, stored=stored) for name, field in wider.items()}
    if not fields:
        raise Refusal(f"--stored {stored}: no observation is wider; there are {', '.join(map(str, by_name.values()))}")
    obs = rebuild(schema.obs, (by_name | fields).__getitem__, "obs")
    return Schema(obs=obs, action=schema.action, reward=schema.reward, extras=schema.extras)


def _pretended(limit: str) -> MemoryLimit:
    return MemoryLimit.of([Rule(f"--limit {limit}", parse_bytes(limit), used=0, where="pretended")])


def _print(answer: Plan, found: MemoryLimit) -> None:
    page = show.console()
    page.print(show.plan_table(answer))
    page.print(f"memory limit: {found.rules[0]}, {format_bytes(found.used)} used")
    page.print(f"decided by:   {answer.reason}, {format_bytes(answer.available)} may be taken")
    best = f"at most {answer.fitting:,} transitions" if answer.fitting else "not even the smallest ring"
    page.print(f"what fits:    {best}")
    verdict = f"{format_bytes(answer.bytes)} of {format_bytes(answer.available)}"
    if answer.fits:
        page.print(f"verdict:      fits, {verdict}", style="green")
    else:
        page.print(f"verdict:      DOES NOT FIT, {verdict}", style="bold red")


def _figures(answer: Plan, found: MemoryLimit) -> dict[str, Any]:
    rule = found.rules[0]
    return {
        "fits": answer.fits,
        "capacity": answer.capacity,
        "streams": answer.streams,
        "full_at": answer.full_at,
        "step_bytes": answer.step_bytes,
        "bytes": answer.bytes,
        "available": answer.available,
        "reason": answer.reason,
        "fitting": answer.fitting,
        "limit": {"rule": rule.name, "where": rule.where, "limit": found.limit, "used": found.used},
        "rows": [
            {"name": name, "step_bytes": step, "bytes": total, "note": note}
            for name, step, total, note in answer.rows()
        ],
    }
