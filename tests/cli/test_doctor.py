"""The doctor on the command line: a cause is named, and where there is none, none."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "doctor" / "scripts"


def run(*arguments):
    """Run the command."""
    return subprocess.run(
        [sys.executable, "-m", "ringfence.cli", "doctor", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("name", ["arrays_closures", "objects_dicts"])
def test_a_cause_is_named_and_its_twin_is_clean(name, tmp_path):
    """The first finding is the planted one; the repaired script gets none but notes."""
    page = tmp_path / "report.html"
    broken = run("--seconds", 6, "--json", "--html", page, "--", "python", SCRIPTS / name / "broken.py")
    twin = run("--seconds", 6, "--json", "--", "python", SCRIPTS / name / "twin.py")

    assert broken.returncode == 1, broken.stderr
    assert json.loads(broken.stdout)["findings"][0]["kind"] == name.partition("_")[0]
    assert "<svg" in page.read_text()
    assert twin.returncode == 0, twin.stdout + twin.stderr


def test_a_program_that_is_not_python_is_refused():
    """One line says what can be watched."""
    refused = run("--", "sleep", "1")

    assert refused.returncode == 2
    assert len(refused.stderr.strip().splitlines()) == 1
