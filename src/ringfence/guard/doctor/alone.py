"""The environment by itself: stepped in a forked child, where nothing else can grow."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import threading
import time
from typing import Any

from ringfence.guard.doctor import reading
from ringfence.guard.doctor.evidence import Alone

SECONDS = 1.5
PATIENCE = 2.0  # seconds more, after which the child is killed
MOST = 20_000


def alone(environments: list[Any]) -> Alone | None:
    """Step the outermost of these environments in a child, at random; None where that is not possible.

    The child has this thread alone, and its own copy of the environment: nothing that it does is seen here. A
    simulation that needs threads or a device of the parent hangs in it, and is given up.
    """
    chosen = next((each for each in environments if _single(each)), None)
    if chosen is None or not hasattr(os, "fork"):
        return None
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        _step(chosen, writer)
    os.close(writer)
    try:
        ready, _, _ = select.select([reader], [], [], SECONDS + PATIENCE)
        told = os.read(reader, 4096) if ready else b""
    finally:
        os.close(reader)
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(pid, 0)
    if not told:
        return None
    steps, growth, late = json.loads(told)
    return Alone(type(chosen).__name__, steps, growth, late)


def _single(environment: Any) -> bool:
    return not hasattr(environment, "num_envs") and hasattr(environment.action_space, "sample")


def _step(environment: Any, writer: int) -> None:
    """Step until the time is over, tell the growth through the pipe, and end the process whatever happens."""
    try:
        threading.current_thread().name = "alone"
        environment.reset()
        _turn(environment, 200, time.monotonic() + SECONDS / 5)
        reading.trim()
        began = sum(reading.split()[:1])
        end = time.monotonic() + SECONDS
        steps = _turn(environment, MOST, time.monotonic() + SECONDS / 2)
        middle = reading.split()[0]
        steps += _turn(environment, steps, end)
        os.write(writer, json.dumps([steps, reading.split()[0] - began, reading.split()[0] - middle]).encode())
    finally:
        os._exit(0)


def _turn(environment: Any, most: int, end: float) -> int:
    steps = 0
    while steps < most and time.monotonic() < end:
        result = environment.step(environment.action_space.sample())
        steps += 1
        if any(bool(flag) for flag in result[2:-1]):
            environment.reset()
    return steps
