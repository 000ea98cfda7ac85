"""What a guard needs to know of a replay memory: ours, or anybody's own."""

from __future__ import annotations

from os import PathLike
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Watched(Protocol):
    """Anything that knows its size and can save itself."""

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""

    def save(self, path: str | PathLike[str], /) -> Any:
        """Save everything to a path; called by the guard in the training loop's own thread, between two steps."""
