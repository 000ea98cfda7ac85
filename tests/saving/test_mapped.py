"""A save sampled from its files gives what the ring gave, takes next to no memory, and cannot be changed."""

from __future__ import annotations

import numpy as np
import pytest
from tests.memory.measure import fresh
from tests.saving import book
from tests.saving.book import FRAMED, SCHEMAS, SMALL, Filler

from ringfence import CheckpointError, Replay
from ringfence.errors import SchemaError


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("steps", [4, 100, 900])
def test_views_of_a_mapped_save_give_what_the_ring_gives(tmp_path, schema, streams, steps):
    """Every kind of view and draw, over files of several saves, with joined and dropped segments among them."""
    replay = Replay(schema, 130 * streams, streams=streams, seed=3, episode_length=8)
    filler, mine = Filler(replay, seed=1), book.views(replay)
    for _ in range(4):
        filler.steps(steps // 4)
        book.use(mine, np.random.default_rng(0))
        replay.save(tmp_path / "save")
    mapped = Replay.load(tmp_path / "save", store="mmap")
    theirs = book.views(mapped)

    assert mapped.stats() | {"nbytes": 0} == replay.stats() | {"nbytes": 0}
    assert mapped.episode_lengths() == replay.episode_lengths()
    book.assert_same_content(replay, mapped)
    book.assert_same_batches([replay._default, *mine], [mapped._default, *theirs])
    assert mapped.nbytes < replay.nbytes


def test_a_ring_that_came_from_a_smaller_one_is_mapped_right(tmp_path):
    """Files that were written under other numbers of final observations show the right ones."""
    small = Replay(FRAMED, 40, seed=0, episode_length=1)
    Filler(small, seed=0).steps(90)
    small.save(tmp_path / "save")
    large = Replay.load(tmp_path / "save", capacity=300)
    Filler(large, seed=1).steps(120)
    large.save(tmp_path / "save")

    book.assert_same_content(large, Replay.load(tmp_path / "save", store="mmap"))


def test_nothing_can_be_changed(tmp_path):
    """Whatever would add or drop is refused, by name of the way out, and the files stay as they are."""
    replay = Replay(FRAMED, 40, streams=2)
    filler = Filler(replay)
    filler.steps(60)
    replay.save(tmp_path / "save")
    before = {path.name: path.read_bytes() for path in (tmp_path / "save").iterdir()}
    mapped = Replay.load(tmp_path / "save", store="mmap")
    view, obs = mapped.sequences(1), book.content(replay)
    step = {key.removeprefix("obs."): value[0] for key, value in obs.items() if key.startswith("obs.")}
    step["image"] = step["image"][-1]
    extras = {"hidden": np.zeros(200, np.float32), "number": 1}
    acts = [
        lambda: mapped.add(step, 0, 0.0, step, terminated=False, **extras),
        mapped.clear,
        mapped.cut,
        lambda: mapped.drop(1),
        lambda: view.write(view.ids()[:1], number=[3]),
        lambda: view.write(view.ids()[:1], hidden=np.zeros((1, 200), np.float32)),
    ]
    for act in acts:
        with pytest.raises(TypeError, match=r'loaded with store="mmap" and cannot be changed'):
            act()
    with pytest.raises(SchemaError):
        mapped.add(0, 0, 0.0, 0, terminated=False)
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "save").iterdir()}


def test_a_mapped_save_can_be_saved_elsewhere(tmp_path):
    """It is a replay: what is saved of it is what was there."""
    replay = Replay(FRAMED, 40, seed=1)
    Filler(replay).steps(70)
    replay.save(tmp_path / "save")
    Replay.load(tmp_path / "save", store="mmap").save(tmp_path / "other")

    book.assert_same_content(replay, Replay.load(tmp_path / "other"))


def test_a_compressed_save_says_that_it_cannot_be_mapped(tmp_path):
    """The error names the file, and what to do."""
    replay = Replay(SMALL, 40)
    Filler(replay).steps(30)
    replay.save(tmp_path / "save", compress=True)
    with pytest.raises(CheckpointError, match=r'is compressed and cannot be mapped; load with store="ram"'):
        Replay.load(tmp_path / "save", store="mmap")


def paid(path, make):
    """Save a ring of 80 MB, or sample from it mapped, and give what the process paid for that."""
    from tests.memory.measure import usage

    from ringfence import Field, Schema

    if make:
        schema = Schema(obs=Field((20_000,), np.uint8), action=Field((), np.int64))
        replay = Replay(schema, 4000)
        frame = np.random.default_rng(0).integers(0, 256, 20_000, np.uint8)
        for number in range(4000):
            replay.add(frame, number, 0.0, frame, terminated=False)
        replay.save(path)
        return None
    Replay(SMALL, 10).sequences(1)
    before = usage().anonymous + usage().shmem
    mapped = Replay.load(path, store="mmap")
    for _ in range(20):
        assert (mapped.sample(32).obs[:, 0] == mapped.sample(1).obs[0, 0]).all()
    return usage().anonymous + usage().shmem - before


def test_a_mapped_save_takes_next_to_no_memory(tmp_path):
    """What it reads are pages of files, which the kernel drops when it needs them."""
    fresh(paid, str(tmp_path / "save"), True)

    assert fresh(paid, str(tmp_path / "save"), False) < 8 << 20
