"""What both studies print and keep the same way: tables, versions, and the colours of their pictures."""

import json
import os
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

INK, MUTED, GRID = "#1f2328", "#656d76", "#d8dee4"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table, its first column left and the others right."""
    marks = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heads, marks, *rows])


def versions(*names: str) -> dict[str, str]:
    """Give the versions of Python and of the packages that a result depends on."""
    return {"python": platform.python_version()} | {name: version(name) for name in names}


def save(path: Path, results: dict[str, Any]) -> None:
    """Write results as JSON, one line for each entry of the list `runs`."""
    runs = ",\n  ".join(json.dumps(run) for run in results["runs"])
    head = json.dumps({key: value for key, value in results.items() if key != "runs"}, indent=1)
    path.write_text(f'{head[:-2]},\n "runs": [\n  {runs}\n ]\n}}\n', encoding="utf-8")


def pin(cpu: int | None) -> None:
    """Stay on one CPU, so that a study slows nothing else down."""
    if cpu is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cpu})


def clean(axes: Any) -> None:
    """Take the frame and the ticks' noise away."""
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(colors=MUTED, which="both", length=0)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
