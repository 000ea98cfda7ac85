"""A NumPy generator as plain data, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.errors import CheckpointError
from ringfence.saving.views import WRONG


def state_of(generator: np.random.Generator) -> dict[str, Any]:
    """Give the state of a generator, and of the sequence that its children are made from."""
    sequence = getattr(generator.bit_generator, "seed_seq", None)
    seed = None
    if isinstance(sequence, np.random.SeedSequence) and sequence.entropy is not None:
        entropy = sequence.entropy
        seed = {
            "entropy": int(entropy) if isinstance(entropy, int | np.integer) else [int(word) for word in entropy],
            "spawn_key": [int(key) for key in sequence.spawn_key],
            "pool_size": sequence.pool_size,
        }
    return {"bits": generator.bit_generator.state, "seed": seed}


def generator_of(state: Any) -> np.random.Generator:
    """Make the generator that a state is of. It has made no children yet: they come again as they came before.

    Raises:
        CheckpointError: It is no such state.
    """
    try:
        bits, seed = state["bits"], state["seed"]
        kind = KINDS[bits["bit_generator"]]
        sequence = None
        if seed is not None:
            sequence = np.random.SeedSequence(seed["entropy"], spawn_key=seed["spawn_key"], pool_size=seed["pool_size"])
        generator = np.random.Generator(kind(sequence))
        generator.bit_generator.state = bits
    except WRONG as error:
        raise CheckpointError(f"generator: not the state of a generator: {error!r}") from error
    return generator


KINDS = {
    kind.__name__: kind
    for kind in (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)
}
