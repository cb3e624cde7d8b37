"""The geometry that a run's processes have left beside their evidence."""

import os
import stat
from pathlib import Path
from typing import Final

from kvlint.geometry import Geometry, GeometryError
from kvlint.runtime_checks.called import Process
from kvlint.runtime_checks.capture import MOST

_PREFIX: Final = "geometry-"
_SUFFIX: Final = ".json"
# Of a folder with more files the first are read.
MOST_FILES: Final = 1024


def read_geometries(folder: Path, run: str = "") -> tuple[dict[str, Geometry], list[str]]:
    """By their labels, `RUN-PID-AGENT`; and one line a file that is none. Raises OSError where
    the folder cannot be read."""
    found: dict[str, Geometry] = {}
    unread: list[str] = []
    paths = sorted(folder.glob(f"{_PREFIX}{run or '*'}-*-*{_SUFFIX}"))
    for path in paths[:MOST_FILES]:
        try:
            found[path.name.removeprefix(_PREFIX).removesuffix(_SUFFIX)] = _read(path)
        except OSError as error:
            reason = "a link" if path.is_symlink() else error.strerror
            unread.append(f"{path.name}: {reason}")
        except GeometryError as error:
            unread.append(f"{path.name}: {error}")
    if len(paths) > MOST_FILES:
        unread.append(f"{len(paths) - MOST_FILES} more files of geometry are not read")
    return found, unread


def _read(path: Path) -> Geometry:
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise GeometryError("not a file")
        content = opened.read(MOST + 1)
    if len(content) > MOST:
        raise GeometryError(f"larger than {MOST} bytes")
    return Geometry.from_json(content)


def process_of(label: str) -> Process:
    """Run and process id, as in `Called.process`."""
    run, _, rest = label.partition("-")
    pid = rest.partition("-")[0]
    return run, int(pid) if pid.isascii() and pid.isdecimal() and len(pid) < 20 else None


def spoken(label: str) -> str:
    """`prefill of process 7`."""
    _, _, rest = label.partition("-")
    pid, _, agent = rest.partition("-")
    return f"{agent} of process {pid}" if agent else label
