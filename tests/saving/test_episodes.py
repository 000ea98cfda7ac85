"""Episodes of a data set in a replay: every successor, every end, and what is refused."""

import os
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium import spaces

import ringfence as rf
from ringfence.saving.episodes import described, fill

OBS = spaces.Dict({"a": spaces.Box(-9, 9, (2,), np.float32), "b": spaces.Box(-99, 99, (), np.float32)})
ENDS = [(True, False), (False, True), (False, False)]


def episode(number, steps, end):
    """Give an episode whose observations count up from a hundred times its number."""
    b = np.arange(steps + 1, dtype=np.float32) + 100 * number
    flags = np.zeros((2, steps), bool)
    flags[:, -1] = end
    observations = {"a": np.zeros((steps + 1, 2), np.float32), "b": b}
    return SimpleNamespace(
        observations=observations,
        actions=np.arange(steps),
        rewards=np.ones(steps),
        terminations=flags[0],
        truncations=flags[1],
    )


def check(replay):
    """Compare every transition with the episodes that were added."""
    view = replay.transitions(draw=rf.Epochs())
    batch = view.sample(len(replay))
    assert np.array_equal(batch.next_obs["b"], batch.obs["b"] + 1)
    assert replay.episode_lengths() == [3, 4, 5]
    assert sorted(batch.obs["b"][batch.terminated].tolist()) == [2]
    assert sorted(batch.obs["b"][batch.truncated].tolist()) == [103]


def test_every_step_has_its_true_successor():
    """The observation after an episode's last step is its own, not the first of the next one."""
    dataset = SimpleNamespace(observation_space=OBS, action_space=spaces.Discrete(9))
    replay = rf.Replay(described(dataset), 100, seed=0)
    assert fill(replay, (episode(n, 3 + n, end) for n, end in enumerate(ENDS))) == 12
    check(replay)


def test_an_episode_without_its_last_observation_is_refused():
    """The text names the part and both counts, and nothing of the episode is added."""
    dataset = SimpleNamespace(observation_space=OBS, action_space=spaces.Discrete(9))
    replay, short = rf.Replay(described(dataset), 100, seed=0), episode(0, 3, (True, False))
    short.observations["b"] = short.observations["b"][:-1]
    with pytest.raises(rf.SchemaError, match="episode 0: observations: expected 4 for its 3 rewards, got 3"):
        fill(replay, [short])
    assert len(replay) == 0


@pytest.mark.filterwarnings("ignore::UserWarning:minari")  # Minari asks for links and authors
def test_a_minari_data_set_is_read(tmp_path, monkeypatch):
    """What Minari wrote to its own files comes back step by step."""
    minari = pytest.importorskip("minari")
    monkeypatch.setitem(os.environ, "MINARI_DATASETS_PATH", str(tmp_path))
    buffers = [minari.data_collector.EpisodeBuffer(**vars(episode(n, 3 + n, end))) for n, end in enumerate(ENDS)]
    dataset = minari.create_dataset_from_buffers(
        "ringfence/test-v0", buffers, observation_space=OBS, action_space=spaces.Discrete(9), description="a test"
    )
    replay = rf.Replay(described(dataset), int(dataset.total_steps), seed=0)
    fill(replay, dataset)
    check(replay)


def test_a_replay_is_made_of_a_data_set():
    """`from_minari` holds every step, or the newest where it is bounded."""

    class Dataset(list):
        observation_space, action_space, total_steps = OBS, spaces.Discrete(9), 12

    dataset = Dataset(episode(n, 3 + n, end) for n, end in enumerate(ENDS))
    check(rf.Replay.from_minari(dataset, seed=0))
    assert rf.Replay.from_minari(dataset, 5, seed=0).episode_lengths() == [5]
