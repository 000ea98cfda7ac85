"""Tables and figures for people to read."""

from __future__ import annotations

import math
import os
import sys

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ringfence.cli.verdict import Verdict
from ringfence.plan import Plan
from ringfence.units import format_bytes

WIDTH = 120  # columns, where nobody's terminal says otherwise
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def console() -> Console:
    """Give the terminal, or a wide page where the output goes to a file; text is printed as it is, without markup."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH
    return Console(width=width, markup=False, highlight=False)


def decimal(nbytes: float, digits: int) -> str:
    """Write a size in powers of ten with this many digits: "226 GB"."""
    power = 0
    while power + 1 < len(_UNITS) and float(f"{nbytes / 1000**power:.{digits}g}") >= 1000:
        power += 1
    size = nbytes / 1000**power
    decimals = max(0, digits - len(str(int(size)))) if power else min(1, size % 1)
    return f"{size:,.{math.ceil(decimals)}f} {_UNITS[power]}"


def plan_table(plan: Plan) -> Table:
    """Lay out a plan line by line, the total and the obvious layouts apart."""
    title = f"{plan.capacity:,} transitions in {plan.streams} stream{'s' if plan.streams > 1 else ''}"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column("")
    table.add_column("a step", justify="right", no_wrap=True)
    table.add_column("in all", justify="right", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for name, step, total, note in plan.rows():
        if name == "total":
            table.add_section()
        table.add_row(
            name,
            decimal(step, 4),
            decimal(total, 3),
            format_bytes(total),
            note,
            style="bold" if name == "total" else None,
            end_section=name == "total",
        )
    return table


def verdict_table(verdict: Verdict) -> Table:
    """Lay out what was measured beside what is allowed."""
    table = Table(title=verdict.title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column("")
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("allowed", overflow="fold")
    table.add_column("", no_wrap=True)
    for line in verdict.lines():
        mark, style = {True: ("pass", "green"), False: ("FAIL", "bold red"), None: ("", None)}[line.passed]
        table.add_row(line.name, line.figure, line.allowed, mark, style=style if line.passed is False else None)
    return table
