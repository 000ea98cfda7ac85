"""Run the doctor over thirty broken training scripts and their repaired twins, and print what it says of each.

`python -m tests.doctor.suite [NAME ...] [--seconds 7] [--write FILE]`; ends with 1 if too few are named.
"""

import argparse
import importlib.util
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ringfence.guard.doctor import diagnose, examine

SCRIPTS = Path(__file__).parent / "scripts"
NEEDED = 28
# The folder's first word is the cause, which is the finding's kind, except here.
KINDS = {"file": "files"}
GIB = 2**30
LIMITS = {"limit_host": 4 * GIB}
"""What the script is said to be allowed, as a container would."""
NEEDS = {"sb3": "stable_baselines3", "torch": "torch"}


@dataclass(frozen=True)
class Result:
    """What the doctor said of one pair."""

    name: str
    expected: str
    broken: tuple[str, ...]
    """The kinds it found, the first one first."""
    title: str
    twin: tuple[str, ...]

    @property
    def named(self) -> bool:
        """Tell whether the cause was named first."""
        return self.broken[:1] == (self.expected,)


def names() -> list[str]:
    """List the pairs."""
    return sorted(path.name for path in SCRIPTS.iterdir() if path.is_dir())


def expected(name: str) -> str:
    """Give the kind that a pair is about."""
    cause = name.partition("_")[0]
    return KINDS.get(cause, cause)


def missing(name: str) -> str:
    """Name a package that a pair needs and that is not there."""
    for path in (SCRIPTS / name).glob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            words = line.split()
            if words[:1] in (["import"], ["from"]) and importlib.util.find_spec(words[1].partition(".")[0]) is None:
                return words[1]
    return ""


def findings(name, which, seconds):
    """Run one script and ask the doctor."""
    command = [sys.executable, str(SCRIPTS / name / f"{which}.py")]
    return diagnose(examine(command, seconds=seconds, limit=LIMITS.get(name), quiet=True))


def examined(name, seconds):
    """Run a pair."""
    broken, twin = findings(name, "broken", seconds), findings(name, "twin", seconds)
    title = broken[0].title if broken else ""
    return Result(name, expected(name), tuple(each.kind for each in broken), title, tuple(each.kind for each in twin))


def table(results):
    """Write the results as a table."""
    rows = ["| script | cause named first | what it said | twin |", "|---|---|---|---|"]
    for each in results:
        verdict = "yes" if each.named else f"no: {', '.join(each.broken) or 'nothing'}"
        twin = "clean" if not each.twin else ", ".join(each.twin)
        rows.append(f"| {each.name} | {verdict} | {each.title} | {twin} |")
    named, clean = sum(each.named for each in results), sum(not each.twin for each in results)
    rows += ["", f"{named} of {len(results)} causes named first, {clean} of {len(results)} twins clean."]
    return "\n".join(rows)


def main():
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=7.0)
    parser.add_argument("--write", type=Path, help="a page for the table")
    asked = parser.parse_args()
    results = []
    for name in asked.names or names():
        lacking = missing(name)
        if lacking:
            sys.stderr.write(f"{name}: skipped, {lacking} is not installed\n")
            continue
        began = time.monotonic()
        results.append(examined(name, asked.seconds))
        each = results[-1]
        sys.stderr.write(
            f"{name}: {each.broken or 'nothing'} | {each.twin or 'clean'} ({time.monotonic() - began:.0f} s)\n"
        )
        sys.stderr.write(f"    {each.title}\n")
    page = table(results)
    sys.stdout.write(page + "\n")
    if asked.write:
        asked.write.write_text(HEAD + page + "\n", encoding="utf-8")
    missed = sum(not each.named for each in results)
    return int(missed > len(names()) - NEEDED or any(each.twin for each in results))


HEAD = """# The doctor's suite

Thirty small training scripts, each with one planted cause of growing memory, and each with its repaired twin, watched
by `ringfence doctor` for a few seconds. Written by `make doctor-suite`; the scripts are in `tests/doctor/scripts`.

"""

if __name__ == "__main__":
    sys.exit(main())
