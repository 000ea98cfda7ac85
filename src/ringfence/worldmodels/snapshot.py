"""What a buffer saves beside its ring, and how it is checked when it is brought back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, NamedTuple

from ringfence.errors import CheckpointError, SchemaError
from ringfence.replay import Replay
from ringfence.saving import Saved, Saving
from ringfence.schema import Schema
from ringfence.worldmodels.saved import from_saved, to_saved
from ringfence.worldmodels.steps import Ending, Steps, check_ending, check_state

NOTES = {"buffer", "settings", "steps", "notes"}
STATE = {"buffer", "settings", "steps", "replay"}
Settings = dict[str, Any]


class Opened(NamedTuple):
    """A save that was read: its ring, and what stood beside it."""

    replay: Replay
    settings: Settings
    state: dict[str, Any]
    notes: Any


class Kind(NamedTuple):
    """One kind of buffer."""

    name: str
    schema: Callable[[Mapping[str, Any]], Schema]
    """Give the schema of a buffer with these settings; SchemaError where they make no sense."""
    settings: tuple[str, ...]
    """The names of all of them."""

    def save(
        self, steps: Steps, settings: Settings, path: str | PathLike[str], notes: Any, **options: Any
    ) -> Saved | Saving:
        """Save the ring, with settings and the caller's notes; options as of :meth:`ringfence.Replay.save`."""
        beside = {"buffer": self.name, "settings": settings, "steps": steps.state(), "notes": notes}
        return steps.replay.save(path, notes=beside, **options)

    def open(self, path: str | PathLike[str], ending: Any, size: Any, budget: Any, save: int | None) -> Opened:
        """Bring the ring of a save back.

        Raises:
            CheckpointError: The save is missing or damaged, or holds another kind of buffer.
            ValueError: ``ending`` is no word for what becomes of an open episode.
        """
        check_ending(ending)
        replay = Replay.load(path, capacity=size, budget=budget, save=save)
        notes = replay.notes
        if not isinstance(notes, dict) or notes.keys() != NOTES:
            raise CheckpointError(f"{path}: holds a plain Replay, not a {self.name}; use ringfence.Replay.load")
        self._check(notes, replay.schema)
        return Opened(replay, notes["settings"], notes["steps"], notes["notes"])

    def state(self, steps: Steps, settings: Settings) -> dict[str, Any]:
        """Copy everything, in a form that ``torch.save`` takes."""
        whole = {"buffer": self.name, "settings": settings, "steps": steps.state()}
        return to_saved({**whole, "replay": steps.replay.state_dict()})

    def load_state(self, steps: Steps, settings: Settings, state: Any, ending: Ending) -> None:
        """Take back what :meth:`state` gave.

        Raises:
            CheckpointError: The state is damaged, or of another kind, size or shape. Nothing was changed.
            ValueError: ``ending`` is no word for what becomes of an open episode.
        """
        check_ending(ending)
        found = from_saved(state)
        if found.keys() != STATE:
            raise CheckpointError(
                f"state: expected the keys {', '.join(sorted(STATE))}, got {', '.join(map(str, found))}"
            )
        theirs = self._check(found, None)
        for name in ("obs_shape", "action_size"):
            mine, their = settings[name], theirs[name]
            if mine != their:
                raise CheckpointError(f"state: {name}: this buffer has {mine}, and the state is of {their}")
        steps.replay.load_state_dict(found["replay"])
        steps.load(found["steps"], ending)

    def _check(self, found: Mapping[str, Any], schema: Schema | None) -> Settings:
        """Refuse what is of another kind, or makes no sense."""
        if found["buffer"] != self.name:
            raise CheckpointError(f"expected a {self.name}, got a {found['buffer']}")
        settings = found["settings"]
        if not isinstance(settings, dict) or sorted(settings) != sorted(self.settings):
            raise CheckpointError(f"settings: expected {', '.join(self.settings)}, got {settings!r}")
        if not isinstance(found["steps"], dict):
            raise CheckpointError("steps: is damaged")
        check_state(found["steps"])
        try:
            expected = self.schema(settings)
        except (SchemaError, TypeError, ValueError) as error:
            raise CheckpointError(f"settings: {error}") from error
        if schema is not None and schema != expected:
            raise CheckpointError(f"the ring holds {schema}, and a {self.name} with these settings holds {expected}")
        return settings
