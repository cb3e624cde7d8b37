"""What governs a run: the options that choose configuration files, or are stronger than them."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from kvlint.engine.configuration import TABLE, Configuration, read
from kvlint.engine.errors import UsageError
from kvlint.engine.globs import Globs
from kvlint.engine.settings import Configured, Overrides
from kvlint.engine.sizes import parse_size
from kvlint.findings import Confidence
from kvlint.rule import Rule

_Command = TypeVar("_Command", bound=Callable[..., Any])


def options(command: _Command) -> _Command:
    """The options that speak of files and of configuration."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--exclude",
        "excluded",
        multiple=True,
        metavar="PATTERNS",
        help="Files and folders to leave out, too, as .gitignore writes them. A file that is "
        "given by name is read all the same.",
    ),
    click.option(
        "--force-exclude",
        is_flag=True,
        help="Leave out what is excluded even where it is given by name, as hooks give it.",
    ),
    click.option(
        "--max-file-size",
        metavar="SIZE",
        help="Skip larger files: bytes, or like 512kB or 1MiB (the default).",
    ),
    click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Use this configuration for all files, whatever lies beside them.",
    ),
    click.option("--isolated", is_flag=True, help="Use no configuration file."),
    click.option(
        "--stdin-filename",
        "stdin_name",
        type=click.Path(path_type=Path),
        metavar="NAME",
        help="Read the code of NAME, and report on it alone, from standard input.",
    ),
)


def configured(
    rules: Sequence[Rule],
    *,
    chosen: Sequence[str],
    ignored: Sequence[str],
    min_confidence: str | None,
    excluded: Sequence[str] = (),
    force_exclude: bool = False,
    max_file_size: str | None = None,
    config: Path | None = None,
    isolated: bool = False,
) -> Configured:
    """The settings that options and files come to. Raises UsageError."""
    here = Path.cwd().resolve()
    overrides = Overrides(
        select=tuple(items(chosen)) if chosen else None,
        ignore=tuple(items(ignored)),
        exclude=_patterns(items(excluded), here) if excluded else None,
        min_confidence=None if min_confidence is None else Confidence(min_confidence),
        max_file_size=None if max_file_size is None else _size(max_file_size),
        force_exclude=force_exclude,
    )
    return Configured(rules, overrides, _fixed(config, isolated, here))


def _fixed(config: Path | None, isolated: bool, here: Path) -> Configuration | None:
    if isolated:
        if config is not None:
            raise UsageError("--config gives a configuration, --isolated takes none: use one")
        return Configuration()
    if config is None:
        return None
    if not config.is_file():
        raise UsageError(f"no such file: {config}")
    found = read(config, here)
    if found is None:
        raise UsageError(f"{config} has no {TABLE}")
    return found


# A comma between braces belongs to the pattern.
_COMMA = r",(?![^{}]*\})"


def items(lists: Sequence[str]) -> list[str]:
    """What comma separated lists hold."""
    return [one.strip() for text in lists for one in re.split(_COMMA, text) if one.strip()]


def _patterns(patterns: Sequence[str], folder: Path) -> Globs:
    try:
        return Globs.of(patterns, folder.as_posix())
    except ValueError as error:
        raise UsageError(f"--exclude: {error}") from None


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise UsageError(f"--max-file-size: {error}") from None
