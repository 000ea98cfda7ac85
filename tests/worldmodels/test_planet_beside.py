"""PlaNet's memory beside simulusion's: what is the same, and what was wrong there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.worldmodels.book_planet import read

from ringfence.worldmodels.planet import Episode, Memory

theirs = pytest.importorskip("simulusion.memory.planet_memory")
torch = pytest.importorskip("torch")


def _record(kind: Any, first: int, steps: int) -> Any:
    made = kind()
    for number in range(first, first + steps):
        obs = torch.tensor([number // 256, number % 256], dtype=torch.uint8)
        made.append(obs, torch.tensor(float(number)), float(number), number % 2 == 0)
    last = first + steps
    made.terminate(torch.tensor([last // 256, last % 256], dtype=torch.uint8))
    return made


def _both() -> list[tuple[Any, Any]]:
    return [(Memory(3, seed=0), Episode), (theirs.Memory(3), theirs.Episode)]


@pytest.mark.parametrize("time_first", [False, True])
@pytest.mark.parametrize("length", [1, 3])
def test_batches_are_of_the_same_shapes_dtypes_and_windows(length: int, time_first: bool) -> None:
    """Everything that one may draw the other may draw too; only what theirs cannot turn differs."""
    found = []
    for memory, kind in _both():
        memory.append([_record(kind, 100 * number, steps) for number, steps in enumerate((9, 2, 4, 6))])
        if length == 1 and time_first and kind is theirs.Episode:
            with pytest.raises(np.exceptions.AxisError):
                memory.sample(5, 1, time_first=True)
            return
        arrays, lengths = memory.sample(600, length, time_first)
        numbers = read(arrays[0], 2)
        rows = (numbers.T if time_first else numbers).tolist()
        windows = {(*row, int(steps)) for row, steps in zip(rows, lengths, strict=True)}
        found.append(([(part.shape, part.dtype) for part in (*arrays, lengths)], windows))
        assert list(memory.eps_lengths) == [2, 4, 6]
        assert (len(memory), memory.size) == (3, 12)
    assert found[0] == found[1]


def test_their_episodes_are_taken() -> None:
    """A rollout that still makes simulusion's own episodes fills this memory."""
    memory = Memory(2, seed=0)
    memory.append([_record(theirs.Episode, 0, 4)])
    assert memory.sample(3, 4)[0][0].shape == (3, 5, 2)


def test_errors_are_of_the_same_kind_and_say_the_same() -> None:
    """Empty, none long enough, and no episode."""
    for memory, kind in _both():
        with pytest.raises(ValueError, match="Memory is empty"):
            memory.sample(1)
        with pytest.raises(ValueError, match="can only append <Episode> or list of <Episode>"):
            memory.append("no episode")
        memory.append(_record(kind, 0, 3))
        with pytest.raises(ValueError, match=r"No episodes with length >= 4 available to sample"):
            memory.sample(1, 4)


def test_a_batch_beyond_200_mib_is_refused_here_and_goes_through_there() -> None:
    """They swallow their own MemoryError; views of one frame keep this test small until the batch is made."""
    frame = np.zeros((2, 1024, 1024), np.uint8)
    refused = []
    for memory, kind in _both():
        made = kind()
        made.x, made.u, made.r, made.t = frame, np.zeros((1, 1), np.float32), np.zeros(1), np.zeros(1)
        made._size = 1
        memory.append(made)
        try:
            refused.append(memory.sample(101)[0][0].nbytes)
        except MemoryError as error:
            refused.append(str(error))
    assert "limit" in str(refused[0])
    assert refused[1] == 202 * 2**20


def test_numpy_observations_are_taken_here_and_raise_there() -> None:
    """They call ``.numpy()`` on whatever comes."""
    arguments = np.zeros(2, np.uint8), np.zeros(1), 0.0, False
    ours = Episode()
    ours.append(*arguments)
    assert ours.size == 1
    with pytest.raises(AttributeError, match="numpy"):
        theirs.Episode().append(*arguments)


def test_observations_are_copied_here_and_shared_there() -> None:
    """An environment that draws into one tensor leaves theirs with many times the last picture."""
    held = []
    for _, kind in _both():
        made, canvas = kind(), torch.zeros(1, dtype=torch.uint8)
        for number in range(3):
            canvas.fill_(number)
            made.append(canvas, torch.zeros(1), 0.0, False)
        made.terminate(canvas)
        held.append(made.x[:, 0].tolist())
    assert held == [[0, 1, 2, 2], [2, 2, 2, 2]]


def test_their_saver_and_loader_work_on_this_memory(tmp_path: Path) -> None:
    """The functions of their training task read the episodes of one memory and fill another; so does our reader."""
    task = pytest.importorskip("simulusion.training.tasks.planet")
    memory = Memory(3, seed=0)
    memory.append([_record(Episode, 0, 4), _record(Episode, 10, 2)])
    task.save_planet_memory(memory, tmp_path)
    other = Memory(3, seed=0)
    other.append(_record(Episode, 50, 3))
    task.load_planet_memory(other, tmp_path)
    for found in (other, Memory.from_npz(tmp_path)):
        assert [read(one.x, 1).tolist() for one in found.episodes] == [[0, 1, 2, 3, 4], [10, 11, 12]]
        assert found.episodes[0].u.shape == (4,)
