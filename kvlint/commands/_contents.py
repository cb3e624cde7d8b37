"""What others have written, out of files of which nothing is known but their names."""

import os
import stat
import sys
from pathlib import Path
from typing import Final

from kvlint.engine.errors import UsageError

# Larger than what a process captures of itself, or what a whole engine assumes: more would be
# somebody else's file.
LARGEST: Final = 64 << 20


def contents(path: Path, what: str) -> bytes:
    """All bytes of a file, or with - of standard input, of at most 64 MiB. Raises UsageError, one
    line.

    what  that it should be, with its article: "a geometry"
    """
    if str(path) == "-":
        if sys.stdin is None:
            raise UsageError("standard input is closed")
        try:
            given = sys.stdin.buffer.read(LARGEST + 1)
        except OSError as error:
            raise UsageError(f"cannot read standard input: {error.strerror}") from None
        if len(given) > LARGEST:
            raise UsageError(f"-: more than {LARGEST:,} bytes are too many for {what}")
        return given
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(file, "rb") as opened:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise UsageError(f"{path} is no file")
            if status.st_size > LARGEST:
                raise UsageError(f"{path}: {status.st_size:,} bytes are too many for {what}")
            # It may grow while it is read.
            return opened.read(LARGEST)
    except FileNotFoundError:
        raise UsageError(f"no such file: {path}") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
