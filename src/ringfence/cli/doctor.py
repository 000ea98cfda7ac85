"""``ringfence doctor``: what the memory of a training script goes to, in plain words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ringfence.cli import options
from ringfence.cli.refusal import Refusal, refusing
from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.examine import examine
from ringfence.guard.doctor.html import html
from ringfence.guard.doctor.report import plain, text
from ringfence.guard.doctor.rules import diagnose
from ringfence.units import parse_bytes

EXAMPLES = """Examples:

  ringfence doctor -- python train.py --env CartPole-v1

  ringfence doctor --seconds 60 --html report.html -- python -m mypackage.train

  ringfence doctor --steps 20k --json -- train.py"""


def command(
    script: Annotated[list[str], typer.Argument(metavar="-- COMMAND", help="python train.py and its arguments.")],
    *,
    seconds: Annotated[float, typer.Option(min=1.0, help="Watch for so long, counted from the first step.")] = 20.0,
    steps: Annotated[
        Any, typer.Option(parser=options.count, metavar="STEPS", help="Watch for so many steps, --seconds at most.")
    ] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Trace allocations for longer and deeper.")] = False,
    limit: Annotated[
        Any, typer.Option(parser=options.size, metavar="BYTES", help="Pretend that so much is allowed, 16GiB.")
    ] = None,
    page: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the report as a page too.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object in place of the text.")] = False,
) -> int:
    """Run a training script for a while, unchanged, and say what its memory goes to and what to do about it.

    What the script prints goes to standard error. Ends with 0 if nothing is wrong, 1 if a cause was found, 2 if the
    script could not be watched.
    """
    if page is not None and not page.absolute().parent.is_dir():
        raise Refusal(f"--html: {page} cannot be written, there is no folder {page.parent}")
    with refusing():
        evidence = examine(
            script, seconds=seconds, steps=steps, deep=deep, limit=None if limit is None else parse_bytes(limit)
        )
    findings = diagnose(evidence)
    if page is not None:
        page.write_text(html(evidence, findings), encoding="utf-8")
    typer.echo(json.dumps(plain(evidence, findings), indent=2) if as_json else text(evidence, findings))
    return _code(evidence, any(each.level != "note" for each in findings))


def _code(evidence: Evidence, ill: bool) -> int:
    if len(evidence.looks) < 2:
        return 2
    return 1 if ill else 0
