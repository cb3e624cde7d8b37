"""The records that a file of evidence holds, line by line.

The file may be that of a run that goes on, of a process that was killed within a line, or of
somebody else's: what is no record of its kind is counted and named.
"""

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

SCHEMA: Final = 1
LONGEST: Final = 4 << 20
# By these records are told apart and put together.
NAMING: Final = ("run", "pid", "number", "repeat_of", "agent", "peer", "transfer", "id", "kind")
# Of these keys a record has one, or it is none of its kind.
KINDS: Final = {
    "violations": ("check", "repeat_of"),
    "transfers": ("kind",),
    "stages": ("kind",),
    "calls": ("kind",),
    "armed": ("status",),
}

Record = Mapping[str, Any]


def records_in(path: Path, kind: str) -> tuple[list[Record], str]:
    """The records of a file, and what is wrong with it, in one line, or ""."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(file, "rb") as opened:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                return [], f"{path.name}: not a file"
            return _of_lines(path.name, opened, kind)
    except OSError as error:
        return [], f"{path.name}: {'a link' if path.is_symlink() else error.strerror}"


def _of_lines(name: str, file: BinaryIO, kind: str) -> tuple[list[Record], str]:
    records: list[Record] = []
    bad: list[int] = []
    number, last = 0, b"\n"
    while line := file.readline(LONGEST):
        begins, last = last.endswith(b"\n"), line
        if not begins:
            continue
        number += 1
        record = record_of(line, kind) if line.endswith(b"\n") else None
        if record is None:
            bad.append(number)
        else:
            records.append(record)
    if bad == [number] and not last.endswith(b"\n"):
        return records, f"{name}: the last line breaks off"
    if not bad:
        return records, ""
    lines = "1 line is" if len(bad) == 1 else f"{len(bad)} lines are"
    return records, f"{name}: {lines} not evidence of this version (first at line {bad[0]})"


def record_of(line: bytes, kind: str) -> Record | None:
    """The object that a line holds, if it may be one of ours and of that kind."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.get("schema", SCHEMA) != SCHEMA:
        return None
    named = all(isinstance(record.get(name), str | int | None) for name in NAMING)
    return record if named and not record.keys().isdisjoint(KINDS[kind]) else None
