"""What a survey says of a save, beside what the replay itself says."""

import json

import numpy as np
import pytest
from tests.saving.book import SCHEMAS, Filler

import ringfence as rf
from ringfence.saving.survey import is_checkpoint, survey


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("compress", [False, True])
def test_figures_are_those_of_the_replay(tmp_path, name, compress):
    """Steps, episodes and rewards are those held, also where files hold steps that were overwritten since."""
    replay = rf.Replay(SCHEMAS[name], 300, streams=2, seed=0)
    filler = Filler(replay)
    for step in range(900):
        filler.step(step % 2)
        if step % 150 == 149:
            replay.save(tmp_path / "save", compress=compress, notes={"best": float("inf"), "array": np.arange(3)})
    found = survey(tmp_path / "save", verify=True)
    rewards = np.concatenate(
        [filler.replay._store.records_at(rows(replay, s)).view(record(replay))["reward"] for s in (0, 1)]
    )
    assert found["steps"] == len(replay) == found["rewards"]["count"]
    assert found["held"] == replay.stats()["held"]
    assert found["episodes"]["ended"] == replay.stats()["episodes"]
    assert found["rewards"]["counts"] == np.histogram(rewards.astype(np.float64), 12)[0].tolist()
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def rows(replay, stream):
    """Give the rows of the steps that a stream holds."""
    look = replay._timeline.look()
    times = np.arange(look.tails[stream], look.heads[stream])
    return stream * replay._timeline.rows_each + times % replay._timeline.slots


def record(replay):
    """Give the dtype of a record."""
    return replay._store.layout.record


def test_a_flipped_bit_is_found_and_its_file_named(tmp_path):
    """A damaged file of final observations, which no figure needs, is found with verify."""
    replay = rf.Replay(SCHEMAS["small"], 300, seed=0)
    filler = Filler(replay)
    for _ in range(100):
        filler.step()
    replay.save(tmp_path)
    path = next(tmp_path.glob("*-finals*.npy"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(rf.CheckpointError, match=path.name):
        survey(tmp_path, verify=True)


def test_an_empty_directory_is_no_checkpoint(tmp_path):
    """Neither is one that is not there."""
    assert not is_checkpoint(tmp_path)
    assert not is_checkpoint(tmp_path / "missing")
