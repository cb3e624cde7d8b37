"""Captured geometry from files."""

import os
import stat
from pathlib import Path

from kvlint.engine.errors import UsageError
from kvlint.geometry import Geometry, GeometryError

# Larger than what a process captures of itself; more would be somebody else's file.
LARGEST = 64 << 20


def read_geometry(path: Path) -> Geometry:
    """Raises UsageError, one line, for what is no readable geometry of schema 1."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(file, "rb") as opened:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise UsageError(f"{path} is no file")
            if status.st_size > LARGEST:
                raise UsageError(f"{path}: {status.st_size:,} bytes are too many for a geometry")
            if not (content := opened.read()).strip():
                raise UsageError(f"{path}: the file is empty, not a kvlint geometry")
            return Geometry.from_json(content)
    except FileNotFoundError:
        raise UsageError(f"no such file: {path}") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except GeometryError as error:
        raise UsageError(f"{path}: {str(error).removeprefix('geometry: ')}") from None
