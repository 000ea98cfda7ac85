"""Environments by name, and why one cannot be made, in a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.cli.refusal import Refusal

if TYPE_CHECKING:
    import gymnasium

EXTRAS = ("mujoco", "atari")  # of this package, each named like what an environment misses


def make(name: str) -> gymnasium.Env[Any, Any]:
    """Make one environment; ``module:name`` imports the module first.

    Raises:
        Refusal: There is none of that name, or it cannot be made; the text says what to install where that is why.
    """
    import gymnasium  # a second; a plan for --obs does without

    return _made(name, lambda: gymnasium.make(name, disable_env_checker=True))


def make_vector(name: str, count: int) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    """Make ``count`` environments side by side in this process, as :func:`make` does one."""
    import gymnasium

    return _made(name, lambda: gymnasium.make_vec(name, num_envs=count, vectorization_mode="sync"))


def _made(name: str, build: Any) -> Any:
    try:
        if name.startswith("ALE/"):
            _register_atari()
        return build()
    except Exception as error:  # an environment is anyone's code and may raise anything
        raise Refusal(f"{name}: {_reason(error)}{_advice(error)}") from error


def _register_atari() -> None:
    import ale_py
    import gymnasium

    gymnasium.register_envs(ale_py)


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _advice(error: Exception) -> str:
    text = str(error).lower().replace("ale_py", "atari")
    missing = [extra for extra in EXTRAS if extra in text and isinstance(error, ImportError | _not_installed())]
    return f"; pip install 'ringfence[{missing[0]}]'" if missing else ""


def _not_installed() -> type[Exception]:
    from gymnasium.error import DependencyNotInstalled

    return DependencyNotInstalled
