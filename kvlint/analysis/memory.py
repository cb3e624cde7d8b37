"""What an analysis can be told that an earlier one has found out, and tells the next one.

All of it depends on one file alone: contents by content, bodies by the text of the definition
and by what the names in it can mean. `NOTHING` remembers nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from kvlint.analysis.bodies import Body
from kvlint.analysis.outline import ClassOutline, Definition, Outline


@dataclass(frozen=True, slots=True)
class Contents:
    """An outline without its text."""

    definitions: dict[str, Definition]
    classes: dict[str, ClassOutline]
    imports: dict[str, str]

    def of(self, path: str, texts: Mapping[str, str]) -> Outline:
        return Outline(path, lambda: texts[path], self.definitions, self.classes, self.imports)


@dataclass(frozen=True, slots=True)
class Listed:
    """Last names that a file's text seems to define, and its (class, bases as written)."""

    defined: tuple[str, ...]
    derived: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Search:
    """Where a word was found: for each file, in order, the keys of the definitions around it.

    `whole`: all files were looked into, not only as many as it took to find too many places.
    `doubtful`: files that have changed since, to be looked into again.
    """

    found: dict[str, tuple[str, ...]]
    whole: bool
    doubtful: frozenset[str] = frozenset()

    def without(self, changed: frozenset[str]) -> "Search | None":
        """What is left when these files have changed; None where that is no help."""
        if not self.whole:
            return None
        rest = {path: keys for path, keys in self.found.items() if path not in changed}
        return Search(rest, True, self.doubtful | changed)


class Memory(Protocol):
    def contents(self, path: str) -> Contents | None: ...
    def keep_contents(self, outline: Outline) -> None: ...
    def body(self, outline: Outline, definition: Definition) -> Body | None: ...
    def keep_body(self, outline: Outline, body: Body) -> None: ...
    def listed(self, path: str) -> Listed | None: ...
    def keep_listed(self, path: str, listed: Listed) -> None: ...
    def search(self, how: str, word: str) -> Search | None: ...
    def keep_search(self, how: str, word: str, search: Search) -> None: ...


class Nothing:
    """The memory of who starts anew each time."""

    def contents(self, path: str) -> Contents | None:
        return None

    def keep_contents(self, outline: Outline) -> None:
        pass

    def body(self, outline: Outline, definition: Definition) -> Body | None:
        return None

    def keep_body(self, outline: Outline, body: Body) -> None:
        pass

    def listed(self, path: str) -> Listed | None:
        return None

    def keep_listed(self, path: str, listed: Listed) -> None:
        pass

    def search(self, how: str, word: str) -> Search | None:
        return None

    def keep_search(self, how: str, word: str, search: Search) -> None:
        pass
