"""Why a command cannot do what was asked, in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ringfence.errors import BudgetExceeded


class Refusal(Exception):
    """End the command with a text and an exit code."""

    def __init__(self, text: str, code: int = 2) -> None:
        super().__init__(text)
        self.code = code


@contextmanager
def refusing() -> Iterator[None]:
    """Turn what the library says about its arguments into a refusal: over budget is a "no", the rest a bad question."""
    try:
        yield
    except BudgetExceeded as error:
        raise Refusal(str(error), code=1) from error
    except (ValueError, TypeError) as error:
        raise Refusal(str(error)) from error
