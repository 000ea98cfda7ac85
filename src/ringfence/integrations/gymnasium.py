"""Record every step of a Gymnasium environment into a replay, and leave the user's loop as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.wrappers import Autoreset
from numpy.typing import NDArray

from ringfence.errors import SchemaError
from ringfence.replay import Replay
from ringfence.schema import tree
from ringfence.schema.spaces import fields

if TYPE_CHECKING:
    _VectorWrapper: TypeAlias = VectorWrapper[Any, Any, Any, Any, Any]
else:
    _VectorWrapper = VectorWrapper  # a class without parameters before Gymnasium 1.4

Single: TypeAlias = "gymnasium.Env[Any, Any]"
Vector: TypeAlias = "VectorEnv[Any, Any, Any]"


@overload
def Recorder(
    env: Single, replay: Replay, *, stream: int | None = None, defaults: Mapping[str, Any] | None = None
) -> SingleRecorder: ...


@overload
def Recorder(
    env: Vector,
    replay: Replay,
    *,
    defaults: Mapping[str, Any] | None = None,
    autoreset_mode: AutoresetMode | str | None = None,
) -> VectorRecorder: ...


def Recorder(  # noqa: N802 - it stands for the two classes below, and is used like one
    env: Single | Vector,
    replay: Replay,
    *,
    stream: int | None = None,
    defaults: Mapping[str, Any] | None = None,
    autoreset_mode: AutoresetMode | str | None = None,
) -> SingleRecorder | VectorRecorder:
    """Wrap an environment so that each step it makes is added to the replay.

    What is recorded is what `step` returns here, so wrap last: outside the wrappers whose observations and rewards
    the learner should see. Of `info` only the extras that the schema declares are kept, by value.

    Args:
        env: One environment, or a vector environment with one sub-environment for each stream of the replay.
        replay: Where the steps go.
        stream: For one environment, the stream to write; may be left out when the replay has only one.
        defaults: For declared extras that `info` does not hold at every step, what to record where it is missing.
        autoreset_mode: For a vector environment whose metadata do not tell it.

    Returns:
        A `SingleRecorder` (a `gymnasium.Wrapper`) or a `VectorRecorder` (a `gymnasium.vector.VectorWrapper`).

    Raises:
        SchemaError: The streams, spaces, defaults or autoreset mode do not fit the replay or the environment.
        TypeError: `env` is neither kind, or an argument belongs to the other kind.
    """
    if isinstance(env, VectorEnv):
        if stream is not None:
            raise TypeError("stream= is for one environment; sub-environment i of a vector writes stream i")
        return VectorRecorder(env, replay, defaults=defaults, autoreset_mode=autoreset_mode)
    if isinstance(env, gymnasium.Env):
        if autoreset_mode is not None:
            raise TypeError("autoreset_mode= is for vector environments; this is one environment")
        return SingleRecorder(env, replay, stream=stream, defaults=defaults)
    raise TypeError(f"env: expected a gymnasium.Env or a gymnasium.vector.VectorEnv, got {type(env).__name__}")


class SingleRecorder(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Record each step of one environment into one stream; made by `Recorder`.

    Under `gymnasium.wrappers.Autoreset` the step that resets is no transition and is not recorded.
    A step that the replay refuses is not recorded, and the next one is a fresh beginning to it.
    Costs a copy of one observation. Use it from one thread, the only writer of its stream.
    """

    def __init__(
        self, env: Single, replay: Replay, *, stream: int | None = None, defaults: Mapping[str, Any] | None = None
    ) -> None:
        """Take the environment, the replay and the stream to write."""
        super().__init__(env)
        self.replay = replay
        self.stream = _stream(replay, stream)
        self._extras = _Extras(replay, defaults)
        self._copy = _copier(env.observation_space)
        self._autoreset = _autoreset(env)
        self._held: Any = None
        self._running = False
        _agree("obs", replay.schema.obs, env.observation_space)
        _agree("action", replay.schema.action, env.action_space)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; one that was running ends where it stands, neither terminated nor truncated."""
        self._running = False
        self.replay.cut(self.stream)
        obs, info = self.env.reset(seed=seed, options=options)
        self._held = self._copy(obs)
        self._running = True
        return obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment and add the transition.

        Raises:
            ResetNeeded: The episode has ended or none was begun; the environment is not stepped.
            SchemaError: The step does not fit the schema; it was made, but is not recorded.
        """
        recorded = self._running
        if not recorded and (self._autoreset is None or not self._autoreset.autoreset):
            raise ResetNeeded("the episode has ended or none was begun: call reset() before step()")
        obs, reward, terminated, truncated, info = self.env.step(action)
        # Moved on before the add, so that a refused step cannot pair an old observation with a later one.
        before, self._held = self._held, self._copy(obs)
        self._running = not (terminated or truncated)
        if recorded:
            try:
                extras = self._extras.single(info) if self._extras.names else {}
                self.replay.add(before, action, reward, obs, terminated, truncated, self.stream, **extras)
            except SchemaError:
                self.replay.cut(self.stream)  # a step is missing here: nothing may reach across
                raise
        return obs, reward, terminated, truncated, info


class VectorRecorder(_VectorWrapper):
    """Record each step of a vector environment, sub-environment i into stream i; made by `Recorder`.

    In the mode NEXT_STEP the rows that only reset are not recorded; in SAME_STEP the successor at an end is the
    `final_obs` of the infos; in DISABLED a sub-environment that has ended must be reset before the next step.
    Costs a copy of the observations of one step. Use it from one thread, the only writer of the replay.
    """

    def __init__(
        self,
        env: Vector,
        replay: Replay,
        *,
        defaults: Mapping[str, Any] | None = None,
        autoreset_mode: AutoresetMode | str | None = None,
    ) -> None:
        """Take the vector environment and a replay with as many streams."""
        super().__init__(env)
        if env.num_envs != replay.streams:
            raise SchemaError(
                f"the environment has {env.num_envs} sub-environments and the replay {replay.streams} streams: "
                f"make it Replay(..., streams={env.num_envs})"
            )
        self.replay = replay
        self._mode = _mode(env, autoreset_mode)
        self._extras = _Extras(replay, defaults, env.num_envs)
        self._obs_space, self._act_space = env.single_observation_space, env.single_action_space
        self._copy = _copier(self._obs_space)
        self._held: Any = None
        self._pending: NDArray[np.bool_] | None = None
        self._forgetful = self._mode is AutoresetMode.NEXT_STEP and _resets_twice(env)
        _agree("obs", replay.schema.obs, self._obs_space)
        _agree("action", replay.schema.action, self._act_space)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset all sub-environments, or those of `options["reset_mask"]`, and begin their episodes."""
        self._held = None
        # Read before the call: Gymnasium takes the mask out of the caller's options.
        mask = None if options is None else options.get("reset_mask")
        obs, infos = self.env.reset(seed=seed, options=options)
        self._held = self._copy(obs)
        for stream in np.flatnonzero(np.ones(self.num_envs) if mask is None else mask).tolist():
            self.replay.cut(stream)
        if self._pending is not None and not self._forgetful:
            remain = self._pending & ~np.asarray(True if mask is None else mask, dtype=np.bool_)
            self._pending = remain if remain.any() else None
        return obs, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all sub-environments and add the transitions that they made.

        Raises:
            ResetNeeded: Some have ended in the mode DISABLED, or nothing was ever reset; none is stepped.
            SchemaError: The steps do not fit the schema; they were made, but none of them is recorded.
        """
        self._require_reset()
        obs, reward, terminated, truncated, infos = self.env.step(actions)
        done = np.logical_or(np.asarray(terminated), np.asarray(truncated))
        ended = done if np.count_nonzero(done) else None
        before, self._held = self._held, self._copy(obs)
        if self._mode is AutoresetMode.SAME_STEP:
            next_obs = obs if ended is None else self._with_finals(obs, ended, infos)
            extras = self._extras.vector(infos, None, ended) if self._extras.names else {}
            self.replay.extend(before, actions, reward, next_obs, terminated, truncated, **extras)
        else:
            skipped, self._pending = self._pending, ended
            if skipped is None:
                extras = self._extras.vector(infos) if self._extras.names else {}
                self.replay.extend(before, actions, reward, obs, terminated, truncated, **extras)
            elif len(rows := np.flatnonzero(~skipped)):
                self._extend_rows(rows, before, (actions, reward, obs, terminated, truncated, infos))
        return obs, reward, terminated, truncated, infos

    def _require_reset(self) -> None:
        if self._held is None:
            raise ResetNeeded("no episode was begun: call reset() before step()")
        if self._pending is not None and self._mode is AutoresetMode.DISABLED:
            indices = np.flatnonzero(self._pending).tolist()
            raise ResetNeeded(
                f"the episodes of environments {indices} have ended: reset them before step(), "
                "with reset(options={'reset_mask': mask})"
            )

    def _with_finals(self, obs: Any, ended: NDArray[np.bool_], infos: Any) -> Any:
        finals = _mapping(infos).get("final_obs")
        successors = self._copy(obs)
        for row in np.flatnonzero(ended).tolist():
            if finals is None or finals[row] is None:
                raise SchemaError(f"final_obs: missing in the infos for environment {row}, whose episode just ended")
            if _overwritten(self.env, row, finals[row]):
                raise SchemaError(
                    f"final_obs: environment {row} writes every observation into one array, and its reset has "
                    "overwritten the final one; return copies from the environment, or use the autoreset mode NEXT_STEP"
                )
            _put(self._obs_space, successors, row, finals[row])
        return successors

    def _extend_rows(self, rows: NDArray[np.int64], before: Any, outcome: tuple[Any, ...]) -> None:
        def take(values: Any) -> Any:
            return np.asarray(values)[rows]

        actions, reward, obs, terminated, truncated, infos = outcome
        self.replay.extend(
            _map(self._obs_space, take, before),
            _map(self._act_space, take, actions),
            take(reward),
            _map(self._obs_space, take, obs),
            take(terminated),
            take(truncated),
            rows,
            **self._extras.vector(infos, rows),
        )


class _Extras:
    """Picks the declared extras out of infos; copies nothing itself, since the replay does."""

    def __init__(self, replay: Replay, defaults: Mapping[str, Any] | None, num_envs: int = 1) -> None:
        self.names = tuple(replay.schema.extras)
        self._defaults = dict(defaults or {})
        self._num_envs = num_envs
        unknown = sorted(self._defaults.keys() - set(self.names))
        if unknown:
            raise SchemaError(f"defaults: {unknown} are not extras of the schema, which declares {list(self.names)}")

    def single(self, info: Mapping[str, Any]) -> dict[str, Any]:
        return {name: info[name] if name in info else self._default(name, None) for name in self.names}

    def vector(
        self, infos: Any, rows: NDArray[np.int64] | None = None, ended: NDArray[np.bool_] | None = None
    ) -> dict[str, Any]:
        """Give an array with one item a row; where `ended` is set, from the `final_info` of the sub-environment."""
        return {name: self._column(name, _mapping(infos), rows, ended) for name in self.names}

    def _column(
        self, name: str, infos: Mapping[str, Any], rows: NDArray[np.int64] | None, ended: NDArray[np.bool_] | None
    ) -> Any:
        values, mask = infos.get(name), infos.get(f"_{name}")
        if ended is None and isinstance(values, np.ndarray) and values.dtype != object:
            picked = values if rows is None else values[rows]
            if mask is None or (mask if rows is None else mask[rows]).all():
                return picked
        finals = infos.get("final_info", {})
        indices = range(self._num_envs) if rows is None else rows.tolist()
        items = [self._item(name, finals if ended is not None and ended[i] else infos, i) for i in indices]
        try:
            return np.array(items)
        except ValueError as error:
            raise SchemaError(f"{name}: its values differ in shape between the environments {list(indices)}") from error

    def _item(self, name: str, infos: Mapping[str, Any], index: int) -> Any:
        mask = infos.get(f"_{name}")
        if name in infos and (mask is None or mask[index]):
            return infos[name][index]
        return self._default(name, index)

    def _default(self, name: str, index: int | None) -> Any:
        if name in self._defaults:
            return self._defaults[name]
        where = "info" if index is None else f"the infos for environment {index}"
        raise SchemaError(
            f"{name}: declared as an extra but missing in {where}; set the key at every step, "
            f"or pass defaults={{{name!r}: ...}} to Recorder"
        )


def _mapping(infos: Any) -> Mapping[str, Any]:
    if isinstance(infos, Mapping):
        return infos
    raise SchemaError(f"infos: expected a dict of arrays, got {type(infos).__name__}; wrap DictInfoToList outside")


def _map(space: Any, function: Callable[[Any], Any], value: Any) -> Any:
    """Apply a function to each leaf of a value; keys come from the value, so that the replay can name a wrong one."""
    if isinstance(space, spaces.Dict):
        return {key: _map(space.spaces.get(key), function, part) for key, part in value.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_map(part, function, item) for part, item in zip(space.spaces, value, strict=True))
    return function(value)


def _copier(space: Any) -> Callable[[Any], Any]:
    """Give the function that copies an observation: environments write the next one into the same array."""
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        return lambda value: _map(space, np.array, value)
    return np.array


def _put(space: Any, batch: Any, row: int, value: Any) -> None:
    """Write one observation into a row of a batch, without the broadcast or the lossy cast that NumPy would do."""
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            _put(part, batch[key], row, value[key])
    elif isinstance(space, spaces.Tuple):
        for part, target, item in zip(space.spaces, batch, value, strict=True):
            _put(part, target, row, item)
    else:
        final = np.asarray(value)
        if final.shape != batch.shape[1:] or not np.can_cast(final.dtype, batch.dtype, "same_kind"):
            raise SchemaError(
                f"final_obs: expected shape {batch.shape[1:]} and dtype {batch.dtype} for environment {row}, "
                f"got {final.shape} and {final.dtype}"
            )
        batch[row] = final


def _overwritten(env: Vector, row: int, final: Any) -> bool:
    """Tell whether a final observation lies in the array of the observation after the reset.

    SyncVectorEnv hands over the environment's own array, and only after the reset.
    """
    kept = getattr(env.unwrapped, "_env_obs", None)
    if kept is None:
        return False
    resets = dict(tree.leaves(kept[row], ""))
    return any(name in resets and np.shares_memory(resets[name], value) for name, value in tree.leaves(final, ""))


def _agree(name: str, declared: Any, space: Any) -> None:
    """Refuse a space whose keys or shapes are not those of the schema; dtypes are checked at each add."""
    expected = dict(tree.leaves(declared, name))
    given = dict(tree.leaves(fields(space, name, keep_float64=True), name))
    if expected.keys() != given.keys():
        raise SchemaError(f"{name}: the schema has {', '.join(expected)} and the environment {', '.join(given)}")
    for leaf, field in expected.items():
        if given[leaf].shape not in (field.shape, field.presented):
            raise SchemaError(f"{leaf}: the schema has {field} and the environment shape {given[leaf].shape}")


def _stream(replay: Replay, stream: int | None) -> int:
    if stream is None and replay.streams > 1:
        raise SchemaError(f"the replay has {replay.streams} streams and this is one environment: pass stream=")
    if not 0 <= (stream or 0) < replay.streams:
        raise SchemaError(f"stream: expected one of 0 to {replay.streams - 1}, got {stream}")
    return stream or 0


def _mode(env: Vector, given: AutoresetMode | str | None) -> AutoresetMode:
    mode = env.metadata.get("autoreset_mode") if given is None else given
    try:
        return AutoresetMode(mode)
    except ValueError:
        known = [each.value for each in AutoresetMode]
        source = "metadata of the environment say" if given is None else "argument is"
        raise SchemaError(f"autoreset_mode: expected one of {known}; the {source} {mode!r}") from None


def _autoreset(env: Single) -> Autoreset | None:
    """Find the wrapper that resets by itself, if there is one."""
    inner = env
    while isinstance(inner, gymnasium.Wrapper):
        if isinstance(inner, Autoreset):
            return inner
        inner = inner.env
    return None


def _resets_twice(env: Vector) -> bool:
    """Tell whether a reset leaves ended sub-environments due for another one.

    An AsyncVectorEnv without shared memory forgets, in its workers, to drop the pending autoreset when the user resets:
    the next step resets once more. That row is no transition either (seen in Gymnasium 1.1 to 1.4).
    """
    base = env.unwrapped
    return isinstance(base, AsyncVectorEnv) and not base.shared_memory
