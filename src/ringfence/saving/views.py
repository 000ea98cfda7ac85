"""The states of a replay's views, which a save holds and a loaded replay gives back as its views are made again."""

from __future__ import annotations

import logging
import weakref
from typing import Any, Protocol

from ringfence.errors import CheckpointError

log = logging.getLogger("ringfence")
WRONG = (ValueError, TypeError, KeyError, IndexError, OverflowError, AttributeError)
"""What a state of unknown origin can raise where it is taken apart."""


class View(Protocol):
    """Something that draws from a replay."""

    @property
    def kind(self) -> str:
        """What a state must be of to be taken back."""
        ...

    def state(self) -> dict[str, Any]:
        """Give all that the next batches depend on."""
        ...

    def load(self, state: dict[str, Any]) -> None:
        """Take it back."""
        ...


class Views:
    """The views of one replay that are still in use, in the order in which they were made.

    A view that nobody holds any more is forgotten, so that a loop that makes one each step keeps none.
    """

    def __init__(self) -> None:
        self._made: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._count = 0
        self._waiting: list[dict[str, Any]] = []
        """Saved states whose views were not made again yet."""

    def add(self, view: View) -> None:
        """Note a new view, and give it the saved state of the first one of its kind that has not been made again.

        Raises:
            CheckpointError: The saved state is not of such a view: it was made with other arguments, or damaged.
        """
        for at, saved in enumerate(self._waiting):
            if saved["kind"] == view.kind:
                self._give(view, self._waiting.pop(at)["state"])
                break
        else:
            if self._waiting:
                waiting = "; ".join(saved["kind"] for saved in self._waiting)
                log.warning("%s: begins anew; the states that were saved are of: %s", view.kind, waiting)
        self._made[self._count] = view
        self._count += 1

    @staticmethod
    def _give(view: View, state: dict[str, Any]) -> None:
        try:
            view.load(state)
        except WRONG as error:
            raise CheckpointError(f"the saved state does not fit this view: {view.kind}: {error}") from error

    def states(self) -> list[dict[str, Any]]:
        """Give the states of all views, those that wait for theirs among them."""
        views = [self._made[number] for number in sorted(self._made.keys())]
        return [{"kind": view.kind, "state": view.state()} for view in views] + self._waiting

    def load(self, states: Any) -> None:
        """Take saved states: views that are there take theirs, in order, and the others wait until they are made.

        Raises:
            CheckpointError: They are not such states.
        """
        fits = isinstance(states, list) and all(
            isinstance(one, dict) and one.keys() == {"kind", "state"} for one in states
        )
        if not fits or not all(isinstance(one["kind"], str) and isinstance(one["state"], dict) for one in states):
            raise CheckpointError("views: expected a list of kinds and states")
        self._waiting = list(states)
        views = [self._made[number] for number in sorted(self._made.keys())]
        for view in views:
            at = next((at for at, saved in enumerate(self._waiting) if saved["kind"] == view.kind), None)
            if at is not None:
                self._give(view, self._waiting.pop(at)["state"])
