"""Turn results into tables for people and JSON for machines."""

import json
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.harness import Result
from benchmarks.works import WORKS

BASE = "ringfence"
"""Whom the others are compared with."""


def show(console: Console, work: str, results: Sequence[Result]) -> None:
    """Print a workload's table, then what the checks found."""
    console.print(f"[bold]{work}[/]: {WORKS[work].__doc__}", highlight=False)
    good = [result for result in results if not result.ready.failed]
    if good:
        if work == "scaling":
            table = scaled(good[0])
        else:
            table = timed(good) if any(result.times for result in good) else weighed(good)
        console.print(table)
    for result in results:
        found = result.ready.verdict
        for label, lines in (("[red]wrong[/]", found.wrong), ("note", found.notes)):
            if lines:
                console.print(f"  {result.peer} {label}: {'; '.join(lines)}", highlight=False, soft_wrap=True)
        if result.ready.failed:
            console.print(f"  {result.peer} [red]failed[/]: ", result.ready.failed, highlight=False, markup=True)
    console.print()


def timed(results: Sequence[Result]) -> Table:
    """Lay out figures that come in rounds, and bytes that go with them, case by case."""
    table = blank("case", "peer", "check", "median", "min - max", f"times {BASE}", "min - max", left=3)
    for case in dict.fromkeys(case for result in results for case in (*result.ready.facts, *result.ready.cases)):
        for cells in rows(case, results):
            table.add_row(*cells)
        table.add_section()
    return table


def scaled(result: Result) -> Table:
    """Lay out nanoseconds a row, median (min-max): draws and batches below, ring sizes across."""
    cases = {case: case.replace(" of", ",").split(", ") for case in result.ready.cases}
    sizes = list(dict.fromkeys(capacity for _, _, capacity in cases.values()))
    table = blank("draw", "batch", *(f"{int(capacity):,} rows" for capacity in sizes), left=1)
    cells: dict[tuple[str, str], list[str]] = {}
    for case, (draw, count, _) in cases.items():
        each = [1000 * micros / int(count) for micros in result.times[case]]
        cells.setdefault((draw, count), []).append(f"{median(each):.0f} ({min(each):.0f}-{max(each):.0f})")
    for (draw, count), across in cells.items():
        table.add_row(draw, count, *across, end_section=int(count) == 4096)
    return table


def weighed(results: Sequence[Result]) -> Table:
    """Lay out the facts of `memory`: bytes, but for the last, which counts adds."""
    names = list(results[0].ready.facts)
    table = blank("peer", "check", *(f"{name}, MiB" for name in names[:-1]), names[-1], left=2)
    for result in results:
        *weights, adds = result.ready.facts.values()
        table.add_row(result.peer, mark(result), *(f"{weight / 2**20:,.2f}" for weight in weights), f"{adds:,.0f}")
    return table


def blank(*names: str, left: int) -> Table:
    """Return an empty table, its first columns words, the others figures."""
    table = Table(show_edge=False, pad_edge=False)
    for number_, name in enumerate(names):
        table.add_column(name, justify="left" if number_ < left else "right", no_wrap=number_ < left)
    return table


def rows(case: str, results: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of one case, quickest (or smallest) first."""
    base = next((result for result in results if result.peer == BASE), None)
    found = [(values, result) for result in results if (values := figures(case, result))]
    for values, result in sorted(found, key=lambda pair: median(pair[0])):
        times = ratios(case, result, base) if base and base is not result else []
        yield (
            f"{case}, µs" if case in result.times else case,
            result.peer,
            mark(result),
            number(median(values)),
            spread(values),
            number(median(times)) if times else "",
            spread(times),
        )


def figures(case: str, result: Result) -> list[float]:
    """Return a peer's figures for a case: one a round, or the one that was measured once."""
    return result.times.get(case) or [result.ready.facts[case]] * (case in result.ready.facts)


def ratios(case: str, result: Result, base: Result) -> list[float]:
    """Divide a peer's figures by the base's of the same round, so that what slows both changes nothing."""
    return [theirs / ours for theirs, ours in zip(figures(case, result), figures(case, base), strict=False)]


def mark(result: Result) -> str:
    """Say whether the figures are worth anything."""
    return "[red]wrong[/]" if result.ready.verdict.wrong else "right"


def number(value: float) -> str:
    """Write three digits, or whole numbers."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(values: Sequence[float]) -> str:
    """Write the range, if there is one."""
    return f"{number(min(values))} - {number(max(values))}" if len(values) > 1 else ""


def save(path: Path, options: dict[str, Any], results: Sequence[Result]) -> None:
    """Write every figure of every round, with what it was measured on."""
    machine = {"python": platform.python_version(), "platform": platform.platform(), "processor": processor()}
    found = [asdict(result) | {"wrong": result.ready.verdict.wrong} for result in results]
    document = {"machine": machine, "options": options, "results": found}
    path.write_text(json.dumps(document, indent=1, default=np.ndarray.tolist) + "\n")


def processor() -> str:
    """Return the name of this machine's processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
