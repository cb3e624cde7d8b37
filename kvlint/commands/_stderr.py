"""What goes to standard error: one line a complaint."""

import os
import traceback

import click


def complain(message: str) -> None:
    click.echo(f"kvlint: {message}", err=True)


def complain_of(error: BaseException, message: str) -> None:
    """An error that is kvlint's own: with KVLINT_DEBUG in the environment, say where."""
    if os.environ.get("KVLINT_DEBUG"):
        traceback.print_exception(error)
        complain(message)
    else:
        complain(f"{message} (KVLINT_DEBUG=1 shows where)")
