"""Code on standard input, as editors hand over what is not saved yet."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kvlint.engine.errors import UsageError

STDIN = Path("-")
# A name that no import leads to, for code without one.
NAMELESS = Path("<stdin>")


@dataclass(frozen=True, slots=True)
class Held:
    """What standard input holds, and the file, which may not exist, that it is the text of."""

    path: Path
    data: bytes

    @property
    def folder(self) -> Path:
        """The nearest folder at or above the file that exists."""
        return next(folder for folder in self.path.absolute().parents if _is_folder(folder))


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 (a name too long for a file is no error here)


def held(
    paths: Sequence[Path], name: Path | None, refused: Sequence[tuple[str, bool]]
) -> Held | None:
    """None unless `-` or a name for standard input is given. `refused` says which options are
    given that look at what is on disk. Raises UsageError."""
    if STDIN not in paths and name is None:
        return None
    if set(paths) - {STDIN}:
        other = next(path for path in paths if path != STDIN)
        raise UsageError(f"standard input is checked alone, not together with {other}")
    for option, given in refused:
        if given:
            raise UsageError(f"{option} looks at files, standard input is none")
    path = NAMELESS if name is None else name
    if _is_folder(path):
        raise UsageError(f"--stdin-filename is a folder: {path}")
    if sys.stdin is None:
        raise UsageError("standard input is closed")
    try:
        return Held(path, sys.stdin.buffer.read())
    except OSError as error:
        raise UsageError(f"cannot read standard input: {error.strerror}") from None
