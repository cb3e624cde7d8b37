"""What goes to standard error: one line a complaint."""

import os
import traceback
from contextlib import suppress

import click


def say(line: str) -> None:
    """Where nobody can be told, the exit code still says what it has to."""
    with suppress(OSError):
        click.echo(line, err=True)


def complain(message: str) -> None:
    say(f"kvlint: {message}")


def complain_of(error: BaseException, message: str) -> None:
    """An error that is kvlint's own: with KVLINT_DEBUG in the environment, say where."""
    if os.environ.get("KVLINT_DEBUG"):
        say("".join(traceback.format_exception(error)).rstrip())
        complain(message)
    else:
        complain(f"{message} (KVLINT_DEBUG=1 shows where)")
