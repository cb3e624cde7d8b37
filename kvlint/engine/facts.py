"""What the analysis found out about single files, kept beside the record of a run.

One file on disk for each file of the project that was looked into: its outline, and the bodies
of those of its definitions that somebody asked for. A changed line costs the body of one
definition. Searches over all files are kept in the record, which knows when they are outdated.
"""

import pickle
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path

from kvlint.analysis.bodies import Body, Mark, Place
from kvlint.analysis.memory import Contents, Listed, Search
from kvlint.analysis.outline import Definition, Outline
from kvlint.engine.cache import digest_of, load, read, write
from kvlint.engine.record import Record

# What a body is made of besides what its definition tells.
_PARTS = (
    "loops", "roots", "calls", "stores", "returns", "guards", "running", "names", "assigned",
    "spans", "tested",
)  # fmt: skip


@dataclass(slots=True)
class Kept:
    """What is known of one file; the bodies, by name, are right for what it holds.

    What is kept of a body: what it rests on, the body, and, once they were asked for, the places
    of its marks, lines counted from the first of the definition.
    """

    digest: bytes | None = None
    contents: Contents | None = None
    bodies: dict[str, tuple[bytes, bytes, bytes | None]] = field(default_factory=dict)


class Facts:
    """A `kvlint.analysis.memory.Memory` on disk; without a folder it lasts as long as the run."""

    def __init__(self, record: Record, folder: Path | None) -> None:
        self._record = record
        self._folder = folder
        self._kept: dict[str, Kept] = {}
        self._new: set[str] = set()
        self._searches: dict[tuple[str, str], Search] = {}
        self._contexts: dict[str, bytes] = {}

    def contents(self, path: str) -> Contents | None:
        kept = self._of(path)
        return kept.contents if kept.digest == self._record.files[path].digest else None

    def keep_contents(self, outline: Outline) -> None:
        if self._folder is None:
            return
        path, kept = outline.path, self._of(outline.path)
        kept.digest = self._record.files[path].digest
        kept.contents = Contents(outline.definitions, outline.classes, outline.imports)
        kept.bodies = {
            name: body
            for name, body in kept.bodies.items()
            if (there := outline.definitions.get(name)) and body[0] == self._basis(outline, there)
        }
        self._new.add(path)

    def body(self, outline: Outline, definition: Definition) -> Body | None:
        kept = self._of(outline.path)
        found = kept.bodies.get(definition.name)
        if found is None or kept.digest != self._record.files[outline.path].digest:
            return None
        parts = load(found[1], tuple)
        if parts is None or len(parts) != len(_PARTS):
            return None
        body = Body(definition, **dict(zip(_PARTS, parts, strict=True)))
        body.places = partial(self._places, outline, definition)
        return body

    def keep_body(self, outline: Outline, body: Body) -> None:
        if self._folder is None:
            return
        parts = tuple(getattr(body, name) for name in _PARTS)
        with suppress(RecursionError, pickle.PicklingError, TypeError):
            kept = pickle.dumps(parts, protocol=5)
            name = body.definition.name
            self._of(outline.path).bodies[name] = self._basis(outline, body.definition), kept, None
            self._new.add(outline.path)
            body.places = partial(self._places, outline, body.definition)

    def _places(self, outline: Outline, definition: Definition) -> dict[Mark, Place]:
        bodies, name, top = self._of(outline.path).bodies, definition.name, definition.first_line
        basis, body, places = bodies[name]
        found = None if places is None else load(places, dict)
        if found is None:
            from kvlint.analysis.lower import places_of  # brings libcst

            found = _moved(places_of(outline, definition), -top)
            bodies[name] = basis, body, pickle.dumps(found, protocol=5)
            self._new.add(outline.path)
        return _moved(found, top)

    def listed(self, path: str) -> Listed | None:
        return self._record.files[path].listed

    def keep_listed(self, path: str, listed: Listed) -> None:
        self._record.files[path].listed = listed

    def search(self, how: str, word: str) -> Search | None:
        return self._record.searches.get((how, word))

    def keep_search(self, how: str, word: str, search: Search) -> None:
        self._searches[how, word] = search

    def searches(self) -> dict[tuple[str, str], Search]:
        """Those made since this was asked last."""
        made, self._searches = self._searches, {}
        return made

    def flush(self) -> None:
        """Write what is new; silent where it cannot be written."""
        if self._folder is None:
            return
        for path in sorted(self._new):
            kept = self._kept[path]
            # Another process may have asked for other bodies of the same file.
            beside = self._loaded(path)
            for name, theirs in beside.bodies.items() if beside.digest == kept.digest else ():
                ours = kept.bodies.setdefault(name, theirs)
                if ours[2] is None and ours[:2] == theirs[:2]:
                    kept.bodies[name] = theirs
            with suppress(OSError):
                write(self._folder / digest_of(path), kept)
        self._new.clear()

    def _of(self, path: str) -> Kept:
        if path not in self._kept:
            self._kept[path] = self._loaded(path)
        return self._kept[path]

    def _loaded(self, path: str) -> Kept:
        if self._folder is None:
            return Kept()
        return read(self._folder / digest_of(path), Kept) or Kept()

    def _basis(self, outline: Outline, definition: Definition) -> bytes:
        """Digest of a definition's text and of what the names in it can mean."""
        context = self._contexts.get(outline.path)
        if context is None:
            names = (outline.imports, sorted(outline.definitions), sorted(outline.classes))
            context = self._contexts[outline.path] = repr(names).encode("utf-8", "surrogatepass")
        made = blake2b(context, digest_size=12)
        # The place in its line, parameters and class, without where it stands in the file.
        where = (definition.column, definition.parameters, definition.class_name, definition.name)
        made.update(repr(where).encode("utf-8", "surrogatepass"))
        made.update(outline.text(definition).encode("utf-8", "surrogatepass"))
        return made.digest()


def _moved(places: dict[Mark, Place], lines: int) -> dict[Mark, Place]:
    return {
        mark: (line + lines, column, end_line + lines, end_column)
        for mark, (line, column, end_line, end_column) in places.items()
    }
