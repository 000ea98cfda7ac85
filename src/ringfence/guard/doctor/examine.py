"""Run a script under the doctor's eyes, from outside: start it, wait for the evidence, clear up."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ringfence.guard.doctor.evidence import Evidence

GRACE = 15.0  # seconds beyond the watch itself for the last look and what follows it
START = 600.0  # seconds that imports and set-up may take before the first step
STDERR = 2
VALUED = ("-W", "-X", "--check-hash-based-pycs")
"""Options of the interpreter that are followed by a value."""
# The interpreter that runs the script may be of another environment, without this package: then it is loaded from here.
BOOT = """
import importlib.util, sys
folder = sys.argv.pop(1)
if importlib.util.find_spec("ringfence") is None:
    spec = importlib.util.spec_from_file_location(
        "ringfence", folder + "/__init__.py", submodule_search_locations=[folder]
    )
    module = sys.modules["ringfence"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
from ringfence.guard.doctor.launch import main
main(sys.argv[1:])
"""


class NotPython(ValueError):
    """Tell that a command does not run a Python script or module, so that there is nothing to look into."""


def examine(
    command: Sequence[str],
    *,
    seconds: float = 20.0,
    steps: int | None = None,
    deep: bool = False,
    limit: int | None = None,
    quiet: bool = False,
) -> Evidence:
    """Run a command for a while, with a probe in its process, and give what was seen.

    The command and all processes below it are gone when this returns. What it prints goes to standard error, so that a
    report is alone on standard output.

    Args:
        command: `python script.py arguments`, `script.py arguments`, or `python -m module arguments`.
        seconds: How long to watch, counted from the first step of its training.
        steps: Watch for so many steps, `seconds` being the most.
        deep: Trace allocations for longer and deeper.
        limit: Bytes to take for the limit in place of what the machine says.
        quiet: Throw its output away.

    Raises:
        NotPython: The command runs no Python script, or the script does not exist.
    """
    python, options, target = parted(command)
    with tempfile.TemporaryDirectory(prefix="ringfence-doctor-") as folder:
        out = Path(folder) / "evidence.json"
        order = {"out": str(out), "seconds": seconds, "steps": steps, "deep": deep, "limit": limit}
        package = str(Path(__file__).resolve().parents[2])
        process = subprocess.Popen(  # noqa: S603  # it is the user's command
            [python, *options, "-c", BOOT, package, json.dumps(order), *target],
            stdout=subprocess.DEVNULL if quiet else STDERR,
            stderr=subprocess.DEVNULL if quiet else None,
            start_new_session=True,
        )
        try:
            process.wait(START + seconds + GRACE)
        except subprocess.TimeoutExpired:
            pass
        except KeyboardInterrupt:  # to us; the script is in a session of its own
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
        finally:
            _clear(process)
        return Evidence.read(out) if out.exists() else Evidence(tuple(target), ended=f"died with {process.returncode}")


def parted(command: Sequence[str]) -> tuple[str, list[str], list[str]]:
    """Part a command into the interpreter, its options, and what it runs."""
    words = list(command)
    if words and (words[0].endswith(".py") or words[0] == "-m"):
        words.insert(0, sys.executable)
    if not words or not Path(words[0]).name.lower().startswith(("python", "pypy")):
        given = " ".join(words) or "nothing"
        raise NotPython(f"command: expected `python script.py` or `python -m module`, got {given}")
    python, rest = (sys.executable if words[0] in ("python", "python3") else words[0]), words[1:]
    options: list[str] = []
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c"):
        options.append(rest.pop(0))
        if options[-1] in VALUED and rest:
            options.append(rest.pop(0))
    if not rest or (rest[0] in ("-m", "-c") and len(rest) < 2):
        raise NotPython(f"command: expected a script or -m module after {words[0]}, got none")
    if rest[0] not in ("-m", "-c") and not Path(rest[0]).is_file():
        raise NotPython(f"{rest[0]}: there is no such script")
    return python, options, rest


def _clear(process: subprocess.Popen[bytes]) -> None:
    """End what is left of the script, and of the processes that it started."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
