"""Small buffers of Dreamer, filled with numbered steps."""

import numpy as np

from ringfence.worldmodels import ReplayBuffer

SHAPE = (3, 8, 8)


def buffer(size=40, seq_len=5, batch_size=4, **options):
    """Make a small one."""
    return ReplayBuffer(size, SHAPE, 2, seq_len, batch_size, **{"seed": 0, **options})


def fill(target, count, episode=7, start=0, **options):
    """Add steps whose image, action and reward are their number, in episodes of one length."""
    for number in range(start, start + count):
        picture = {"image": np.full(SHAPE, number % 256, np.uint8)}
        target.add(
            picture, np.array([number, -number], np.float32), float(number), (number + 1) % episode == 0, **options
        )
    return target


def drawn(target, rounds=100):
    """Give the windows of many samples, as the numbers that stand in their rewards."""
    return {tuple(window) for _ in range(rounds) for window in target.sample()[2].T.astype(int).tolist()}


def shown(target):
    """Give all that can be seen of a buffer, to compare."""
    names = ("observations", "actions", "rewards", "terminals", "terminated")
    counts = target.idx, target.full, target.steps, target.episodes, len(target), target.replay.stats()
    return counts, [np.asarray(getattr(target, name)).tolist() for name in names], target.state_dict()["steps"]
