"""``ringfence inspect``: what is in a checkpoint, and whether it is sound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from ringfence.cli import show
from ringfence.cli.refusal import Refusal
from ringfence.errors import CheckpointError
from ringfence.saving.survey import is_checkpoint, survey
from ringfence.units import format_bytes

EXAMPLES = """Examples:

  ringfence inspect run7/replay

  ringfence inspect run7/replay --verify --json"""
WIDTH = 40  # columns of the longest bar


def command(
    path: Annotated[Path, typer.Argument(help="The directory that was saved to.")],
    *,
    save: Annotated[int | None, typer.Option(help="The number of an older save that was kept.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Read every file and compare its checksum.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object in place of the table.")] = False,
) -> int:
    """Say what a checkpoint holds; nothing of it is loaded.

    Ends with 0 if it is sound, 1 if it is damaged, 2 if it is no checkpoint.
    """
    if not is_checkpoint(path):
        raise Refusal(f"{path}: is no checkpoint; name the directory that save() was given")
    try:
        figures = survey(path, save, verify=verify)
    except CheckpointError as error:
        raise Refusal(str(error.strerror or error), code=1) from error
    if as_json:
        typer.echo(json.dumps(figures, indent=2))
    else:
        _print(figures)
    return 0


def _print(figures: dict[str, Any]) -> None:
    page, sizes = show.console(), figures["bytes"]
    holds = figures.get("buffer") or figures["kind"]
    page.print(f"{figures['path']}: save {figures['save']} of {figures['saves']}, a {holds}, by {figures['library']}")
    if "fields" in figures:
        page.print(_fields(figures))
        ends = figures["episodes"]
        page.print(f"steps:    {figures['steps']:,} of {figures['capacity']:,}, by stream {figures['held']}")
        page.print(
            f"episodes: {ends['ended_held']:,} ended and held, {ends['open']} open, {ends['ended']:,} ever ended"
        )
        page.print(f"views:    {'; '.join(figures['views']) or 'none'}")
        page.print(f"notes:    {figures['notes']}")
        page.print(f"raw:      {format_bytes(sizes['raw'])}")
        _print_rewards(page, figures["rewards"])
    share = f"manifest {sizes['manifest_share']:.1%}"
    page.print(f"on disk:  {format_bytes(sizes['files'] + sizes['manifest'])}, {share}")
    checked = "checksums" if figures["verified"] else "sizes (--verify reads the checksums)"
    page.print(f"health:   {len(figures['files'])} files, all of the right {checked}", style="green")


def _fields(figures: dict[str, Any]) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for name in ("field", "shape", "dtype"):
        table.add_column(name)
    table.add_column("bytes a step", justify="right")
    for one in figures["fields"]:
        table.add_row(one["name"], str(tuple(one["shape"])), one["dtype"], f"{one['bytes']:,}")
    return table


def _print_rewards(page: Any, rewards: dict[str, Any]) -> None:
    if not rewards["count"]:
        return
    page.print(f"rewards:  mean {rewards['mean']:.4g}, {rewards['not_finite']} not finite")
    most = max(rewards["counts"])
    for low, count in zip(rewards["edges"], rewards["counts"], strict=False):
        page.print(f"  {low:>12.4g} {'#' * -(-count * WIDTH // most)} {count:,}")
