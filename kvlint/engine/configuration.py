"""One configuration file: `kvlint.toml`, or `[tool.kvlint]` in a pyproject.toml.

Whatever is wrong with one is a UsageError of one line, with the file and, where it can be told,
the line.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kvlint.analysis.vocabulary.own import KINDS, Own, key
from kvlint.engine.errors import UsageError
from kvlint.engine.globs import Globs
from kvlint.engine.sizes import parse_size
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
    return _Reader(file, (folder or file.parent).as_posix()).configuration(table)


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


_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def _toml(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        at = _AT.search(said)
        line = at[1] if at and at[1] else str(text.rstrip().count("\n") + 1)
        raise UsageError(f"{shown(file)}:{line}: invalid TOML: {_AT.sub('', said)}") from None
    except RecursionError:
        raise UsageError(f"{shown(file)}: invalid TOML: nested too deeply") from None


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns the table of one file into a configuration; each method takes one kind of value."""

    file: Path
    folder: str

    def configuration(self, table: Any) -> Configuration:
        table = self._table(table, TABLE)
        known: dict[str, Callable[[Any, str], Any]] = {
            "select": self._strings,
            "ignore": self._strings,
            "per-file-ignores": self._file_ignores,
            "exclude": self._exclude,
            "min-confidence": self._confidence,
            "max-file-size": self._size,
            "baseline": self._path,
            "vocabulary": self._own,
        }
        if self.file.name != SHARED_FILE and "tool" in table:
            raise self.wrong("tool", f"keys stand at the top of this file, without {TABLE}")
        self._only(table, known)
        values = {name: known[name](value, name) for name, value in table.items()}
        names = {"per-file-ignores": "file_ignores"}
        return Configuration(
            source=self.file,
            **{names.get(name, name.replace("-", "_")): value for name, value in values.items()},
        )

    def wrong(self, word: str, message: str) -> UsageError:
        return wrong(self.file, word, message)

    def _only(self, table: Mapping[str, Any], known: Iterable[str], within: str = "") -> None:
        for name in table:
            if name not in known:
                close = difflib.get_close_matches(name.replace("_", "-"), list(known), n=1)
                instead = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
                raise self.wrong(name, f"unknown key {name!r}{within}; {instead}")

    def _table(self, value: Any, name: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(name.strip("[]"), f"{name} must be a table, not {_kind(value)}")
        return value

    def _string(self, value: Any, name: str) -> str:
        if not isinstance(value, str):
            raise self.wrong(name, f"{name} must be a string, not {_kind(value)}")
        return value

    def _strings(self, value: Any, name: str) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise self.wrong(name, f"{name} must be a list of strings, not {_kind(value)}")
        for one in value:
            if not isinstance(one, str):
                raise self.wrong(name, f"{name} must hold strings, not {_kind(one)}")
        return tuple(value)

    def _globs(self, patterns: tuple[str, ...], name: str) -> Globs:
        try:
            return Globs.of(patterns, self.folder)
        except ValueError as error:
            raise self.wrong(name, f"{name}: {error}") from None

    def _exclude(self, value: Any, name: str) -> Globs:
        patterns = self._strings(value, name)
        for pattern in patterns:
            if pattern.startswith("!"):
                raise self.wrong(
                    name, f"{name}: {pattern!r} takes nothing back, ! has no meaning here"
                )
        return self._globs(patterns, name)

    def _file_ignores(self, value: Any, name: str) -> tuple[FileIgnore, ...]:
        return tuple(
            FileIgnore(
                self._globs((pattern.removeprefix("!"),), name),
                self._strings(codes, pattern),
                inverted=pattern.startswith("!"),
            )
            for pattern, codes in self._table(value, name).items()
        )

    def _confidence(self, value: Any, name: str) -> Confidence:
        levels = [str(level) for level in Confidence]
        if value not in levels:
            raise self.wrong(name, f"{name} must be one of {', '.join(levels)}, not {value!r}")
        return Confidence(value)

    def _size(self, value: Any, name: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int | str):
            wanted = "a number of bytes or a string such as '1MiB'"
            raise self.wrong(name, f"{name} must be {wanted}, not {_kind(value)}")
        try:
            return parse_size(str(value))
        except ValueError as error:
            raise self.wrong(name, f"{name}: {error}") from None

    def _path(self, value: Any, name: str) -> Path:
        if not self._string(value, name):
            raise self.wrong(name, f"{name} names no file")
        return Path(self.folder, value)

    def _own(self, value: Any, name: str) -> Own:
        table = self._table(value, name)
        kinds = {key(kind): kind for kind in (*KINDS, "triggers")}
        self._only(table, kinds, f" in {name}")
        names = {kinds[kind]: self._strings(value, kind) for kind, value in table.items()}
        try:
            return Own(**names)
        except ValueError as error:
            raise self.wrong(name, f"{name}: {error}") from None


def _kind(value: Any) -> str:
    kinds = {bool: "a truth value", int: "a number", float: "a number", str: "a string"}
    kinds |= {list: "a list", dict: "a table"}
    return kinds.get(type(value), "a date or time")
