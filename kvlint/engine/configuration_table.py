"""The keys of a configuration file: what each may hold, and what is wrong with what it holds."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvlint.analysis.vocabulary.own import KINDS, Own, key
from kvlint.engine.configuration import SHARED_FILE, TABLE, Configuration, FileIgnore, wrong
from kvlint.engine.errors import UsageError
from kvlint.engine.globs import Globs
from kvlint.engine.sizes import parse_size
from kvlint.findings import Confidence


@dataclass(frozen=True, slots=True)
class Table:
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
                import difflib  # for mistakes only

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
            wanted = "a whole number of bytes or a string such as '1MiB'"
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
    kinds = {bool: "a truth value", int: "a number", float: "a fraction", str: "a string"}
    kinds |= {list: "a list", dict: "a table"}
    return kinds.get(type(value), "a date or time")
