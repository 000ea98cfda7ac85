"""Every Python block of the README and of the docs runs, in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks():
    """Yield each page's blocks in order; those of one page share a process, as a reader runs them."""
    for page in PAGES:
        found = re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        if found:
            yield pytest.param("\n".join(found), id=str(page.relative_to(ROOT)))


@pytest.mark.parametrize("code", list(blocks()))
def test_the_code_of_a_page_runs(code, tmp_path):
    """What a page shows works as it stands, without a warning."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert run.returncode == 0, run.stderr


def test_links_within_the_project_lead_somewhere():
    """Each relative link of a page names a file that is there."""
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
