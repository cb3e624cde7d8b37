"""What is known of a project's files, and which of it a change makes doubtful. No disk in here."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kvlint.engine.discover import Stamp, stamp_on_disk
from kvlint.engine.syntax import Looked
from kvlint.engine.unit import Unit
from kvlint.tree import Tree, decode

if TYPE_CHECKING:
    from kvlint.analysis.memory import Listed, Search

_NAME = re.compile(r"\w+")


@dataclass(slots=True)
class Known:
    """A file: how it looked, what it holds and, once asked, what was said of it.

    `stamp` is None where it proves nothing; `digest` where the file cannot be read; `speaks`:
    whether it speaks of cache memory. `unit` is what rules find from it, `listed` the names that
    its text seems to define.
    """

    stamp: Stamp | None
    digest: bytes | None
    speaks: bool
    looked: Looked | None = None
    unit: Unit | None = None
    listed: "Listed | None" = None

    def looks(self, stamp: Stamp | None) -> bool:
        """Whether the file looks as it did."""
        return self.stamp is not None and self.stamp == stamp


@dataclass(slots=True)
class Record:
    """All that is remembered: every unit and search is right for `files` as they stand in it."""

    files: dict[str, Known] = field(default_factory=dict)
    searches: dict[tuple[str, str], "Search"] = field(default_factory=dict)
    changed: bool = False  # since it was read
    _seen: set[str] = field(default_factory=set)  # read in this run

    def __reduce__(self) -> tuple[Any, ...]:
        return Record, (self.files, self.searches)

    def update(
        self,
        tree: Tree,
        paths: Iterable[str],
        stamp_of: Callable[[str], Stamp | None],
        speaks: Callable[[bytes], bool],
    ) -> None:
        """Look at these files and forget what their changes make doubtful. `speaks`: whether a
        content is worth analysing."""
        from hashlib import blake2b  # a tenth of the start of a small call

        changed: dict[str, Known | None] = {}
        for path in paths:
            known, stamp = self.files.get(path), stamp_of(path)
            if known is not None and (path in self._seen or known.looks(stamp)):
                continue
            self._seen.add(path)
            self.changed = True
            data = _read(tree, path)
            if data is None:
                stamp = None  # whether it can be read is up to who asks, and not to the file alone
            digest = None if data is None else blake2b(data, digest_size=16).digest()
            if known is not None and known.digest == digest and digest is not None:
                known.stamp = stamp
                continue
            changed[path] = known
            self.files[path] = Known(stamp, digest, data is not None and speaks(data))
        if changed:
            self._forget(tree, changed)

    def looks_into(self, paths: Iterable[str]) -> None:
        """These files are read once more in this run, changed or not."""
        self._seen.update(paths)

    def keep(self, paths: Iterable[str]) -> None:
        """Forget the files that are not among these: they are gone."""
        there = set(paths)
        gone = {path: known for path, known in self.files.items() if path not in there}
        for path in gone:
            del self.files[path]
            self.changed = True
        if any(known.speaks for known in gone.values()):
            self._forget_units()

    def distrust(self, tree: Tree) -> list[str]:
        """Forget what was asked while files changed, and tell which: nobody knows what was read."""
        changed = []
        for path, known in self.files.items():
            if (known.speaks or path in self._seen) and path not in tree.overlay:
                if not known.looks(stamp_on_disk(tree, path)):
                    changed.append(path)
                    known.stamp, known.digest, known.looked = None, None, None
                    if known.speaks:
                        self._forget_units()
        return changed

    def _forget(self, tree: Tree, changed: dict[str, Known | None]) -> None:
        """Forget the units that rest on files that were changed (None: are new)."""
        if any(
            (old is not None and old.speaks) != self.files[p].speaks for p, old in changed.items()
        ):
            # What a module's name means is up to which files there are.
            self._forget_units()
            return
        speaking = frozenset(path for path in changed if self.files[path].speaks)
        if not speaking:
            return
        units = [known for known in self.files.values() if known.unit is not None]
        words = frozenset(word for _, word in self.searches).union(
            *(known.unit.words for known in units if known.unit)
        )
        held = {path: _held(_text(tree, path), words) for path in speaking}
        anywhere = frozenset().union(*held.values())
        for known in units:
            unit = known.unit
            if unit and not (unit.files.isdisjoint(speaking) and unit.words.isdisjoint(anywhere)):
                known.unit = None
        for (how, word), search in list(self.searches.items()):
            touched = frozenset(p for p in speaking if p in search.found or word in held[p])
            if touched:
                left = search.without(touched)
                if left is None:
                    del self.searches[how, word]
                else:
                    self.searches[how, word] = left

    def _forget_units(self) -> None:
        self.searches = {}
        for known in self.files.values():
            known.unit = None


def _read(tree: Tree, path: str) -> bytes | None:
    try:
        return tree.read(path)
    except OSError:
        return None


def _held(text: str, words: frozenset[str]) -> frozenset[str]:
    """Those of the words that a text holds."""
    names = set(_NAME.findall(text))
    return frozenset(w for w in words if names.issuperset(_NAME.findall(w)) and w in text)


def _text(tree: Tree, path: str) -> str:
    try:
        return decode(tree.read(path))
    except (OSError, SyntaxError, LookupError, UnicodeError):
        return ""  # the analysis cannot read it either
