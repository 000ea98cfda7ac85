"""Which rules replay buffers keep: `python -m benchmarks.conformance --help`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.judge import Report, judge, save
from benchmarks.rules import RULES, statement
from benchmarks.subjects import SUBJECTS

EXAMPLE = "Example: python -m benchmarks.conformance --peers ringfence,sb3 --verbose --json out.json"
WORDS = {"keeps": "keeps", "breaks": "BREAKS", "cannot": "-", "failed": "error"}
STYLES = {"keeps": "green", "breaks": "bold red", "cannot": "dim", "failed": "yellow"}
WIDTH = 140
"""Columns the table needs, also where the output is no terminal."""

app = typer.Typer(add_completion=False)


@app.command(epilog=EXAMPLE)
def main(
    *,
    peers: Annotated[str, typer.Option(help="Names with commas between.")] = ",".join(SUBJECTS),
    rules: Annotated[str, typer.Option(help="Names with commas between.")] = ",".join(RULES),
    verbose: Annotated[bool, typer.Option(help="Also print what was measured.")] = False,
    markdown: Annotated[bool, typer.Option(help="Print the table as Markdown.")] = False,
    json: Annotated[Path | None, typer.Option(help="Also write everything here.")] = None,
) -> None:
    """Judge ringfence and other replay buffers by the same rules, each by what it draws when it is fed.

    keeps: as the rule says. BREAKS: not so; --verbose says what was measured. -: nothing of the kind is offered. error:
    the adapter met what it did not expect.
    """
    chosen, asked = peers.split(","), rules.split(",")
    for name, known in [(peer, SUBJECTS) for peer in chosen] + [(rule, tuple(RULES)) for rule in asked]:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is not one of: {', '.join(known)}")
    console = Console()
    console.width = max(console.width, WIDTH)
    with Console(stderr=True).status("") as status:
        reports = [judge(peer, asked, status.update) for peer in chosen]
    tried = [report for report in reports if not report.failed]
    print(as_markdown(asked, tried)) if markdown else console.print(as_table(asked, tried))
    for report in reports:
        named = ", ".join(f"{name} {number}" for name, number in report.versions.items())
        words = f"not tried: {report.failed}" if report.failed else f"{report.modes} ({named})"
        console.print(f"{report.name}: {words}", markup=False, highlight=False)
    if verbose:
        tell(console, asked, tried)
    if json:
        save(json, {rule: statement(RULES[rule]) for rule in asked}, reports)


def as_table(asked: list[str], tried: list[Report]) -> Table:
    """Make the table for a terminal."""
    table = Table("rule", *(report.name for report in tried))
    for rule in asked:
        verdicts = [report.outcomes[rule].verdict for report in tried]
        table.add_row(statement(RULES[rule]), *(f"[{STYLES[word]}]{WORDS[word]}[/]" for word in verdicts))
    return table


def as_markdown(asked: list[str], tried: list[Report]) -> str:
    """Make the table for a document."""
    rows = [("rule", *(report.name for report in tried)), ("---",) * (len(tried) + 1)]
    rows += [(statement(RULES[rule]), *(WORDS[report.outcomes[rule].verdict] for report in tried)) for rule in asked]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def tell(console: Console, asked: list[str], tried: list[Report]) -> None:
    """Print what was measured, rule by rule."""
    for rule in asked:
        console.print(f"\n[bold]{rule}[/]: {statement(RULES[rule])}", highlight=False)
        for report in tried:
            word = WORDS[report.outcomes[rule].verdict]
            console.print(f"  {report.name:12} {word:6}  {report.outcomes[rule].detail}", markup=False, highlight=False)


if __name__ == "__main__":
    app()
