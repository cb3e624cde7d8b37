"""One configuration file: `kvlint.toml`, or `[tool.kvlint]` in a pyproject.toml.

Whatever is wrong with one is a UsageError of one line, with the file and, where it can be told,
the line.
"""

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvlint.analysis.vocabulary.own import Own
from kvlint.engine.errors import UsageError
from kvlint.engine.globs import Globs
from kvlint.findings import Confidence

OWN_FILE, SHARED_FILE = "kvlint.toml", "pyproject.toml"
TABLE = "[tool.kvlint]"


@dataclass(frozen=True, slots=True)
class FileIgnore:
    """Codes that are not reported in the files that `files` covers, or, `inverted`, in others."""

    files: Globs
    codes: tuple[str, ...]
    inverted: bool = False

    def covers(self, path: str) -> bool:
        return self.files.cover(path) is not self.inverted


@dataclass(frozen=True, slots=True)
class Configuration:
    """What one file says; None where it says nothing. `source` is None without a file.

    `select` and `ignore` hold selectors that a command line could hold, not yet looked up;
    `max_file_size` is in bytes; `baseline` is absolute.
    """

    source: Path | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    file_ignores: tuple[FileIgnore, ...] = ()
    exclude: Globs | None = None
    min_confidence: Confidence | None = None
    max_file_size: int | None = None
    baseline: Path | None = None
    vocabulary: Own | None = None


def read(file: Path, folder: Path | None = None) -> Configuration | None:
    """What the file says, None for a pyproject.toml that does not speak of kvlint.

    Patterns and paths in it start at `folder`, which is the file's own unless given. Raises
    UsageError for a file that cannot be read or understood.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {shown(file)}: {error.strerror or error}") from None
    shared = file.name == SHARED_FILE
    if shared and b"kvlint" not in data:
        return None  # whatever else is in it, sound or broken, is not ours
    table: Any = _toml(file, _text(file, data))
    if shared:
        tool = table.get("tool")
        table = tool.get("kvlint") if isinstance(tool, dict) else None
        if table is None:
            return None

    from kvlint.engine.configuration_table import Table  # where there is one, which is seldom

    return Table(file, (folder or file.parent).as_posix()).configuration(table)


def wrong(file: Path, word: str, message: str) -> UsageError:
    """The error, with the line where `word` stands in our part of the file."""
    text = _text(file, file.read_bytes())
    start = max(text.find(TABLE[:-1]), 0) if file.name == SHARED_FILE else 0
    at = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])").search(text, start)
    line = f":{text.count(chr(10), 0, at.start()) + 1}" if at else ""
    return UsageError(f"{shown(file)}{line}: {message}")


def shown(file: Path) -> str:
    """The path as it reads from the working directory."""
    return os.path.relpath(file)


def _text(file: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{shown(file)}:{line}: not UTF-8") from None


_AT = r" \(at (?:line (\d+), column \d+|end of document)\)$"


def _toml(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        at = re.search(_AT, said)
        line = at[1] if at and at[1] else str(text.rstrip().count("\n") + 1)
        raise UsageError(f"{shown(file)}:{line}: invalid TOML: {re.sub(_AT, '', said)}") from None
    except RecursionError:
        raise UsageError(f"{shown(file)}: invalid TOML: nested too deeply") from None
