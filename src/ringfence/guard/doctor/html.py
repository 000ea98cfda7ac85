"""The doctor's report as one HTML file: no script, no picture and no style from elsewhere."""

from __future__ import annotations

from html import escape

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.finding import Finding
from ringfence.guard.doctor.outlook import outlook
from ringfence.guard.doctor.plot import plot
from ringfence.guard.doctor.report import MARKS, head, rate

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1d2733; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin: 0 0 .3rem; }
section { border-left: 5px solid #8a97a6; padding: .5rem 1rem; margin: 1rem 0; background: #f6f8fa; }
section.leak { border-color: #c0392b; } section.warning { border-color: #d68910; }
.mark { font-weight: 700; } ul { margin: .3rem 0; padding-left: 1.2rem; } .advice { margin: .4rem 0 0; }
svg { width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: #44515f; }
code { background: #e8ecf0; padding: 0 .2rem; }
"""


def html(evidence: Evidence, findings: list[Finding]) -> str:
    """Write the report as a page: the plot, each finding with its evidence, and what to do."""
    first, *lines = head(evidence)
    ahead = outlook(evidence, findings)
    if ahead is not None and ahead.text:
        lines.append(ahead.text)
    body = [
        f"<h1>ringfence doctor: <code>{escape(first)}</code></h1>",
        "<ul>",
        *(f"<li>{escape(line)}</li>" for line in lines),
        "</ul>",
        plot(evidence, ahead) if ahead is not None else "",
        *_findings(evidence, findings),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>ringfence doctor</title>'
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _findings(evidence: Evidence, findings: list[Finding]) -> list[str]:
    if len(evidence.looks) < 2:
        return ["<p>Nothing can be said: the script ended before it was looked at twice. Give it more steps.</p>"]
    found = [_section(evidence, each) for each in findings]
    if not any(each.level != "note" for each in findings):
        found.insert(0, "<p>Nothing is wrong with the memory of this run, as far as it was watched.</p>")
    return found


def _section(evidence: Evidence, finding: Finding) -> str:
    seen = "".join(f"<li>{escape(line)}</li>" for line in finding.evidence)
    title = f"{finding.title}{rate(evidence, finding)}"
    return (
        f'<section class="{finding.level}"><h2><span class="mark">{MARKS[finding.level]}</span> '
        f"[{finding.kind}] {escape(title)}</h2>\n"
        f'<ul>{seen}</ul>\n<p class="advice">→ {escape(finding.advice)}</p></section>'
    )
