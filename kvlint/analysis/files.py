"""The files of a project: read once, outlined when a name points into one, lowered by need.

What an answer about one file rests on is written down while it is worked out (`Basis`), so that
the answer can be kept until one of these changes.
"""

import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kvlint.analysis.bodies import Body, Mark
from kvlint.analysis.depth import MAX_DEPTH, MAX_TEXT
from kvlint.analysis.memory import Listed, Memory, Nothing, Search
from kvlint.analysis.outline import ClassOutline, Definition, Outline, outline
from kvlint.analysis.terms import Term
from kvlint.findings import Fault, Span
from kvlint.tree import Tree, decode

KERNELS = frozenset({"jit", "kernel"})  # decorators of what runs on the device
MANY_PLACES = 60  # a name written or called in more definitions than this tells nothing


@dataclass(slots=True)
class Basis:
    """What answers rest on: the files looked into, and the words that all files were searched
    for. A file that was not looked into matters as soon as it holds one of the words."""

    files: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)


class Texts(Mapping[str, str]):
    """The texts of files of a tree, each read when it is first asked for; one that cannot be
    read is empty: whoever asked for it is told so by others."""

    def __init__(self, tree: Tree, paths: Iterable[str]) -> None:
        self._tree = tree
        self._read: dict[str, str | None] = dict.fromkeys(sorted(paths))

    def __getitem__(self, path: str) -> str:
        text = self._read[path]
        if text is None:
            try:
                text = decode(self._tree.read(path))
            except (OSError, UnicodeError, LookupError, SyntaxError):
                text = ""
            self._read[path] = text
        return text

    def __contains__(self, path: object) -> bool:
        return path in self._read

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)


class Files:
    """Texts by path, in the order of paths. `faults`: files that could not be parsed."""

    def __init__(self, texts: Mapping[str, str], memory: Memory | None = None) -> None:
        self.texts = texts if isinstance(texts, Texts) else dict(sorted(texts.items()))
        self.faults: list[Fault] = []
        self._memory = memory or Nothing()
        self.basis = Basis()
        self._start: str | None = None
        self._outlines: dict[str, Outline | None] = {}
        self._bodies: dict[str, Body | None] = {}
        self._lost: dict[str, str] = {}  # why there is no body, until it is said
        self._defined: dict[str, list[str]] | None = None
        self._found: dict[tuple[str, str], tuple[list[Definition] | None, frozenset[str]]] = {}

    def begin(self, path: str) -> None:
        """Let rules start from this file alone, as if nothing had been asked before.

        Outlines, bodies and searches are kept: they are the same whoever asks.
        """
        self._start = path
        self.basis = Basis()

    def outline(self, path: str) -> Outline | None:
        self.basis.files.add(path)
        if path not in self._outlines:
            kept = self._memory.contents(path)
            self._outlines[path] = kept.of(path, self.texts) if kept else self._outlined(path)
        return self._outlines[path]

    def _outlined(self, path: str) -> Outline | None:
        try:
            made = outline(path, self.texts[path])
        except SyntaxError as error:
            line, column = error.lineno or 1, max(error.offset or 1, 1)
            span = Span(path, line, column, line, column + 1)
            self.faults.append(Fault("invalid-syntax", span, error.msg or "invalid syntax"))
            return None
        except (ValueError, RecursionError, MemoryError) as error:
            self.faults.append(_fault(path, "invalid-syntax", f"cannot be parsed: {error}"))
            return None
        self._memory.keep_contents(made)
        return made

    def definition(self, key: str) -> Definition | None:
        path, _, name = key.partition("::")
        if path not in self.texts:
            return None
        found = self.outline(path)
        return found.definitions.get(name) if found else None

    def class_at(self, key: str) -> ClassOutline | None:
        path, _, name = key.partition("::")
        if path not in self.texts:
            return None
        found = self.outline(path)
        return found.classes.get(name) if found else None

    def body(self, definition: Definition) -> Body | None:
        key = definition.key
        self.basis.files.add(definition.path)
        if key not in self._bodies:
            source = self.outline(definition.path)
            kept = self._memory.body(source, definition) if source else None
            self._bodies[key] = kept or (self._lowered(source, definition) if source else None)
        return self._bodies[key]

    def _lowered(self, source: Outline, definition: Definition) -> Body | None:
        if definition.too_deep:
            self._lost[definition.key] = f"an expression has more than {MAX_DEPTH} levels"
            return None
        if source.size(definition) > MAX_TEXT:
            self._lost[definition.key] = f"it has more than {MAX_TEXT >> 10} KiB of text"
            return None
        from kvlint.analysis.lower import lower  # brings libcst, which a kept body never needs

        try:
            made = lower(source, definition)
        except Exception as error:  # a body that cannot be lowered costs only itself
            deep = isinstance(error, RecursionError)
            said = f"{type(error).__name__}: {error}"
            self._lost[definition.key] = "it nests too deep" if deep else said
            _debug(definition, error)
            return None
        self._memory.keep_body(source, made)
        return made

    def span(self, body: Body, mark: Mark) -> Span:
        return Span(body.definition.path, *body.at(mark))

    def span_of(self, body: Body, term: Term) -> Span:
        """Where a term was first written in a body; the body's first line where it was not."""
        place = body.place_of(term)
        return self.span(body, place[0] if place else -1)

    def text(self, definition: Definition) -> str:
        source = self.outline(definition.path)
        return source.text(definition) if source else ""

    def written(self, span: Span) -> str | None:
        """The source text of a span on one line, None where it takes several."""
        source = self.outline(span.path)
        if source is None or span.line != span.end_line:
            return None
        line = source.lines[span.line - 1]
        return line[span.column - 1 : span.end_column - 1]

    def starts(self) -> list[str]:
        """Paths of the files that rules start from."""
        return list(self.texts) if self._start is None else [self._start]

    def holding(
        self, *patterns: re.Pattern[str], words: Sequence[str] = (), kernels: bool = False
    ) -> Iterator[Body]:
        """Bodies of the definitions that each of the patterns matches: kernels alone, or all
        others.

        `words`: the file must hold one of these besides. By path and line.
        """
        first, *others = patterns
        for path in self.starts():
            text = self.texts[path]
            if words and not any(word in text for word in words):
                continue
            if any(p.search(text) is None for p in others):
                continue
            hits = [m.start() for m in first.finditer(text)]
            yield from self.bodies_at(path, hits, *others, kernels=kernels)

    def bodies_at(
        self,
        path: str,
        offsets: Sequence[int],
        *patterns: re.Pattern[str],
        kernels: bool = False,
    ) -> Iterator[Body]:
        """Bodies around these offsets of a file, those that hold the patterns."""
        source = self.outline(path) if offsets else None
        for definition in self._covering(path, offsets):
            own = source.text(definition) if source else ""
            decorators = definition.decorators
            fits = "jit" in decorators if kernels else KERNELS.isdisjoint(decorators)
            if not fits or not all(p.search(own) for p in patterns):
                continue
            body = self.body(definition)
            if body is not None:
                yield body
            elif definition.key in self._lost:
                self.faults.append(_not_judged(definition, self._lost.pop(definition.key)))

    def _covering(self, path: str, offsets: Sequence[int]) -> list[Definition]:
        found = self.outline(path) if offsets else None
        if found is None:
            return []
        text = self.texts[path]
        result: dict[str, Definition] = {}
        line, position = 1, 0
        for offset in offsets:
            line += text.count("\n", position, offset)
            position = offset
            definition = found.at(line)
            if definition is not None:
                result[definition.key] = definition
        return list(result.values())

    def mentioning(self, name: str, *, after: str = "", before: str = "") -> list[Definition]:
        """Definitions whose text holds the identifier `name` (behind `before`, in front of
        `after`); [] when too many do."""

        def fits(text: str, at: int) -> bool:
            return text.startswith(after, at + len(name)) and text.endswith(before, 0, at)

        return self._search("mentioned", name, f"{before}{name}{after}", fits) or []

    def _search(
        self, how: str, name: str, word: str, fits: Callable[[str, int], bool]
    ) -> list[Definition] | None:
        """Definitions around the places of the identifier `name` that fit, in files that hold
        `word`; None where more files, or more definitions, do than tell anything."""
        self.basis.words.add(word)
        if (how, word) not in self._found:
            self._found[how, word] = self._searched(how, name, word, fits)
        found, files = self._found[how, word]
        self.basis.files |= files
        return found

    def _searched(
        self, how: str, name: str, word: str, fits: Callable[[str, int], bool]
    ) -> tuple[list[Definition] | None, frozenset[str]]:
        kept = self._memory.search(how, word)
        if kept is not None and not kept.whole:
            return None, frozenset(kept.found)
        places: dict[str, list[int]] = {}
        for path in self.texts:
            if kept is not None and path not in kept.doubtful:
                if path in kept.found:
                    places[path] = []
            elif word in (text := self.texts[path]):
                hits = [at for at in occurrences(text, name) if fits(text, at)]
                if hits:
                    places[path] = hits
            if len(places) > MANY_PLACES:
                break
        found: dict[str, list[Definition]] = {}
        number = 0
        for path, hits in places.items() if len(places) <= MANY_PLACES else ():
            if kept is not None and path not in kept.doubtful:
                there = [self.definition(key) for key in kept.found[path]]
                found[path] = [one for one in there if one is not None]
            else:
                found[path] = self._covering(path, hits)
            number += len(found[path])
        whole = max(len(places), number) <= MANY_PLACES
        if kept is None or kept.doubtful:
            by_key = {path: tuple(d.key for d in found.get(path, ())) for path in places}
            self._memory.keep_search(how, word, Search(by_key, whole))
        all_found = [one for there in found.values() for one in there]
        return all_found if whole else None, frozenset(places)

    def listed(self, path: str) -> Listed:
        """What a file defines, as far as its text alone tells."""
        found = self._memory.listed(path)
        if found is None:
            found = _listed(self.texts[path])
            self._memory.keep_listed(path, found)
        return found

    def defined(self, name: str) -> list[str]:
        """Keys `path::qualified.name` of functions and classes with this last name."""
        self.basis.words.add(name)
        if self._defined is None:
            table: dict[str, list[str]] = defaultdict(list)
            for path in self.texts:
                for short in self.listed(path).defined:
                    table[short].append(path)
            self._defined = table
        keys: list[str] = []
        for path in self._defined.get(name, ()):
            found = self.outline(path)
            if found is None:
                continue
            full = (*found.definitions, *found.classes)
            keys.extend(f"{path}::{key}" for key in full if key.rpartition(".")[2] == name)
        return keys


_DEFINED = re.compile(r"\n[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)")
_DERIVED = re.compile(r"\n[ \t]*class[ \t]+(\w+)\(([^()]*)\)")


def _listed(text: str) -> Listed:
    # By text alone: most files need no outline for it. In front stands a line end, which a search
    # finds faster than the beginning of a line.
    text = f"\n{text}"
    defined = tuple(sorted(set(_DEFINED.findall(text))))
    return Listed(defined, tuple((name, bases) for name, bases in _DERIVED.findall(text)))


def occurrences(text: str, name: str) -> Iterator[int]:
    """Offsets of the identifier `name`; a regular expression with word ends is slower."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        before, after = text[at - 1 : at], text[end : end + 1]
        if not (before.isalnum() or before == "_" or after.isalnum() or after == "_"):
            yield at
        at = text.find(name, end)


def _fault(path: str, name: str, message: str) -> Fault:
    return Fault(name, Span(path, 1, 1, 1, 1), message)


def _not_judged(definition: Definition, why: str) -> Fault:
    line = definition.too_deep or definition.first_line
    span = Span(definition.path, line, 1, line, 1)
    return Fault("not-judged", span, f"{definition.name} is not judged: {' '.join(why.split())}")


def _debug(definition: Definition, error: Exception) -> None:
    if os.environ.get("KVLINT_DEBUG"):
        print(f"kvlint: {definition.key}: {type(error).__name__}: {error}", file=sys.stderr)
