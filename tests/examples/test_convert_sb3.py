"""Replay buffers that stable-baselines3 saved come over whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ringfence import Replay

SCRIPT = Path(__file__).parents[2] / "examples" / "convert_sb3.py"
sb3 = pytest.importorskip("stable_baselines3", reason="compares with stable-baselines3")


@pytest.mark.parametrize("full", [False, True])
def test_a_pickled_buffer_comes_over(tmp_path, full):
    """Every transition with its true successor, and ends told apart, from a file that the library itself wrote."""
    import gymnasium as gym
    from stable_baselines3.common.buffers import ReplayBuffer
    from stable_baselines3.common.save_util import save_to_pkl

    space, actions = gym.spaces.Box(-1, 1, (3,), np.float32), gym.spaces.Box(-1, 1, (2,), np.float32)
    buffer = ReplayBuffer(40, space, actions, device="cpu", n_envs=2, handle_timeout_termination=True)
    random = np.random.default_rng(0)
    obs, added = random.random((2, 3), np.float32), []
    for step in range(50 if full else 15):
        after = random.random((2, 3), np.float32)
        done = random.random(2) < 0.2
        timeout = done & (random.random(2) < 0.5)
        action = random.random((2, 2), np.float32)
        infos = [{"TimeLimit.truncated": bool(late)} for late in timeout]
        buffer.add(obs, after, action, np.full(2, step, np.float32), done, infos)
        added.append((obs, after, done & ~timeout, timeout))
        obs = np.where(done[:, None], random.random((2, 3), np.float32), after)
    save_to_pkl(tmp_path / "buffer.pkl", buffer)
    command = [sys.executable, SCRIPT, tmp_path / "buffer.pkl", tmp_path / "replay", "--yes"]
    subprocess.run(command, check=True, capture_output=True)
    loaded = Replay.load(tmp_path / "replay")
    view = loaded.transitions()

    held = min(len(added), buffer.buffer_size)
    assert len(loaded) == 2 * held
    batch = view.sample(500)
    streams, steps = batch.ids >> 44, batch.reward.astype(int)
    for row in range(500):
        before, after, terminated, truncated = (part[streams[row]] for part in added[steps[row]])
        np.testing.assert_array_equal(batch.obs[row], before)
        np.testing.assert_array_equal(batch.next_obs[row], after)
        assert (batch.terminated[row], batch.truncated[row]) == (terminated, truncated)
