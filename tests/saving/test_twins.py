"""A loop that was stopped and went on in another process draws what its twin draws that ran through."""

from __future__ import annotations

import numpy as np
from tests.memory.measure import fresh
from tests.saving.twins import STEPS, train


def test_a_resumed_loop_draws_what_its_twin_draws(tmp_path):
    """Stopped at three random steps and resumed each time in a new process: every batch is the same."""
    whole = train(None, 0, STEPS)
    stops = sorted(np.random.default_rng().integers(1, STEPS, 3).tolist())
    parts = []
    for first, last in zip([0, *stops], [*stops, STEPS], strict=True):
        parts += fresh(train, str(tmp_path / "save"), first, last)

    assert len(whole) > 1000
    assert parts == whole, f"stopped at {stops}"
