"""The Blind Cliffwalk (Schaul et al. 2016, section 3.1): its states, its memory, and a learner of its values.

In each of n states in a row one of two actions is right and leads to the next state, the other ends the episode with
nothing; which one is right alternates. The right action of the last state ends it with a reward of 1. The memory holds
every sequence of n actions once, in random order, each until it ends: 2 ** (n + 1) - 2 transitions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STEP_SIZE = 0.25
SPREAD = 0.1
"""Standard deviation of the weights at the start."""
CONVERGED = 1e-3
"""Mean squared error below which the values count as learned."""


class Step(NamedTuple):
    """One transition."""

    state: int
    action: int
    reward: float
    next_state: int
    terminated: bool


class Cliffwalk:
    """A problem of n states."""

    def __init__(self, states: int) -> None:
        self.states = states
        self.gamma = 1 - 1 / states
        self.steps = [self.step(state, action) for state in range(states) for action in (0, 1)]
        """Every transition that there is; number ``2 * state + action``."""
        self.truth = [
            self.gamma ** (states - 1 - state) if action == right(state) else 0.0
            for state in range(states)
            for action in (0, 1)
        ]

    def step(self, state: int, action: int) -> Step:
        """Take an action."""
        last = state == self.states - 1
        if action != right(state):
            return Step(state, action, 0.0, self.states, True)
        return Step(state, action, float(last), state + 1, last)

    def memory(self, random: np.random.Generator) -> NDArray[np.int64]:
        """Give the numbers of all transitions of all sequences of actions, the sequences in random order."""
        n = self.states
        tosses = random.permutation(2**n)  # bit k set: the action of state k is wrong
        first_wrong = np.where(tosses == 0, n, np.log2(np.maximum(tosses & -tosses, 1)).astype(np.int64))
        lengths = np.minimum(first_wrong + 1, n)
        starts = np.cumsum(lengths) - lengths
        states = np.arange(lengths.sum()) - np.repeat(starts, lengths)
        wrong = states == np.repeat(first_wrong, lengths)
        numbers: NDArray[np.int64] = 2 * states + (states % 2 ^ wrong)
        return numbers


def right(state: int) -> int:
    """Give the action that does not fall."""
    return state % 2


class Learner:
    """Q-learning with one weight for each state and action, and one more for each action if there is a bias.

    The squared error to the true values is carried along from one update to the next, so that an update costs the same
    whatever n.
    """

    def __init__(self, walk: Cliffwalk, random: np.random.Generator, *, bias: bool) -> None:
        self._walk, self._bias = walk, bias
        self._weights: list[float] = random.normal(0, SPREAD, 2 * walk.states).tolist()
        self._biases: list[float] = random.normal(0, SPREAD, 2).tolist() if bias else [0.0, 0.0]
        self._square, self._sums = 0.0, [0.0, 0.0]
        self._measure()

    def value(self, number: int) -> float:
        """Give the value of an action in a state."""
        return self._weights[number] + self._biases[number & 1]

    def error(self, step: Step) -> float:
        """Give the TD error of a transition."""
        state, action, reward, following, terminated = step
        if not terminated:
            reward += self._walk.gamma * max(self.value(2 * following), self.value(2 * following + 1))
        return reward - self.value(2 * state + action)

    def learn(self, step: Step) -> float:
        """Update the weights; give the size of the TD error before."""
        error = self.error(step)
        number = 2 * step.state + step.action
        self._square, total = self._after(number, STEP_SIZE * error)
        self._sums[step.action] = total
        self._weights[number] += STEP_SIZE * error
        if self._bias:
            self._biases[step.action] += STEP_SIZE * error
        return abs(error)

    @property
    def loss(self) -> float:
        """Mean squared error to the true values."""
        return self._square / len(self._weights)

    def loss_after(self, step: Step) -> float:
        """Give the loss that an update would lead to."""
        square, _ = self._after(2 * step.state + step.action, STEP_SIZE * self.error(step))
        return square / len(self._weights)

    @property
    def converged(self) -> bool:
        """Whether the values are learned; a loss that was carried below the mark is measured anew before it counts."""
        if self._square >= CONVERGED * len(self._weights):
            return False
        self._measure()
        return self._square < CONVERGED * len(self._weights)

    def _after(self, number: int, change: float) -> tuple[float, float]:
        """Give the squared error, and the sum of the errors of this action, after a change of a weight and its bias."""
        square, total = self._square, self._sums[number & 1]
        distance = self.value(number) - self._walk.truth[number]
        if self._bias:
            square += 2 * change * total + self._walk.states * change**2
            total += self._walk.states * change
            distance += change
        return square + 2 * change * distance + change**2, total + change

    def _measure(self) -> None:
        distances = [self.value(number) - true for number, true in enumerate(self._walk.truth)]
        self._square = sum(distance**2 for distance in distances)
        self._sums = [sum(distances[0::2]), sum(distances[1::2])]
