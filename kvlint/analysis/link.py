"""The program: the only module that knows more than one function.

Everything is asked for, and answers are kept: who calls whom, what a field is given, what
class an object has.
"""

import re
from collections.abc import Iterator, Mapping

from kvlint.analysis.bodies import Body, CallSite, Store
from kvlint.analysis.files import MANY_PLACES, occurrences
from kvlint.analysis.forms import normal
from kvlint.analysis.memory import Memory
from kvlint.analysis.names import Names
from kvlint.analysis.outline import Definition
from kvlint.analysis.terms import (
    Call,
    Each,
    Field,
    Item,
    Literal,
    Many,
    Opaque,
    Parameter,
    Sequence,
    Term,
    This,
    bounded,
    replace,
)
from kvlint.analysis.vocabulary import apis


class Program(Names):
    """What is known of a project; memos of other modules are kept here too."""

    def __init__(self, texts: Mapping[str, str], memory: Memory | None = None) -> None:
        super().__init__(texts, memory)
        self._forget()

    def begin(self, path: str) -> None:
        super().begin(path)
        # What was linked for another file rests on what that file asked for.
        self._families = {}
        self._forget()

    def _forget(self) -> None:
        self._stores: dict[str, list[tuple[Body, Store]]] = {}
        self._returns: dict[str, Term | None] = {}
        self._callees: dict[tuple[Call, str], tuple[list[Definition], bool]] = {}
        self._inlined: dict[tuple[Term, str, int], Term] = {}
        self._typing: set[str] = set()
        self.checks: dict[str, tuple[object, ...]] = {}  # memo of `guards`
        self.bytes_told: tuple[object, ...] | None = None  # memo of `byte_places`
        self.walked: dict[tuple[str, str], bool] = {}  # memo of `evidence`

    def type_of(self, term: Term, body: Body) -> str | None:
        """Key of the class of an object, where annotation or constructor tells."""
        match term:
            case This(owner):
                return owner
            case Parameter():
                return self._annotated(term, held=False)
            case Item(Parameter() as of, _) | Each(Parameter() as of, _):
                return self._annotated(of, held=True)
            case Call("", This(owner)):
                return owner
            case Call() as call:
                return self._result_type(call, body)
            case Field(This(owner), name):
                return self._stored_type(owner, name, keyed=False)
            case Item(Field(This(owner), name), _) | Each(Field(This(owner), name), _):
                return self._stored_type(owner, name, keyed=True)
        return None

    def _annotated(self, term: Parameter, *, held: bool) -> str | None:
        """The class that a parameter is annotated with; `held`: of what it holds."""
        definition = self.definition(term.function)
        for parameter, annotation in definition.annotations if definition else ():
            if parameter == term.name and definition is not None:
                named = annotation.partition("[")[2].rstrip("]") if held else annotation
                return self.class_named(definition.path, named)
        return None

    def _result_type(self, call: Call, body: Body) -> str | None:
        made = self.constructed(call)
        if made is not None or (call.receiver is not None and call.name in apis().common):
            return made
        found, by_name = self.callees(call, body)
        if len(found) != 1 or by_name:
            return None
        named = self.class_named(found[0].path, found[0].returns)
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
            family = self.family(owner)
            made = [f"{key.partition('::')[2].rpartition('.')[2]}(" for key in family]
            # Only a method of the family, or who makes an object of it, can give it this field.
            stores = [
                store
                for definition in self._writers(name, owner)
                if definition.owner in family
                or any(call in self.text(definition) for call in (*made, "cls("))
                for store in self._stores_in(definition, name)
            ]
            for member in family:
                for body, store in stores:
                    if store.of != This(member):
                        continue
                    value = _held(store) if keyed else store.value if store.key is None else None
                    found = self.type_of(value, body) if value is not None else None
                    if found is None and keyed and isinstance(store.value, Parameter):
                        found = self._annotated(store.value, held=True)
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
                owner = body.definition.owner
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
        heirs = [self.definition(f"{key}.{name}") for key in self.heirs(class_key)]
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
        if definition.owner not in self.family(class_key):
            return True  # an heir's
        source = self.outline(own[0].path)
        return "super()" in (source.text(own[0]) if source else "")

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
        called = self.mentioning(short, after="(")
        if short in apis().common:
            # A name that everybody has: only its own class can be meant with certainty.
            home = set(self.home(definition.owner))
            called = [
                d for d in self.mentioning(short, before="self.", after="(") if d.path in home
            ]
        for caller in called:
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
        if depth == 0 or not term.kinds & Call.bit:
            return term
        key = (term, body.definition.key, depth)
        if key in self._inlined:
            return self._inlined[key]

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

        self._inlined[key] = bounded(replace(term, step, (Call,)))
        return self._inlined[key]

    def substitute(
        self, term: Term, callee: Definition, bound: dict[str, Term], receiver: Term | None
    ) -> Term:
        """`term` of `callee` as its caller sees it."""
        this = callee.owner

        def step(part: Term) -> Term | None:
            match part:
                case Parameter(function, name) if function == callee.key:
                    return bound.get(name, default_of(callee, name))
                case This(owner) if owner == this and receiver is not None:
                    return receiver
            return None

        return normal(replace(term, step, (Parameter, This)))

    # -- fields

    def stores(self, name: str, owner: str | None = None) -> list[tuple[Body, Store]]:
        """Where a field of this name is written, constructor keywords included.

        A name written in too many places is looked up in the files of `owner` alone.
        """
        key = f"{name} of {owner or ''}"
        if key not in self._stores:
            self._stores[key] = []
            self._stores[key] = [
                store
                for definition in self._writers(name, owner)
                for store in self._stores_in(definition, name)
            ]
        return self._stores[key]

    def _writers(self, name: str, owner: str | None) -> list[Definition]:
        """Definitions that seem to write a field of this name."""
        found = self._search("written", name, name, lambda text, at: _written(text, at, name))
        if found is not None:
            return found
        found = []
        for path in self.home(owner) if owner else ():
            text = self.texts[path]
            hits = [at for at in occurrences(text, name) if _written(text, at, name)]
            found.extend(self._covering(path, hits))
        return found if len(found) <= MANY_PLACES else []

    def _stores_in(self, definition: Definition, name: str) -> Iterator[tuple[Body, Store]]:
        body = self.body(definition)
        if body is not None:
            yield from ((body, store) for store in body.stores if store.name == name)
            yield from self._constructor_stores(body, name)

    def _constructor_stores(self, body: Body, name: str) -> Iterator[tuple[Body, Store]]:
        for site in body.calls:
            for keyword, value in site.call.keywords:
                if keyword != name:
                    continue
                key = self.constructed(site.call)
                if key is None and site.call.callee in ("cls",):
                    key = body.definition.owner
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


def _held(store: Store) -> Term | None:
    """One of the things that a store puts into a list or a mapping, None if it is no such store."""
    value = store.value
    if store.key is None and not store.appended:
        match value:
            case Sequence((first, *_)):
                value = first
            case Many():
                pass
            case _:
                return None
    while isinstance(value, Many):
        value = value.element
    return value


_AFTER = re.compile(r"\s*(?::[^=\n]+)?(?:=(?!=)|\+=|\[|\.(?:append|extend)\b|,)")
_KEYWORD = re.compile(r"\s*=(?!=)")


def _written(text: str, at: int, name: str) -> bool:
    """Whether the field or keyword at this offset is given a value there."""
    length = len(name)
    if text[at - 1 : at] == ".":
        return _AFTER.match(text, at + length) is not None
    return _KEYWORD.match(text, at + length) is not None


def default_of(callee: Definition, name: str) -> Term:
    """What a parameter is when no argument is given for it."""
    for parameter, value in callee.defaults:
        if parameter == name:
            return Literal(value)
    return Opaque(f"default of {name}")
