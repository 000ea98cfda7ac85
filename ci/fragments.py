"""Check the changelog fragments: each file is named +slug.feature.md, .bugfix.md or .removal.md and tells something."""

import argparse
import re
import sys
from pathlib import Path

NAME = re.compile(r"\+[a-z0-9]+(-[a-z0-9]+)*\.(feature|bugfix|removal)\.md")


def check(folder: Path) -> list[str]:
    """Return what is wrong with the files of a folder of fragments."""
    problems = []
    for path in sorted(folder.iterdir()):
        if path.name == "README.md":
            continue
        if not NAME.fullmatch(path.name):
            problems.append(f"{path}: the name is not +slug.feature.md, +slug.bugfix.md or +slug.removal.md")
        elif not path.read_text(encoding="utf-8").strip():
            problems.append(f"{path}: the file is empty; tell what a user saw before and sees now")
    return problems


def main() -> int:
    """Check the folder; return 1 when a fragment is malformed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("changes"), help="(default: changes)")
    folder: Path = parser.parse_args().folder
    problems = check(folder)
    print("\n".join(problems) or f"fragments: {len(list(folder.glob('+*')))} well-formed")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
