"""A loop like a training, which can be stopped at any step and go on in another process."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from tests.saving.book import FRAMED, Filler

from ringfence import Prioritized, Replay

STEPS = 900


def train(path: str | None, first: int, last: int) -> list[str]:
    """Run some steps, from a save unless they are the first ones, and save; give a digest of each batch."""
    replay = Replay(FRAMED, 200, streams=2, seed=3, episode_length=4) if not first else Replay.load(str(path))
    filler = Filler(replay, seed=4)
    random = np.random.default_rng(5)
    views = [
        replay.transitions(n_step=3, draw=Prioritized(beta=0.5)),
        replay.sequences(5, burn_in=2, boundary="pad"),
        replay.sequences(4, draw=Prioritized(alpha=0.9)),
    ]
    if first:
        restore(filler, random, replay.notes)
    digests = []
    for step in range(first, last):
        filler.step(step % 2)
        if step < 30 or step % 3:
            continue
        for view in views:
            batch = view.sample(6)
            digests.append(hashlib.sha256(batch.ids.tobytes() + batch.reward.tobytes()).hexdigest())
            if view is not views[1]:
                view.update_priorities(batch.ids, random.random(6))
        digests.append(hashlib.sha256(replay.sample(6).ids.tobytes()).hexdigest())
    if path is not None:
        replay.save(path, notes=notes(filler, random))
    return digests


def notes(filler: Filler, random: np.random.Generator) -> dict[str, Any]:
    """Give what the loop itself has to remember."""
    return {
        "obs": {str(stream): obs for stream, obs in filler.obs.items()},
        "count": filler.count,
        "env": filler.random.bit_generator.state,
        "learner": random.bit_generator.state,
    }


def restore(filler: Filler, random: np.random.Generator, saved: dict[str, Any]) -> None:
    """Take it back."""
    filler.obs, filler.count = {int(stream): obs for stream, obs in saved["obs"].items()}, saved["count"]
    filler.random.bit_generator.state, random.bit_generator.state = saved["env"], saved["learner"]
