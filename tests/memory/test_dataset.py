"""A dataset's workers read the ring where it is: it is paid once, and they follow it as it turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.memory.measure import MIB, fresh, on_linux, usage

pytest.importorskip("torch")
pytestmark = on_linux

CAPACITY, SHAPE = 6000, (64, 64, 3)


def turn(buffer: Any, first: int, count: int) -> None:
    """Add steps whose pixels follow from their number, in episodes of 50."""
    for number in range(first, first + count):
        obs, after = (np.full(SHAPE, n % 251, np.uint8) for n in (number, number + 1))
        buffer.add(obs, number, 0.0, number % 50 == 49, after)


def children() -> list[int]:
    """List the processes that this one started, all threads of it."""
    found = [path.read_text().split() for path in Path("/proc/self/task").glob("*/children")]
    return [int(pid) for pids in found for pid in pids]


def epoch(method: str, workers: int) -> dict[str, Any]:
    """Read every window twice with persistent workers, the ring turned in between; give what all of them pay."""
    import torch

    from ringfence.worldmodels.diamond import ReplayBuffer, SequenceDataset

    torch.set_num_threads(1)
    torch.multiprocessing.set_sharing_strategy("file_system")
    buffer = ReplayBuffer(CAPACITY, SHAPE, device="cpu", seed=0)
    turn(buffer, 0, CAPACITY)
    dataset = SequenceDataset(buffer)
    options = {"num_workers": workers, "multiprocessing_context": method, "persistent_workers": True} if workers else {}
    loader = torch.utils.data.DataLoader(dataset, batch_size=64, shuffle=True, **options)
    result: dict[str, Any] = {"nbytes": buffer.nbytes, "windows": len(dataset), "epochs": []}
    for _ in range(2):
        seen, wrong = [], 0
        for batch in loader:
            actions = batch["actions"].numpy()
            pixels = ((batch["obs_seq"][:, :, 0, 0, 0] + 1) * 127.5).round().numpy()
            wrong += np.count_nonzero(pixels != actions % 251) + np.count_nonzero(np.diff(actions, axis=1) != 1)
            wrong += np.count_nonzero(batch["dones"].numpy()[:, :-1])
            seen += actions[:, 0].tolist()
        figures = {"windows": len(set(seen)), "oldest": min(seen), "newest": max(seen), "wrong": int(wrong)}
        result["epochs"].append(figures)
        if len(result["epochs"]) == 1:
            turn(buffer, CAPACITY, CAPACITY)
    used = [usage(pid) for pid in children()]
    result["anonymous"] = [one.anonymous for one in used]
    result["shmem"] = usage().shmem + sum(one.shmem for one in used)
    return result


@pytest.mark.parametrize(("method", "workers"), [("fork", 0), ("fork", 2), ("spawn", 2)])
def test_workers_read_the_ring_where_it_is(method, workers):
    """Each window comes once an epoch, also after the ring turned; the shared pages of all are one ring."""
    paid = fresh(epoch, method, workers)

    assert paid["nbytes"] > 64 * MIB
    for turns, figures in enumerate(paid["epochs"]):
        assert figures["wrong"] == 0
        assert figures["windows"] == paid["windows"], figures
        assert turns * CAPACITY <= figures["oldest"] < figures["newest"] < (turns + 1) * CAPACITY
    assert len(paid["anonymous"]) >= workers
    assert abs(paid["shmem"] - paid["nbytes"]) < 16 * MIB, paid


def test_it_is_pickled_for_workers_only():
    """A plain pickle would hold a way to memory that may be gone."""
    import pickle

    from ringfence.worldmodels.diamond import ReplayBuffer, SequenceDataset

    with pytest.raises(TypeError, match="a process that is being spawned"):
        pickle.dumps(SequenceDataset(ReplayBuffer(10, (4, 4, 3), device="cpu")))


def test_an_index_of_a_longer_past_gives_another_window():
    """After the ring lost windows, indices that were good are, and others are refused."""
    from ringfence.worldmodels.diamond import ReplayBuffer, SequenceDataset

    buffer = ReplayBuffer(100, SHAPE, device="cpu")
    turn(buffer, 0, 100)
    dataset = SequenceDataset(buffer)
    assert len(dataset) == 92
    buffer.clear()
    turn(buffer, 0, 6)

    assert dataset[91]["actions"].tolist()[0] in (0, 1)
    with pytest.raises(IndexError, match="2 windows of 5 steps are held"):
        dataset[92]
    assert len(dataset) == 2
    with pytest.raises(IndexError, match="2 windows"):
        dataset[2]
