"""The doctor's report as text and as plain values."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.finding import Finding
from ringfence.units import format_bytes

WIDTH = 100
MARKS = {"leak": "LEAK", "warning": "WARNING", "note": "NOTE"}


def text(evidence: Evidence, findings: list[Finding]) -> str:
    """Write the report as text: what was watched, each finding with its evidence, and what to do."""
    return "\n".join([*head(evidence), "", *_body(evidence, findings)])


def head(evidence: Evidence) -> Iterator[str]:
    """Say in a few lines what was watched and how memory went."""
    yield f"{' '.join(evidence.command) or 'this process'}: {evidence.ended}"
    if len(evidence.looks) < 2:
        return
    first, last = evidence.looks[0], evidence.looks[-1]
    unit = "" if evidence.unit == "second" else f", {evidence.span:,.0f} {evidence.unit}s"
    yield f"watched for {evidence.seconds:,.1f} s{unit}, after warming up"
    yield (
        f"resident {format_bytes(first.resident)} → {format_bytes(last.resident)}: "
        f"anonymous {_change(first.anonymous, last.anonymous)}, files {_change(first.file, last.file)}, "
        f"shared {_change(first.shared, last.shared)}, children {_change(first.children, last.children)}"
    )
    yield f"allowed {format_bytes(evidence.limit)} by {evidence.limit_rule}, {format_bytes(evidence.used)} in use"


def _body(evidence: Evidence, findings: list[Finding]) -> Iterator[str]:
    if len(evidence.looks) < 2:
        yield "Nothing can be said: the script ended before it was looked at twice. Give it more steps."
        return
    if not any(finding.level != "note" for finding in findings):
        yield "Nothing is wrong with the memory of this run, as far as it was watched."
    for finding in findings:
        yield f"{MARKS[finding.level]} [{finding.kind}] {finding.title}{rate(evidence, finding)}"
        for line in finding.evidence:
            yield from _wrapped(line, "  - ", "    ")
        yield from _wrapped(finding.advice, "  → ", "    ")
        yield ""


def rate(evidence: Evidence, finding: Finding) -> str:
    """Say how fast it grows."""
    if not finding.per_second:
        return ""
    second = f"{format_bytes(int(finding.per_second))} a second"
    if evidence.unit == "second" or not finding.per_step:
        return f": {second}"
    return f": {format_bytes(int(finding.per_step))} a {evidence.unit}, {second}"


def plain(evidence: Evidence, findings: list[Finding]) -> dict[str, Any]:
    """Give the report as plain values, for JSON."""
    from dataclasses import asdict

    return {
        "findings": [finding.plain() for finding in findings],
        "clean": not any(finding.level != "note" for finding in findings),
        "watched": {
            "seconds": evidence.seconds if len(evidence.looks) > 1 else 0.0,
            "steps": evidence.span if len(evidence.looks) > 1 else 0,
            "unit": evidence.unit,
        },
        "evidence": asdict(evidence),
    }


def _change(first: int, last: int) -> str:
    return f"{'+' if last >= first else '-'}{format_bytes(abs(last - first))}"


def _wrapped(line: str, head: str, rest: str) -> list[str]:
    return textwrap.wrap(line, WIDTH, initial_indent=head, subsequent_indent=rest, break_long_words=False)
