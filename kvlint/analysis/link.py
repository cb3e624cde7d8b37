"""The program: the only module that knows more than one function.

Everything is asked for: a file is outlined when a name points into it, a definition is
lowered when a question needs its body. Answers are kept.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kvlint.analysis.bodies import Body, CallSite, Mark, Store
from kvlint.analysis.outline import ClassOutline, Definition, Outline, module_of, outline
from kvlint.analysis.terms import (
    Call,
    Field,
    Item,
    Opaque,
    Parameter,
    Term,
    This,
    bounded,
    normal,
    replace,
)
from kvlint.analysis.vocabulary import apis, nouns
from kvlint.findings import Fault, Span

MANY_PLACES = 60  # a name written or called in more definitions than this tells nothing


class Program:
    """What is known of a project. `faults`: files that could not be read or parsed."""

    def __init__(self, texts: dict[str, str], faults: list[Fault] | None = None) -> None:
        self.texts = texts
        self.faults = faults or []
        self._outlines: dict[str, Outline | None] = {}
        self._bodies: dict[str, Body | None] = {}
        self._modules = {module_of(path): path for path in texts}
        self._defined: dict[str, list[str]] | None = None
        self._mentions: dict[str, list[Definition]] = {}
        self._stores: dict[str, list[tuple[Body, Store]]] = {}
        self._families: dict[str, tuple[str, ...]] = {}
        self._children: dict[str, list[str]] | None = None
        self._returns: dict[str, Term | None] = {}
        self.checks: dict[str, tuple[object, ...]] = {}  # memo of `guards`
        self.walked: dict[tuple[str, str], bool] = {}  # memo of `evidence`
        self._typing: set[str] = set()
        self._callees: dict[tuple[Call, str], tuple[list[Definition], bool]] = {}

    @classmethod
    def open(cls, root: Path, files: Iterable[str], explicit: Iterable[str] = ()) -> "Program":
        """Read `files` (relative to `root`); keep those that speak of cache memory.

        `explicit` files are parsed even if they do not, so that a syntax error in a file
        that somebody names is said.
        """
        texts: dict[str, str] = {}
        faults: list[Fault] = []
        triggers = [word.encode() for word in nouns().triggers]
        named = set(explicit)
        checked: list[str] = []
        for path in sorted({*files, *named}):
            try:
                data = (root / path).read_bytes()
            except OSError as error:
                faults.append(_fault(path, "unreadable", str(error.strerror or error)))
                continue
            spoken = any(word in data for word in triggers)
            if not spoken and path not in named:
                continue
            try:
                text = _decode(data)
            except (UnicodeDecodeError, LookupError, SyntaxError) as error:
                faults.append(_fault(path, "invalid-encoding", str(error)))
                continue
            texts[path] = text
            if path in named:
                checked.append(path)
        program = cls(texts, faults)
        for path in checked:
            program.outline(path)
        return program

    # -- files and definitions

    def outline(self, path: str) -> Outline | None:
        if path not in self._outlines:
            self._outlines[path] = None
            try:
                self._outlines[path] = outline(path, self.texts[path])
            except SyntaxError as error:
                line, column = error.lineno or 1, max(error.offset or 1, 1)
                span = Span(path, line, column, line, column + 1)
                self.faults.append(Fault("invalid-syntax", span, error.msg or "invalid syntax"))
            except (ValueError, RecursionError, MemoryError) as error:
                self.faults.append(_fault(path, "invalid-syntax", f"cannot be parsed: {error}"))
        return self._outlines[path]

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
        if key not in self._bodies:
            from kvlint.analysis.lower import lower

            self._bodies[key] = None
            source = self.outline(definition.path)
            if source is not None:
                try:
                    self._bodies[key] = lower(source, definition)
                except Exception as error:  # a body that cannot be lowered costs only itself
                    self.lost = getattr(self, "lost", 0) + 1
                    _debug(definition, error)
        return self._bodies[key]

    def span(self, body: Body, mark: Mark) -> Span:
        return Span(body.definition.path, *body.at(mark))

    def written(self, span: Span) -> str | None:
        """The source text of a span on one line, None where it takes several."""
        source = self.outline(span.path)
        if source is None or span.line != span.end_line:
            return None
        line = source.lines[span.line - 1]
        return line[span.column - 1 : span.end_column - 1]

    def holding(
        self, *patterns: re.Pattern[str], file: re.Pattern[str] | None = None
    ) -> Iterator[Body]:
        """Bodies of the definitions that each of the patterns matches, kernels left out.

        `file`: what the file must hold besides. By path and line.
        """
        first, *others = patterns
        for path in sorted(self.texts):
            text = self.texts[path]
            if any(p.search(text) is None for p in (*others, *([file] if file else []))):
                continue
            hits = [m.start() for m in first.finditer(text)]
            yield from self.bodies_at(path, hits, *others)

    def bodies_at(
        self, path: str, offsets: Sequence[int], *patterns: re.Pattern[str]
    ) -> Iterator[Body]:
        """Bodies around these offsets of a file, those that hold the patterns."""
        source = self.outline(path) if offsets else None
        for definition in self._covering(path, offsets):
            own = source.text(definition) if source else ""
            if "jit" in definition.decorators or not all(p.search(own) for p in patterns):
                continue
            body = self.body(definition)
            if body is not None:
                yield body

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
        key = f"{before}{name}{after}"
        if key not in self._mentions:
            found: list[Definition] = []
            for path in sorted(self.texts):
                text = self.texts[path]
                if key not in text:
                    continue
                hits = [
                    at
                    for at in occurrences(text, name)
                    if text.startswith(after, at + len(name)) and text.endswith(before, 0, at)
                ]
                found.extend(self._covering(path, hits))
                if len(found) > MANY_PLACES:
                    found = []
                    break
            self._mentions[key] = found
        return self._mentions[key]

    def defined(self, name: str) -> list[str]:
        """Keys `path::qualified.name` of functions and classes with this last name."""
        if self._defined is None:
            pattern = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.M)
            table: dict[str, list[str]] = defaultdict(list)
            for path in sorted(self.texts):
                for short in set(pattern.findall(self.texts[path])):
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

    # -- names

    def lookup(self, dotted: str, depth: int = 0) -> str | None:
        """Key of a function or class by its dotted name, through re-exports."""
        module, _, name = dotted.rpartition(".")
        rest = name
        while module:
            path = self._modules.get(module)
            if path is not None:
                found = self.outline(path)
                if found is None:
                    return None
                if rest in found.definitions or rest in found.classes:
                    return f"{path}::{rest}"
                head, _, tail = rest.partition(".")
                target = found.imports.get(head)
                if target and depth < 4 and target != dotted:
                    return self.lookup(f"{target}.{tail}" if tail else target, depth + 1)
                return None
            module, _, head = module.rpartition(".")
            rest = f"{head}.{rest}"
        return None

    def family(self, class_key: str) -> tuple[str, ...]:
        """The class and its bases as far as the project knows them, nearest first."""
        if class_key not in self._families:
            self._families[class_key] = (class_key,)
            chain = [class_key]
            known = self.class_at(class_key)
            if known is not None:
                path = known.path
                for base in known.bases:
                    key = self._class_named(path, base)
                    if key and key != class_key:
                        chain.extend(k for k in self.family(key) if k not in chain)
            self._families[class_key] = tuple(chain)
        return self._families[class_key]

    def external_bases(self, class_key: str) -> set[str]:
        """Dotted names of bases that no project file defines."""
        result: set[str] = set()
        for key in self.family(class_key):
            known = self.class_at(key)
            found = self.outline(known.path) if known else None
            if known is None or found is None:
                continue
            for base in known.bases:
                if self._class_named(known.path, base) is None:
                    head, _, tail = base.partition(".")
                    resolved = found.imports.get(head, head)
                    result.add(f"{resolved}.{tail}" if tail else resolved)
        return result

    def _class_named(self, path: str, name: str) -> str | None:
        found = self.outline(path)
        if found is None or not name:
            return None
        if name in found.classes:
            return f"{path}::{name}"
        head, _, tail = name.partition(".")
        target = found.imports.get(head)
        if target is None:
            return None
        key = self.lookup(f"{target}.{tail}" if tail else target)
        return key if key and self.class_at(key) else None

    def _heirs(self, class_key: str) -> list[str]:
        if self._children is None:
            table: dict[str, list[str]] = defaultdict(list)
            name = re.compile(r"^[ \t]*class[ \t]+\w+\(", re.M)
            for path in sorted(self.texts):
                if not name.search(self.texts[path]):
                    continue
                found = self.outline(path)
                for known in found.classes.values() if found else ():
                    for base in known.bases:
                        table[base.rpartition(".")[2]].append(known.key)
            self._children = table
        short = class_key.partition("::")[2].rpartition(".")[2]
        return [k for k in self._children.get(short, ()) if class_key in self.family(k)]

    def type_of(self, term: Term, body: Body) -> str | None:
        """Key of the class of an object, where annotation or constructor tells."""
        match term:
            case This(owner):
                return owner
            case Parameter(function, name):
                definition = self.definition(function)
                if definition is not None:
                    for parameter, annotation in definition.annotations:
                        if parameter == name:
                            return self._class_named(definition.path, annotation)
            case Call("", This(owner)):
                return owner
            case Call() as call:
                return self._result_type(call, body)
            case Field(This(owner), name):
                return self._stored_type(owner, name, keyed=False)
            case Item(Field(This(owner), name), _):
                return self._stored_type(owner, name, keyed=True)
        return None

    def _result_type(self, call: Call, body: Body) -> str | None:
        made = self.constructed(call)
        if made is not None or (call.receiver is not None and call.name in apis().common):
            return made
        found, by_name = self.callees(call, body)
        if len(found) != 1 or by_name:
            return None
        named = self._class_named(found[0].path, found[0].returns)
        if named is not None:
            return named
        value = self.result(found[0]) if found[0].key not in self._typing else None
        inner = self.body(found[0]) if value is not None else None
        if value is None or inner is None:
            return None
        self._typing.add(found[0].key)
        try:
            return self.type_of(value, inner)
        finally:
            self._typing.discard(found[0].key)

    def _stored_type(self, owner: str, name: str, *, keyed: bool) -> str | None:
        """The class of what is stored in a field (in its items, if `keyed`)."""
        key = f"{owner}.{name}{keyed}"
        if key in self._typing:
            return None
        self._typing.add(key)
        try:
            for member in self.family(owner):
                for body, store in self.stores(name, owner):
                    if (store.key is not None) == keyed and store.of == This(member):
                        found = self.type_of(store.value, body)
                        if found:
                            return found
        finally:
            self._typing.discard(key)
        return None

    # -- calls

    def callees(self, call: Call, body: Body) -> tuple[list[Definition], bool]:
        """Definitions a call can reach, and whether only the name says so.

        A class stands for its `__init__`; see `constructed` for classes without one.
        """
        key = (call, body.definition.key)
        if key not in self._callees:
            self._callees[key] = self._found_callees(call, body)
        return self._callees[key]

    def _found_callees(self, call: Call, body: Body) -> tuple[list[Definition], bool]:
        if call.receiver is None:
            key = self.lookup(call.callee)
            if key is None:
                return [], False
            if self.class_at(key):
                return self._method(key, "__init__"), False
            found = self.definition(key)
            return ([found] if found else []), False
        match call.receiver:
            case Call(callee="super", receiver=None):
                owner = f"{body.definition.path}::{body.definition.class_name}"
                for base in self.family(owner)[1:]:
                    found = self.definition(f"{base}.{call.name}")
                    if found:
                        return [found], False
                return [], False
        known = self.type_of(call.receiver, body)
        if known is not None:
            return self.overrides(known, call.name), False
        if call.callee in apis().common or not call.callee:
            return [], False
        named = [self.definition(key) for key in self.defined(call.callee)]
        methods = [d for d in named if d is not None and d.class_name]
        return (methods if len(methods) <= 8 else []), True

    def _method(self, class_key: str, name: str) -> list[Definition]:
        for key in self.family(class_key):
            found = self.definition(f"{key}.{name}")
            if found is not None:
                return [found]
        return []

    def overrides(self, class_key: str, name: str) -> list[Definition]:
        """What `x.name` can be for an `x` of this class: its own or inherited one, and those
        of heirs; one that only raises stands for the heirs' alone."""
        heirs = [self.definition(f"{key}.{name}") for key in self._heirs(class_key)]
        found = [d for d in heirs if d is not None]
        own = self._method(class_key, name)
        if own and not (found and self.is_abstract(own[0])):
            found = [*own, *(d for d in found if d not in own)]
        return found

    def runs_on(self, definition: Definition, class_key: str) -> bool:
        """Whether an object of this class can run this method: False when the class has its
        own of that name and never calls on to its bases."""
        own = self._method(class_key, definition.short)
        if not own or own[0] == definition or definition.class_name == own[0].class_name:
            return True
        if f"{definition.path}::{definition.class_name}" not in self.family(class_key):
            return True  # an heir's
        source = self.outline(own[0].path)
        return "super()" in (source.text(own[0]) if source else "")

    def is_abstract(self, definition: Definition) -> bool:
        source = self.outline(definition.path)
        text = source.text(definition) if source else ""
        return "abstractmethod" in definition.decorators or (
            "NotImplementedError" in text and "return " not in text
        )

    def constructed(self, call: Call) -> str | None:
        """Key of the class that a call makes an object of."""
        if call.receiver is not None:
            return None
        key = self.lookup(call.callee)
        return key if key and self.class_at(key) else None

    def bind(self, call: Call, callee: Definition) -> dict[str, Term]:
        """Parameter name -> argument; parameters left to their default are absent."""
        names = list(callee.parameters)
        if callee.receives:
            names = names[1:]
        bound = dict(zip(names, call.arguments, strict=False))
        bound.update((k, v) for k, v in call.keywords if k in callee.parameters)
        return bound

    def callers(self, definition: Definition) -> Iterator[tuple[Body, CallSite]]:
        short = definition.short
        if short == "__init__":
            short = definition.class_name.rpartition(".")[2]
        if short in apis().common:
            return
        for caller in self.mentioning(short, after="("):
            body = self.body(caller)
            if body is None:
                continue
            for site in body.calls:
                if site.call.name != short:
                    continue
                found, _ = self.callees(site.call, body)
                if definition in found:
                    yield body, site

    def result(self, definition: Definition) -> Term | None:
        """What the one `return` gives, None with several or none."""
        if definition.key not in self._returns:
            body = self.body(definition)
            values = [r.term for r in body.returns] if body else []
            self._returns[definition.key] = values[0] if len(set(values)) == 1 else None
        return self._returns[definition.key]

    def inline(self, term: Term, body: Body, depth: int = 3) -> Term:
        """Replace calls of project functions by what they return, arguments put in."""
        if depth == 0:
            return term

        def step(part: Term) -> Term | None:
            if not isinstance(part, Call):
                return None
            found, by_name = self.callees(part, body)
            if len(found) != 1 or by_name or found[0].short == "__init__":
                return None
            value = self.result(found[0])
            if value is None:
                return None
            put = self.substitute(value, found[0], self.bind(part, found[0]), part.receiver)
            inner = self.body(found[0])
            return self.inline(put, inner or body, depth - 1)

        return bounded(replace(term, step))

    def substitute(
        self, term: Term, callee: Definition, bound: dict[str, Term], receiver: Term | None
    ) -> Term:
        """`term` of `callee` as its caller sees it."""
        this = f"{callee.path}::{callee.class_name}"

        def step(part: Term) -> Term | None:
            match part:
                case Parameter(function, name) if function == callee.key:
                    return bound.get(name, Opaque(f"default of {name}"))
                case This(owner) if owner == this and receiver is not None:
                    return receiver
            return None

        return normal(replace(term, step))

    # -- fields

    def stores(self, name: str, owner: str | None = None) -> list[tuple[Body, Store]]:
        """Where a field of this name is written, constructor keywords included.

        A name written in too many places is looked up in the files of `owner` alone.
        """
        key = name
        if name in self._stores:
            if self._stores[name] or owner is None:
                return self._stores[name]
            key = f"{name} of {owner}"
            if key in self._stores:
                return self._stores[key]
        self._stores[key] = []
        paths = sorted(self.texts) if key == name else self.home(owner or "")
        found: list[Definition] = []
        for path in paths:
            text = self.texts[path]
            hits = [at for at in occurrences(text, name) if _written(text, at, len(name))]
            found.extend(self._covering(path, hits))
        if len(found) > MANY_PLACES:
            return self.stores(name, owner) if key == name and owner else []
        result: list[tuple[Body, Store]] = []
        for definition in found:
            body = self.body(definition)
            if body is None:
                continue
            result.extend((body, s) for s in body.stores if s.name == name)
            result.extend(self._constructor_stores(body, name))
        self._stores[key] = result
        return result

    def home(self, class_key: str) -> list[str]:
        """Files that define the class, its bases and its heirs."""
        keys = [*self.family(class_key), *self._heirs(class_key)]
        return sorted({key.partition("::")[0] for key in keys} & self.texts.keys())

    def _constructor_stores(self, body: Body, name: str) -> Iterator[tuple[Body, Store]]:
        for site in body.calls:
            for keyword, value in site.call.keywords:
                if keyword != name:
                    continue
                key = self.constructed(site.call)
                if key is None and site.call.callee in ("cls",):
                    key = f"{body.definition.path}::{body.definition.class_name}"
                if key is None and isinstance(site.call.receiver, This):
                    key = site.call.receiver.owner if not site.call.callee else None
                known = self.class_at(key) if key else None
                if known and key and (name in known.annotated):
                    yield body, Store(This(key), name, None, value, site.place, site.where)

    def readers(self, name: str, owner: str = "") -> list[Body]:
        """Bodies that hold the identifier; of a common one, those in `owner`'s files."""
        found = self.mentioning(name, before=".")
        if not found and owner:
            for path in self.home(owner):
                hits = list(occurrences(self.texts[path], name))
                found = [*found, *self._covering(path, hits)]
        bodies = (self.body(d) for d in found)
        return [b for b in bodies if b is not None]


def occurrences(text: str, name: str) -> Iterator[int]:
    """Offsets of the identifier `name`; a regular expression with word ends is slower."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        before, after = text[at - 1 : at], text[end : end + 1]
        if not (before.isalnum() or before == "_" or after.isalnum() or after == "_"):
            yield at
        at = text.find(name, end)


_AFTER = re.compile(r"\s*(?::[^=\n]+)?(?:=(?!=)|\+=|\[|\.(?:append|extend)\b|,)")
_KEYWORD = re.compile(r"\s*=(?!=)")


def _written(text: str, at: int, length: int) -> bool:
    """Whether the field or keyword at this offset is given a value there."""
    if text[at - 1 : at] == ".":
        return _AFTER.match(text, at + length) is not None
    return _KEYWORD.match(text, at + length) is not None


def _decode(data: bytes) -> str:
    import io
    import tokenize

    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return io.TextIOWrapper(io.BytesIO(data), encoding, newline=None).read()


def _fault(path: str, name: str, message: str) -> Fault:
    return Fault(name, Span(path, 1, 1, 1, 1), message)


def _debug(definition: Definition, error: Exception) -> None:
    import os
    import sys

    if os.environ.get("KVLINT_DEBUG"):
        print(f"kvlint: {definition.key}: {type(error).__name__}: {error}", file=sys.stderr)
