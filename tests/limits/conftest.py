"""A machine made of files, so that every kind of host and container can be tried on one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest


@pytest.fixture
def plant(tmp_path: Path) -> Callable[[Mapping[str, str]], Path]:
    """Return a function that writes files, by absolute path, below a fresh folder, and returns the folder."""

    def write(files: Mapping[str, str]) -> Path:
        for path, text in files.items():
            file = tmp_path / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return tmp_path

    return write
