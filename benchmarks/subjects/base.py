"""What a library must offer to be judged: a ring that is fed and drawn in numbers."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
WIDTH = 3
"""Numbers of an observation, all the same."""
SIDE = 8
"""Of a frame, unless said otherwise."""
TORN = -1
"""What an observation stands for whose numbers are not all the same."""


class Step(NamedTuple):
    """One step of an environment whose observations are numbered."""

    obs: int
    action: int
    reward: float
    next_obs: int
    terminated: bool
    truncated: bool


def value(obs: Any) -> Any:
    """Stand for a critic: the value of an observation, given its number."""
    return 1000.0 + 10.0 * np.asarray(obs, np.float64)


class Ring:
    """A buffer of one library. An adapter says how raw arrays go in, and which numbers come out."""

    dtype: Any = np.float32

    def encode(self, number: int) -> Array:
        """Make the observation of a number."""
        return np.full((WIDTH,), number, self.dtype)

    def add(self, step: Step) -> None:
        """Add a step."""
        self.put(self.encode(step.obs), *step[1:3], self.encode(step.next_obs), *step[4:])

    def put(self, obs: Any, action: Any, reward: Any, next_obs: Any, terminated: bool, truncated: bool) -> None:
        """Add a step as it came from the environment."""
        raise NotImplementedError

    def put_info(self, step: Step, info: dict[str, Any]) -> None:
        """Add a step together with what else the environment told, where the library takes it."""
        del info
        self.add(step)

    def draw(self, n: int) -> dict[str, Array]:
        """Draw; give numbers: ``obs``, ``next_obs``, ``action``, ``reward``, and ``stop``, where not to bootstrap."""
        raise NotImplementedError

    def arrays(self, n: int) -> list[Any]:
        """Draw, and give the arrays or tensors as the library hands them out."""
        raise NotImplementedError

    def size(self) -> int:
        """Count the steps held, as the library tells it."""
        raise NotImplementedError


class Stacks(Ring):
    """A ring of stacked frames."""

    side = SIDE

    def stack(self, numbers: tuple[int, ...]) -> Array:
        """Make a stack of frames, the oldest first, on the first axis."""
        return np.stack([np.full((self.side, self.side), number, np.uint8) for number in numbers])

    def add_stacks(self, step: Step, before: tuple[int, ...], after: tuple[int, ...]) -> None:
        """Add a step whose observations are stacks."""
        self.put(self.stack(before), *step[1:3], self.stack(after), *step[4:])


class Priorities(Ring):
    """A ring that draws by priority: a draw also has ``where``, whatever an update needs."""

    alpha = 1.0

    def update(self, where: Any, priorities: Array) -> None:
        """Give new priorities to what was drawn."""
        raise NotImplementedError


def numbers(obs: Any, axes: int = 1) -> Array:
    """Read numbers off observations: all axes but the first ones hold one number, or it is torn."""
    array = np.asarray(obs)
    flat = array.reshape(*array.shape[:axes], -1)
    same = (flat == flat[..., :1]).all(axis=-1)
    return np.where(same, flat[..., 0], TORN).astype(np.int64)
