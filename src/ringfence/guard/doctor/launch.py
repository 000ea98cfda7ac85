"""Run a script or a module as Python would, with a probe beside it.

Started by `ringfence doctor` as `python -c ... ORDER -- script.py arguments`; it is no entry for people.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import signal
import sys
import threading
import types
from pathlib import Path
from typing import Any

from ringfence.guard.doctor.probe import Order, Probe

GRACE = 3.0  # seconds that the script has to end after it was interrupted


def main(arguments: list[str]) -> int:
    """Run what is asked for; the process ends here, whatever the script does."""
    order = json.loads(arguments[0])
    target = arguments[1:]
    probe = Probe(
        Order(Path(order["out"]), order["seconds"], order["steps"], order["deep"], order["limit"], tuple(target))
    )
    thread = threading.Thread(target=probe.run, args=(interrupt,), name="ringfence doctor", daemon=True)
    thread.start()
    ended = "finished"
    try:
        run(target)
    except SystemExit as leave:
        ended = "finished" if leave.code in (None, 0) else f"ended with {leave.code}"
    except KeyboardInterrupt:
        ended = "interrupted"
    except BaseException as error:  # noqa: BLE001  # whatever the script does, the evidence is written
        ended = f"{type(error).__name__}: {error}"
        sys.excepthook(type(error), error, error.__traceback__)
    probe.conclude(ended)
    probe.done.wait(GRACE)
    _leave()
    return 0


def run(target: list[str]) -> None:
    """Run a script, `-m module` or `-c code` as the main module."""
    if target[0] == "-m":
        sys.argv = target[1:]
        runpy.run_module(target[1], run_name="__main__", alter_sys=True)
        return
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    if target[0] == "-c":
        sys.argv = ["-c", *target[2:]]
        sys.path[0] = ""
        exec(compile(target[1], "<string>", "exec"), vars(module))  # noqa: S102  # it is what the user asked to run
        return
    path = Path(target[0])
    sys.argv = list(target)
    sys.path[0] = str(path.resolve().parent)
    module.__file__ = str(path.resolve())
    exec(compile(path.read_bytes(), str(path.resolve()), "exec"), vars(module))  # noqa: S102  # the same


def interrupt() -> None:
    """End the script as Ctrl-C would; a little later, whatever it does."""
    threading.Timer(GRACE, _leave).start()
    with contextlib.suppress(OSError):
        os.kill(os.getpid(), signal.SIGINT)


def _leave() -> Any:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
