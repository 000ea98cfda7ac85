"""Checks that are written out as Python source for each schema and compiled once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ringfence.schema.field import Field


def compiled(lines: Iterable[str], scope: dict[str, Any]) -> Callable[..., Any]:
    """Compile the lines of a function called ``check``; the first line is its head, the others are indented."""
    text = "\n    ".join(lines)
    exec(compile(text, "<ringfence check>", "exec"), scope)  # noqa: S102  (names in it are numbered, or quoted)
    check: Callable[..., Any] = scope["check"]
    return check


def unpack(name: str, spec_name: str, targets: list[str], spec: Any) -> Iterator[str]:
    """Yield the line that takes the leaves out of what was given for ``name``."""
    if isinstance(spec, Field):
        yield f"{targets[0]} = {name}"
    else:
        yield f"({', '.join(targets)},) = values({spec_name}, {name}, {name!r})"
