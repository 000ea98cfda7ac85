"""Convert a replay buffer that stable-baselines3 saved into a save of ringfence.

    python examples/convert_sb3.py replay_buffer.pkl replay/

The file is a pickle: loading it runs whatever code it holds. Convert only files that you wrote yourself. That is why
this is a script for you to run, and no option of ``Replay.load``. Needs stable-baselines3.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import ringfence as rf


def convert(buffer: Any) -> rf.Replay:
    """Give a replay with all that a ``ReplayBuffer`` or ``DictReplayBuffer`` holds, a stream for each environment.

    ``dones`` that stopped at a time limit become truncations, where the buffer kept ``timeouts``.
    """
    schema = rf.Schema.from_spaces(buffer.observation_space, buffer.action_space)
    streams = buffer.n_envs
    replay = rf.Replay(schema, buffer.buffer_size * streams, streams=streams)
    held = buffer.buffer_size if buffer.full else buffer.pos
    first = buffer.pos if buffer.full else 0
    if getattr(buffer, "optimize_memory_usage", False) and buffer.full:
        first, held = first + 1, held - 1  # this mode has overwritten the oldest step's successor
    action_shape = buffer.action_space.shape
    for number in range(held):
        at = (first + number) % buffer.buffer_size
        done = buffer.dones[at].astype(bool)
        timeout = buffer.timeouts[at].astype(bool)
        replay.extend(
            _at(buffer.observations, at),
            buffer.actions[at].reshape(streams, *action_shape).astype(buffer.action_space.dtype),
            buffer.rewards[at],
            _successors(buffer, at),
            done & ~timeout,
            timeout,
        )
    return replay


def _at(observations: Any, at: int) -> Any:
    if isinstance(observations, dict):
        return {key: part[at] for key, part in observations.items()}
    return observations[at]


def _successors(buffer: Any, at: int) -> Any:
    if getattr(buffer, "optimize_memory_usage", False):
        return _at(buffer.observations, (at + 1) % buffer.buffer_size)
    return _at(buffer.next_observations, at)


def main() -> None:
    """Convert one file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pickle", help="what model.save_replay_buffer() wrote")
    parser.add_argument("directory", help="where Replay.load() shall find it")
    parser.add_argument("--yes", action="store_true", help="do not ask whether the file is yours")
    given = parser.parse_args()
    if not given.yes and input(f"Loading {given.pickle} runs the code in it. Did you write it? [y/N] ").lower() != "y":
        raise SystemExit("nothing was loaded")
    from stable_baselines3.common.save_util import load_from_pkl

    buffer = load_from_pkl(given.pickle)
    replay = convert(buffer)
    saved = replay.save(given.directory)
    print(f"{saved.steps:,} transitions, {np.round(saved.nbytes / 2**20, 1)} MiB in {saved.path}")  # noqa: T201, a script


if __name__ == "__main__":
    main()
