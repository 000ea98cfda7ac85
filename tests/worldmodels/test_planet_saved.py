"""PlaNet's memory saved and brought back, and episodes read from simulusion's files."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.worldmodels.book_planet import LARGE, SMALL, episode, read

from ringfence import Field, Replay, Schema
from ringfence.errors import CheckpointError, NotEnoughData
from ringfence.worldmodels.planet import Memory


def _filled(**options: Any) -> Memory:
    memory = Memory(4, seed=5, **options)
    memory.append([episode(100 * number, 5 + number) for number in range(6)])
    return memory


def _draws(memory: Memory) -> list[Any]:
    return [read(memory.sample(9, length)[0][0], 2).tolist() for length in (1, 4, 2)]


def _through_save(memory: Memory, path: Path) -> Memory:
    memory.save(path / "memory", notes={"epoch": 3})
    loaded = Memory.load(path / "memory")
    assert loaded.notes == {"epoch": 3}
    return loaded


def _through_state(memory: Memory, path: Path) -> Memory:
    del path
    loaded = Memory(1)
    loaded.load_state_dict(memory.state_dict())
    return loaded


def _through_torch(memory: Memory, path: Path) -> Memory:
    torch = pytest.importorskip("torch")
    del path
    kept = io.BytesIO()
    torch.save(memory.state_dict(), kept)
    kept.seek(0)
    loaded = Memory(1)
    loaded.load_state_dict(torch.load(kept, weights_only=True))
    return loaded


@pytest.mark.parametrize("draw", ["episodes", "windows"])
@pytest.mark.parametrize("through", [_through_save, _through_state, _through_torch])
def test_a_memory_brought_back_draws_what_the_other_draws(through: Any, draw: Any, tmp_path: Path) -> None:
    """Twins hold the same, draw the same before and after further episodes, and evict the same."""
    memory = _filled(draw=draw)
    _draws(memory)
    twin = through(memory, tmp_path)
    assert twin.eps_lengths == memory.eps_lengths == [7, 8, 9, 10]
    assert _draws(twin) == _draws(memory)
    for one in (memory, twin):
        one.append(episode(900, 30))
    assert twin.eps_lengths == memory.eps_lengths == [8, 9, 10, 30]
    assert _draws(twin) == _draws(memory)


@pytest.mark.parametrize("name", ["buffer", "capacity", "form", "room", "draw", "generator", "replay"])
@pytest.mark.parametrize("value", [None, 7, {"x": 1}])
def test_a_damaged_state_is_refused_and_nothing_is_changed(name: str, value: Any) -> None:
    """Whatever part is missing or another, the memory goes on as it was."""
    memory, other = _filled(), _filled()
    state = other.state_dict()
    state[name] = value
    if (name, value) == ("capacity", 7):
        state[name] = "7"
    with pytest.raises(CheckpointError, match=r"state|form|room|draw|generator|ring|replay"):
        memory.load_state_dict(state)
    assert _draws(memory) == _draws(_filled())


def test_a_state_is_a_copy() -> None:
    """Steps that come after it do not change it."""
    memory = _filled()
    state = memory.state_dict()
    memory.append([episode(2000, 5) for _ in range(4)])
    twin = Memory(1)
    twin.load_state_dict(state)
    assert twin.eps_lengths == [7, 8, 9, 10]


def test_a_save_of_something_else_is_refused(tmp_path: Path) -> None:
    """A plain replay is none of these memories."""
    Replay(Schema(Field((2,), np.uint8), Field((), np.int64)), 10).save(tmp_path / "plain")
    with pytest.raises(CheckpointError, match="holds no Memory"):
        Memory.load(tmp_path / "plain")


def test_an_empty_memory_has_nothing_to_save(tmp_path: Path) -> None:
    """It does not know yet what a step is, and says so; one that was cleared does."""
    with pytest.raises(NotEnoughData, match="no episode was ever appended"):
        Memory(1).save(tmp_path / "none")
    with pytest.raises(NotEnoughData, match="no episode was ever appended"):
        Memory(1).state_dict()
    memory = _filled()
    memory.clear()
    assert len(_through_save(memory, tmp_path)) == 0


def _write(path: Path, lengths: list[int], shape: tuple[int, ...] = SMALL) -> None:
    for number, steps in enumerate(lengths):
        made = episode(100 * number, steps, shape)
        np.savez(path / f"episode_{number:06d}.npz", x=made.x, u=made.u, r=made.r, t=made.t)


@pytest.mark.parametrize(("options", "held"), [({}, [3, 7, 5]), ({"size": 2}, [7, 5]), ({"steps": 13}, [7, 5])])
def test_episode_files_are_read_in_order(options: Any, held: list[int], tmp_path: Path) -> None:
    """All of them unless a size is given, which then keeps the newest."""
    _write(tmp_path, [3, 7, 5], LARGE)
    memory = Memory.from_npz(tmp_path, seed=0, **options)
    assert memory.eps_lengths == held
    assert read(memory.episodes[-1].x, 1).tolist() == [200, 201, 202, 203, 204, 205]


def test_damaged_and_missing_files_are_refused(tmp_path: Path) -> None:
    """The text names the folder, or the file."""
    with pytest.raises(CheckpointError, match=r"holds no episode_\*\.npz"):
        Memory.from_npz(tmp_path)
    _write(tmp_path, [3, 7])
    path = tmp_path / "episode_000001.npz"
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(CheckpointError, match="episode_000001"):
        Memory.from_npz(tmp_path)
    np.savez(path, x=np.zeros((3, 2), np.uint8), u=np.zeros((3, 1)), r=np.zeros(3), t=np.zeros(3))
    with pytest.raises(CheckpointError, match="expected 4 rows"):
        Memory.from_npz(tmp_path)


def test_the_form_that_is_saved_is_plain_text() -> None:
    """What stands beside the ring holds no arrays and no objects, so that any reader understands it."""
    state = _filled().state_dict()
    assert json.loads(json.dumps(state["form"])) == {
        "x": [[2], "|u1"],
        "u": [[1], "<f4"],
        "r": [[], "<f8"],
        "t": [[], "|b1"],
        "flat": False,
    }
