"""The memory of a run as a picture: what was taken at the start, and that nothing was taken after."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ringfence.cli.refusal import Refusal
from ringfence.cli.trace import Trace
from ringfence.cli.verdict import Verdict
from ringfence.units import format_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = (".png", ".svg", ".pdf")
INK, MUTED, GRID = "#1f2328", "#656d76", "#d8dee4"
RING, PROCESS, LINE, PLAN = "#cfe3fa", "#eceff2", "#0b5cad", "#bc4c00"
THIN = 0.1  # of the height: no room for words


def check(path: Path) -> None:
    """Refuse a picture that could not be drawn, before a run of minutes rather than after it."""
    if find_spec("matplotlib") is None:
        raise Refusal("--plot needs matplotlib: pip install 'ringfence[report]'")
    if path.suffix.lower() not in KINDS:
        raise Refusal(f"--plot: expected a name that ends in {', '.join(KINDS)}, got {path}")
    if not path.parent.is_dir():
        raise Refusal(f"--plot: there is no folder {path.parent}")


def draw(path: Path, verdict: Verdict, trace: Trace) -> None:
    """Draw resident memory over steps beside the planned line, and write it to a file."""
    from matplotlib.figure import Figure  # 30 MiB and half a second; loaded when all has been measured

    figure = Figure(figsize=(8, 4.6), dpi=200, layout="constrained", facecolor="white")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    planned = verdict.marks.before + verdict.nbytes
    scale, unit = _steps_unit(verdict.made)
    steps, resident = trace.steps / scale, trace.nbytes
    _draw_whole(upper, verdict, steps, resident)
    _draw_beyond(lower, steps, (resident - planned) / 2**20)
    if verdict.full_at is not None:
        _draw_full(upper, lower, verdict, scale)
    lower.set_xlim(0, max(verdict.made / scale, 1e-9))
    lower.set_xlabel(f"{unit}steps", color=INK)
    figure.savefig(path)


def _draw_whole(axes: Axes, verdict: Verdict, steps: Any, resident: Any) -> None:
    """Draw the process, the ring on top of it, and the line on which they should stay."""
    planned = verdict.marks.before + verdict.nbytes
    scale, unit = (2**30, "GiB") if planned >= 2**30 else (2**20, "MiB")
    before, top = verdict.marks.before / scale, planned / scale
    edges = [0.0, float(steps[-1])]
    axes.fill_between(edges, 0, before, color=PROCESS, linewidth=0)
    axes.fill_between(edges, before, top, color=RING, linewidth=0)
    middle = edges[1] * 0.02
    axes.text(middle, before / 2, "Python, NumPy, the environment", color=MUTED, va="center")
    if top - before > THIN * top:
        ring = f"the ring, taken before the first step: {format_bytes(verdict.nbytes)}"
        axes.text(middle, (before + top) / 2, ring, color=LINE, va="center")
    axes.plot(steps, resident / scale, color=LINE, linewidth=1.8, label="resident memory", zorder=3)
    axes.axhline(top, color=PLAN, linewidth=1.4, linestyle=(0, (4, 3)), label="planned", zorder=4)
    axes.set_ylim(0, 1.2 * max(top, float(np.max(resident)) / scale))
    axes.set_ylabel(unit, color=INK)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, labelcolor=INK, borderaxespad=0.1)
    axes.set_title(f"{verdict.env}, {verdict.made:,} steps", loc="left", color=INK, fontsize=11)
    _clean(axes)


def _draw_beyond(axes: Axes, steps: Any, beyond: Any) -> None:
    """Draw the difference between the two lines, which the large picture is too small for."""
    axes.axhline(0, color=PLAN, linewidth=1.4, linestyle=(0, (4, 3)))
    axes.plot(steps, beyond, color=LINE, linewidth=1.4)
    reach = max(8.0, 1.15 * float(np.max(np.abs(beyond))))
    axes.set_ylim(-reach, reach)
    axes.set_ylabel("MiB beyond\nthe plan", color=INK)
    _clean(axes)


def _draw_full(upper: Axes, lower: Axes, verdict: Verdict, scale: float) -> None:
    assert verdict.full_at is not None
    at = verdict.full_at / scale
    for axes in (upper, lower):
        axes.axvline(at, color=MUTED, linewidth=1, linestyle=":")
    left = at > 0.6 * verdict.made / scale
    upper.annotate(
        "ring full",
        (at, upper.get_ylim()[1]),
        (-5 if left else 5, -5),
        textcoords="offset points",
        ha="right" if left else "left",
        va="top",
        color=MUTED,
    )


def _clean(axes: Axes) -> None:
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=MUTED, length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GRID)


def _steps_unit(steps: int) -> tuple[float, str]:
    if steps >= 1_000_000:
        return 1e6, "million "
    return (1e3, "thousand ") if steps >= 10_000 else (1.0, "")
