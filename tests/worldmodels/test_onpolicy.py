"""The steps of the episode at hand."""

import numpy as np
import pytest

from ringfence import SchemaError
from ringfence.worldmodels import IRISOnPolicyBuffer, IRISReplayBuffer

SHAPE = (3, 8, 8)


def fill(target, count):
    """Add steps, all of them by the same arrays."""
    obs, action = np.zeros(SHAPE, np.uint8), np.zeros(2, np.float32)
    for number in range(count):
        obs[:], action[:] = number, number
        target.add(obs, action, float(number), number == count - 1)
    return target


def test_it_keeps_copies():
    """Arrays that the caller goes on to use do not change what was added."""
    target = fill(IRISOnPolicyBuffer(), 10)

    obs, action, reward, terminal = target.get_arrays()

    assert obs[:, 0, 0, 0].tolist() == action[:, 0].tolist() == reward.tolist() == list(range(10))
    assert terminal.tolist() == [0.0] * 9 + [1.0]
    assert (obs.shape, obs.dtype, action.dtype, reward.dtype) == ((10, *SHAPE), np.uint8, np.float32, np.float64)
    assert len(target) == 10


def test_it_is_bounded():
    """Beyond max_steps the oldest steps go, and are counted."""
    target = fill(IRISOnPolicyBuffer(max_steps=4), 10)

    assert target.rewards == [6.0, 7.0, 8.0, 9.0]
    assert [int(obs[0, 0, 0]) for obs in target.observations] == [6, 7, 8, 9]
    assert len(target.actions) == len(target.terminals) == len(target) == 4
    assert target.dropped == 6
    assert target.nbytes == 4 * (3 * 8 * 8 + 8)
    with pytest.raises(SchemaError, match="max_steps: expected a whole number of at least 1, got 0"):
        IRISOnPolicyBuffer(max_steps=0)


def test_its_steps_go_to_the_main_buffer():
    """The loop of the original's page moves an episode, and clear begins the next one."""
    on_policy, target = fill(IRISOnPolicyBuffer(max_steps=1000), 8), IRISReplayBuffer(20, SHAPE, 2, 8, 1)

    for i in range(len(on_policy)):
        target.add(
            on_policy.observations[i],
            on_policy.actions[i],
            on_policy.rewards[i],
            on_policy.terminals[i],
        )
    on_policy.clear()

    assert target.sample_sequence()[2].tolist() == [[0, 1, 2, 3, 4, 5, 6, 7]]
    assert (len(on_policy), on_policy.observations, on_policy.dropped) == (0, [], 0)


def test_a_step_that_does_not_fit_changes_nothing():
    """All lists stay as long as each other."""
    target = fill(IRISOnPolicyBuffer(), 3)

    with pytest.raises(SchemaError, match="terminal: expected a bool or a number from 0 to 1, got int 7"):
        target.add(np.zeros(SHAPE), np.zeros(2), 0.0, 7)
    with pytest.raises(TypeError):
        target.add(np.zeros(SHAPE), np.zeros(2), None, False)

    assert [len(part) for part in target.get_arrays()] == [3] * 4


def test_tensors_are_taken():
    """PyTorch's tensors are copied into arrays."""
    torch = pytest.importorskip("torch")
    target = IRISOnPolicyBuffer()

    target.add(
        torch.ones(SHAPE, dtype=torch.uint8), torch.ones(2, requires_grad=True), torch.tensor(2.0), torch.tensor(True)
    )

    assert (target.rewards, target.terminals) == ([2.0], [1.0])
    assert type(target.actions[0]) is type(target.observations[0]) is np.ndarray


def test_beside_the_original_steps_are_copied_and_bounded():
    """The original keeps the caller's arrays, so that all steps equal the last, and knows no bound."""
    simulusion = pytest.importorskip("simulusion")
    theirs, ours = fill(simulusion.IRISOnPolicyBuffer(max_steps=4), 10), fill(IRISOnPolicyBuffer(max_steps=4), 10)

    assert [len(theirs), len(ours)] == [10, 4]
    assert theirs.get_arrays()[0][:, 0, 0, 0].tolist() == [9] * 10
    assert ours.get_arrays()[0][:, 0, 0, 0].tolist() == [6, 7, 8, 9]
