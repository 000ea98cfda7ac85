"""The command line: one file a command, each a thin shell around what the library does.

Every command ends with 0 (yes), 1 (no) or 2 (the question made no sense), and says what is wrong in one line.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from ringfence.cli import doctor, inspect, plan, soak
from ringfence.cli.refusal import Refusal
from ringfence.version import VERSION

__all__ = ["app", "main"]

app = typer.Typer(
    help="Replay memory that never outgrows the memory you gave it.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command("doctor", epilog=doctor.EXAMPLES)(doctor.command)
app.command("inspect", epilog=inspect.EXAMPLES)(inspect.command)
app.command("plan", epilog=plan.EXAMPLES)(plan.command)
app.command("soak", epilog=soak.EXAMPLES)(soak.command)
# typer has its own copy of click since 0.27 and uses click itself before: this one class is reachable in both
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
STOPPED = 130  # what a shell says of a program that Ctrl-C ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; give the exit code.

    Args:
        arguments: What follows the program's name; what the process was started with unless given.
    """
    given = None if arguments is None else list(arguments)
    try:
        code = typer.main.get_command(app).main(given, prog_name="ringfence", standalone_mode=False)
    except Refusal as refusal:
        return _refuse(str(refusal), refusal.code)
    except UsageError as error:
        return _refuse_usage(error)
    except OSError as error:  # a full disk, no memory to map
        return _refuse(error.strerror or str(error), 1)
    except (KeyboardInterrupt, typer.Abort):
        return _refuse("stopped", STOPPED)
    return code if isinstance(code, int) else 0


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"ringfence {VERSION}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version and stop.")
]


@app.callback()
def _about(*, version: Version = False) -> None:
    """Take what is asked of the program rather than of a command."""


def _refuse(text: str, code: int) -> int:
    line = " ".join(text.split())
    sys.stderr.write(f"ringfence: {line}\n")
    return code


def _refuse_usage(error: Exception) -> int:
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "ringfence"
    return _refuse(f"{message.rstrip('.')}; {command} --help shows how it is used", 2)
