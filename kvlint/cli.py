"""The command `kvlint`: finds the command asked for, and turns every failure into one line.

Commands live one in a file in `kvlint.commands`.
"""

import gc
import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click

import kvlint.commands
from kvlint import __version__
from kvlint.commands._group import Commands
from kvlint.commands._stderr import complain, complain_of
from kvlint.engine.errors import InternalError, UsageError, one_line

# Exit codes as Ruff has them; 0 and 1 belong to `check`.
FAILED = 2
INTERRUPTED = 130

# What click raises to show help where nothing is asked for; before 8.2 it shows it by itself.
_HELP_INSTEAD = getattr(click.exceptions, "NoArgsIsHelpError", ())


@click.command(
    cls=Commands,
    package=kvlint.commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes of check: 0 nothing found, 1 findings, 2 wrong usage or an internal error.",
)
@click.version_option(__version__, "-V", "--version", message="kvlint %(version)s")
def app() -> None:
    """Find the assumptions that KV-cache transfer code makes about buffer geometry."""


def main() -> NoReturn:
    """The command as a process of its own.

    It lives for one run: what it has built is neither searched for garbage nor taken apart at
    the end, which would take a quarter of a second.
    """
    gc.disable()
    try:
        run()
    except SystemExit as ended:
        code = ended.code
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code if isinstance(code, int) else FAILED)


def run() -> NoReturn:
    """Run the command line and raise SystemExit. Never a traceback, unless KVLINT_DEBUG is set."""
    # Closed streams are none. On one that is only for reading, writing fails as it should.
    sys.stdout = sys.stdout or Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Checked files may have any name and hold any text; the terminal's encoding may not.
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_run())


def _in_our_style(error: click.ClickException) -> str:
    """A message of click's as one line that goes on after `kvlint: `."""
    text = " ".join(error.format_message().split()).removesuffix(".")
    ctx = getattr(error, "ctx", None)
    where = f"; see `{ctx.command_path} --help`" if isinstance(ctx, click.Context) else ""
    return f"{text[:1].lower()}{text[1:]}{where}"


def _run() -> int:
    try:
        code = app.main(prog_name="kvlint", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except _HELP_INSTEAD as error:
        error.show()
        return FAILED
    except click.ClickException as error:
        complain(_in_our_style(error))
        return FAILED
    except UsageError as error:
        complain(str(error))
        return FAILED
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`| head`); nothing more can be said, so say it nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except InternalError as failure:
        complain_of(failure.__cause__ or failure, str(failure))
        return FAILED
    except Exception as error:
        complain_of(error, f"internal error: {one_line(error)}")
        return FAILED
