"""Memory over time as a drawing inside of a page: stacked by kind, with what was planned and what is to be expected."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from ringfence.guard.doctor.evidence import Evidence, Sample
from ringfence.guard.doctor.outlook import Outlook
from ringfence.guard.doctor.rules.filling import rings
from ringfence.units import format_bytes

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 960, 360, 84, 34, 30, 16
AHEAD = 1.4  # times the watch: how far the drawing looks ahead
TICKS = 5
KINDS: tuple[tuple[str, str, Callable[[Sample], int]], ...] = (
    ("anonymous", "#4878a8", lambda each: each.anonymous),
    ("files", "#9bb8d3", lambda each: each.file),
    ("shared", "#c9a66b", lambda each: each.shared),
    ("children", "#7fae86", lambda each: each.children),
)
Points = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Scale:
    """Where seconds and bytes lie on the drawing."""

    end: float
    top: float

    def point(self, seconds: float, nbytes: float) -> str:
        """Write a place as SVG does."""
        x = LEFT + seconds / self.end * (WIDTH - LEFT - RIGHT)
        y = HEIGHT - BOTTOM - min(max(nbytes / self.top, 0.0), 1.0) * (HEIGHT - BOTTOM - TOP)
        return f"{x:.1f},{y:.1f}"

    def points(self, points: Points) -> str:
        """Write a line."""
        return " ".join(self.point(*each) for each in points)


def plot(evidence: Evidence, ahead: Outlook) -> str:
    """Draw a run; needs two looks."""
    samples = sorted(evidence.samples or evidence.looks, key=lambda each: each.seconds)
    end = max(samples[-1].seconds * AHEAD, 1e-6)
    expected, planned = _expected(samples[-1], ahead, end), _planned(evidence, end)
    highest = max(_total(each) for each in samples)
    top = 1.08 * max([highest, *(nbytes for _, nbytes in (*expected[0], *planned))])
    scale = Scale(end, top)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="memory over time">', *_axes(scale)]
    parts += _layers(samples, scale)
    parts += _lines(scale, expected, planned)
    if evidence.limit and evidence.limit <= top:
        level = scale.points([(0.0, evidence.limit), (end, evidence.limit)])
        parts.append(f'<polyline points="{level}" fill="none" stroke="#c0392b" stroke-width="2"/>')
    for look in evidence.looks:
        foot, head = scale.point(look.seconds, 0).split(","), scale.point(look.seconds, top).split(",")
        parts.append(
            f'<line x1="{foot[0]}" y1="{foot[1]}" x2="{head[0]}" y2="{head[1]}" stroke="#44515f" stroke-opacity=".25"/>'
        )
    return "\n".join([*parts, *_legend(bool(planned)), "</svg>"])


def _total(sample: Sample) -> int:
    return sample.resident + sample.children


def _layers(samples: list[Sample], scale: Scale) -> list[str]:
    below = [0] * len(samples)
    parts = []
    for name, colour, take in KINDS:
        above = [low + take(each) for low, each in zip(below, samples, strict=True)]
        edge = [(each.seconds, high) for each, high in zip(samples, above, strict=True)]
        back = [(each.seconds, low) for each, low in zip(samples, below, strict=True)]
        outline = scale.points([*edge, *reversed(back)])
        parts.append(f'<polygon points="{outline}" fill="{colour}"><title>{name}</title></polygon>')
        below = above
    return parts


def _expected(last: Sample, ahead: Outlook, end: float) -> tuple[Points, Points]:
    """Give the upper and the lower edge of what is to be expected, from the interval of the rate."""
    now, more = _total(last), end - last.seconds
    high = ahead.high if math.isfinite(ahead.high) else ahead.rate
    low = ahead.low if math.isfinite(ahead.low) else ahead.rate
    start = (last.seconds, float(now))
    return [start, (end, now + high * more)], [start, (end, max(0.0, now + low * more))]


def _planned(evidence: Evidence, end: float) -> Points:
    """Follow the rings that fill: at their rate, up to their size."""
    found = rings(evidence)
    growth = sum(ring.growth for ring in found)
    if growth <= 0:
        return []
    first, last = evidence.looks[0], evidence.looks[-1]
    rate, start = growth / evidence.seconds, float(_total(first))
    most = start + growth + sum(ring.planned - ring.now for ring in found)
    full = first.seconds + (most - start) / rate
    points = [(first.seconds, start), (last.seconds, min(most, start + growth))]
    return [
        *points,
        *([(full, most)] if last.seconds < full < end else []),
        (end, min(most, start + rate * (end - first.seconds))),
    ]


def _lines(scale: Scale, expected: tuple[Points, Points], planned: Points) -> list[str]:
    fan = scale.points([*expected[0], *reversed(expected[1])])
    parts = [f'<polygon points="{fan}" fill="#44515f" fill-opacity=".25" stroke="#44515f" stroke-dasharray="2 3"/>']
    if planned:
        line = scale.points(planned)
        parts.append(
            f'<polyline points="{line}" fill="none" stroke="#1d2733" stroke-width="2" stroke-dasharray="7 4"/>'
        )
    return parts


def _axes(scale: Scale) -> list[str]:
    parts = []
    for number in range(TICKS + 1):
        nbytes, seconds = scale.top * number / TICKS, scale.end * number / TICKS
        x, y = scale.point(0, nbytes).split(",")
        parts.append(f'<line x1="{x}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" stroke="#dde3e9"/>')
        parts.append(f'<text x="{float(x) - 6:.1f}" y="{float(y) + 4:.1f}" text-anchor="end">{_size(nbytes)}</text>')
        x, y = scale.point(seconds, 0).split(",")
        parts.append(f'<text x="{x}" y="{float(y) + 18:.1f}" text-anchor="middle">{seconds:,.0f} s</text>')
    return parts


def _size(nbytes: float) -> str:
    return escape(format_bytes(int(nbytes)))


def _legend(planned: bool) -> list[str]:
    parts, x = [], LEFT
    entries = [(name, colour) for name, colour, _ in KINDS] + [("expected", "#9aa3ac")]
    for name, colour in entries + ([("planned (dashed)", "#1d2733")] if planned else []):
        parts.append(f'<rect x="{x}" y="8" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 17}" y="18">{name}</text>')
        x += 40 + 8 * len(name)
    return parts
