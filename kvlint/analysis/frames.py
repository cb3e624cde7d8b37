"""Values seen from one object: which class it is, what made it, what its fields are given.

A `Frame` is a body on its way of being run: on which object, with which arguments. A value in a
frame is followed one step back at a time; what it can be comes as consistent cases, each with the
tests that were chosen on the way.
"""

import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from kvlint.analysis.bodies import Body, Store, Where
from kvlint.analysis.forms import is_part, item, part
from kvlint.analysis.link import Program
from kvlint.analysis.outline import Definition
from kvlint.analysis.showing import show
from kvlint.analysis.terms import (
    Call,
    Choice,
    Each,
    Field,
    Global,
    Item,
    Literal,
    Many,
    Mapping,
    Not,
    Opaque,
    Operation,
    Parameter,
    Sequence,
    Slice,
    Term,
    This,
)
from kvlint.analysis.vocabulary import apis

MOST_CASES = 16
MOST_CALLERS = 4
DEEPEST = 16

_T = TypeVar("_T")

Facts = frozenset[tuple[str, bool]]
Cases = list[tuple[Facts, _T]]
NO_FACTS: Facts = frozenset()


@dataclass(frozen=True, eq=False, slots=True)
class Frame:
    """`body`, run on `this` (None: a function, or an object nobody knows) with `bound`."""

    body: Body
    this: "Object | None" = None
    bound: "dict[str, Value]" = field(default_factory=dict)

    @property
    def key(self) -> tuple[Hashable, ...]:
        """The same for frames in which a value comes to the same."""
        bound = ((name, v.term, v.frame.body.definition.key) for name, v in self.bound.items())
        return (
            self.body.definition.key,
            self.this.key if self.this else None,
            *sorted(bound, key=lambda one: one[0]),
        )


@dataclass(frozen=True, eq=False, slots=True)
class Object:
    """An object of the class `kind` (`path::Class`), and the call that made it, if known."""

    kind: str
    made: "Value | None" = None

    @property
    def key(self) -> tuple[Hashable, ...]:
        made = self.made
        return (self.kind, made.term, made.frame.body.definition.key) if made else (self.kind,)

    @property
    def short(self) -> str:
        return self.kind.partition("::")[2].rpartition(".")[2]


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    term: Term
    frame: Frame


@dataclass(frozen=True, eq=False, slots=True)
class Put:
    """What a field is given: a value for all of it (`whole`), for its entry `key`, or, without
    a key, one more entry. `facts` hold where it is given."""

    facts: Facts
    value: Value
    whole: bool = True
    key: Term | None = None


def together(parts: Iterable[Cases[tuple[_T, ...]]]) -> Cases[tuple[_T, ...]]:
    """All that several things are at once, in each case that agrees with itself."""
    result: Cases[tuple[_T, ...]] = [(NO_FACTS, ())]
    for cases in parts:
        joined = [
            (facts | more, (*had, *new))
            for facts, had in result
            for more, new in cases
            if not any((test, not holds) in facts for test, holds in more)
        ]
        result = joined[:MOST_CASES] or result
    return result


def given(cases: Cases[_T], facts: Facts) -> Cases[_T]:
    """The cases that agree with `facts`, which then hold in them."""
    fitting = [(more | facts, one) for more, one in cases]
    return [(f, one) for f, one in fitting if not any((test, not holds) in f for test, holds in f)]


def one_of(what: str, number: int, count: int) -> Facts:
    """That of several alternatives this one is taken, and none of the others."""
    return frozenset((f"{other} of {count}: {what}", other == number) for other in range(count))


def _whose(frame: Frame) -> str:
    """Whom a test in this frame speaks of: tests of one object agree with each other."""
    return frame.this.kind if frame.this else frame.body.definition.key


class Seen:
    """Follows values of one program back through the frames they are seen in."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._going: set[tuple[Term, str, str]] = set()
        self._stored: dict[tuple[str, str], list[tuple[Body, Store]]] = {}
        self._called: dict[tuple[str, str], list[tuple[Body, Call]]] = {}
        self._listed: dict[str, list[tuple[Definition, str]]] = {}
        self._run: dict[tuple[str, str], bool] = {}

    def frame(self, definition: Definition, kind: str | None = None) -> Frame | None:
        body = self.program.body(definition)
        if body is None:
            return None
        return Frame(body, Object(kind) if kind else None)

    # -- one step back

    def steps(self, value: Value) -> Cases[Value] | None:
        """What a value is given as; None where it is given nowhere (it is what it is)."""
        term, frame = value.term, value.frame
        match term:
            case Choice(test, then, other):
                return self.choice(test, Value(then, frame), Value(other, frame))
            case Parameter():
                return self._parameter(term, frame)
            case Item(Call() as call, key) if (number := is_part(key)) is not None:
                return [
                    (facts, Value(part(one.term, number), one.frame))
                    for facts, one in self.results(Value(call, frame)) or ()
                ] or None
            case Item(Field() | Parameter() as of, Literal() as key):
                return self._item(Value(of, frame), key)
            case Call():
                return self.results(value)
            case Field(of, name):
                return self._field(Value(of, frame), name)
        return None

    def _field(self, of: Value, name: str) -> Cases[Value] | None:
        """What a field is set to, where nothing is put into it besides."""
        found: Cases[Value] = []
        for facts, objects in self.objects(of):
            for one in objects:
                computed = self.computed(one, name)
                puts = self.stores(one, name) if computed is None else []
                if not all(put.whole for put in puts):
                    return None
                found += given(computed or [(put.facts, put.value) for put in puts], facts)
        return found[:MOST_CASES] or None

    def choice(self, test: Term, then: Value, other: Value) -> Cases[Value]:
        holds = True
        while isinstance(test, Not):
            test, holds = test.of, not holds
        text = f"{_whose(then.frame)}: {show(test)}"
        return [(frozenset({(text, holds)}), then), (frozenset({(text, not holds)}), other)]

    def _item(self, of: Value, key: Literal) -> Cases[Value] | None:
        """An entry of a tuple that is given as one."""
        found: Cases[Value] = []
        for facts, one in self.steps(of) or ():
            picked = item(one.term, key) if is_part(key) is None else part(one.term, is_part(key))  # type: ignore[arg-type]
            if picked == Item(one.term, key):
                return None
            found.append((facts, Value(picked, one.frame)))
        return found or None

    def _parameter(self, term: Parameter, frame: Frame) -> Cases[Value] | None:
        definition = frame.body.definition
        if term.function != definition.key:
            return None
        bound = frame.bound.get(term.name)
        if bound is not None:
            return [(NO_FACTS, bound)]
        if frame.bound or definition.short == "__init__":
            return None  # left to its default, or given by whoever makes the object
        callers = list(self.callers(frame))
        if not 0 < len(callers) <= MOST_CALLERS:
            return None
        # All parameters are told by one and the same caller.
        return [
            (one_of(f"call of {definition.key}", number, len(callers)), caller.bound[term.name])
            for number, caller in enumerate(callers)
            if term.name in caller.bound
        ] or None

    def callers(self, frame: Frame) -> Iterator[Frame]:
        """The frame once for each call of its definition on the same object, arguments bound."""
        definition, one = frame.body.definition, frame.this
        for body, call in self._own_calls(one.kind, definition.short) if one else ():
            bound = self.bind(call, definition, Frame(body, one))
            yield Frame(frame.body, one, bound)

    def _own_calls(self, kind: str, name: str) -> list[tuple[Body, Call]]:
        """Calls of a method by the methods of the same object."""
        if (kind, name) not in self._called:
            self._called[kind, name] = [
                (body, site.call)
                for method, text in self._methods(kind)
                if f".{name}(" in text and (body := self.program.body(method)) is not None
                for site in body.calls
                if site.call.name == name and isinstance(site.call.receiver, This)
            ]
        return self._called[kind, name]

    def bind(self, call: Call, definition: Definition, frame: Frame) -> dict[str, Value]:
        bound = self.program.bind(call, definition)
        return {name: Value(term, frame) for name, term in bound.items()}

    def called(self, value: Value) -> list[Frame]:
        """Frames of what a call runs: its own method of an object whose class is known."""
        call, frame = value.term, value.frame
        if not isinstance(call, Call) or self.program.constructed(call):
            return []
        if call.receiver is None:
            key = self.program.lookup(call.callee)
            definition = self.program.definition(key) if key else None
            body = self.program.body(definition) if definition else None
            if definition is None or body is None:
                return []
            return [Frame(body, None, self.bind(call, definition, frame))]
        found: list[Frame] = []
        if call.name in apis().common:
            return found
        for one, start in self._receivers(call.receiver, frame):
            definition = self._method(start, call.name)
            body = self.program.body(definition) if definition else None
            if definition is not None and body is not None:
                found.append(Frame(body, one, self.bind(call, definition, frame)))
        return found

    def _receivers(self, receiver: Term, frame: Frame) -> list[tuple[Object, str]]:
        """Objects that a method is called of, each with the class where it is looked up first."""
        match receiver:
            case Call(callee="super", receiver=None):
                definition = frame.body.definition
                bases = self.program.family(f"{definition.path}::{definition.class_name}")[1:2]
                return [(frame.this or Object(base), base) for base in bases]
        found = {one.kind: one for _, all_ in self.objects(Value(receiver, frame)) for one in all_}
        return [(one, kind) for kind, one in found.items()]

    def _method(self, kind: str, name: str) -> Definition | None:
        for key in self.program.family(kind):
            found = self.program.definition(f"{key}.{name}")
            if found is not None:
                return None if self.program.is_abstract(found) else found
        return None

    def results(self, value: Value) -> Cases[Value] | None:
        """What a call of the project returns."""
        found: Cases[Value] = []
        for inner in self.called(value):
            for root in inner.body.returns:
                if root.term != Literal(None):
                    found.append((self.facts_at(inner, root.where), Value(root.term, inner)))
        return found[:MOST_CASES] or None

    def computed(self, one: Object, name: str) -> Cases[Value] | None:
        """What a property of an object returns; None where it is none."""
        definition = self._method(one.kind, name)
        if definition is None or "property" not in " ".join(definition.decorators):
            return None
        body = self.program.body(definition)
        frame = Frame(body, one) if body else None
        if body is None or frame is None:
            return None
        return [(self.facts_at(frame, r.where), Value(r.term, frame)) for r in body.returns]

    # -- fields

    def stores(self, one: Object, name: str) -> list["Put"]:
        """What the field `name` of an object is given, empty and missing values left out."""
        found = self._given_when_made(one, name)
        stores = [
            (body, store)
            for body, store in self._own_stores(one.kind, name)
            if not is_empty(store.value) and store.value != Field(store.of, name)
        ]
        methods = list(dict.fromkeys(body.definition.key for body, _ in stores))
        for body, store in stores:
            frame = Frame(body, one)
            facts = self.facts_at(frame, store.where)
            if len(methods) > 1:
                number = methods.index(body.definition.key)
                facts |= {(f"{one.kind}: {key}", n == number) for n, key in enumerate(methods)}
            whole = store.key is None and not store.appended
            found.append(Put(facts, Value(store.value, frame), whole, store.key))
        return found

    def _own_stores(self, kind: str, name: str) -> list[tuple[Body, Store]]:
        """What the methods that an object of this class runs put into its field."""
        if (kind, name) not in self._stored:
            written = re.compile(rf"\.{re.escape(name)}\b(?!\()")
            self._stored[kind, name] = [
                (body, store)
                for definition, text in self._methods(kind)
                if written.search(text)
                and self._runs(kind, definition)
                and (body := self.program.body(definition)) is not None
                for store in body.stores
                if store.name == name and isinstance(store.of, This)
            ]
        return self._stored[kind, name]

    def _runs(self, kind: str, definition: Definition) -> bool:
        """Whether an object of this class runs a method of its own or a base's: not one that is
        replaced, nor one that only replaced methods call."""
        key = (kind, definition.key)
        if key not in self._run:
            self._run[key] = True  # methods that call each other
            self._run[key] = self.program.runs_on(definition, kind) and self._is_called(
                kind, definition
            )
        return self._run[key]

    def _is_called(self, kind: str, definition: Definition) -> bool:
        called = f".{definition.short}("
        callers = [
            method
            for method, text in self._methods(kind)
            if method != definition and called in text
        ]
        return not callers or any(self._runs(kind, caller) for caller in callers)

    def facts_at(self, frame: Frame, where: Where) -> Facts:
        """The tests that a place in a body stands under."""
        found: set[tuple[str, bool]] = set()
        for guard in frame.body.guards:
            if not guard.raises and guard.where.dominates(where):
                test, holds = guard.condition, True
                while isinstance(test, Not):
                    test, holds = test.of, not holds
                found.add((f"{_whose(frame)}: {show(test)}", holds))
        return frozenset(found)

    def _methods(self, kind: str) -> list[tuple[Definition, str]]:
        """All methods of a class and of its bases, nearest first, each with its text."""
        if kind not in self._listed:
            self._listed[kind] = []
            for key in self.program.family(kind):
                path, _, name = key.partition("::")
                source = self.program.outline(path)
                all_ = source.definitions.values() if source else ()
                own = (d for d in all_ if d.class_name == name)
                self._listed[kind] += [(d, self.program.text(d)) for d in own]
        return self._listed[kind]

    def _given_when_made(self, one: Object, name: str) -> list["Put"]:
        """The argument that a class without a constructor keeps under its own name."""
        known = self.program.class_at(one.kind)
        made = one.made
        if known is None or made is None or not isinstance(made.term, Call):
            return []
        if name not in known.annotated or self._method(one.kind, "__init__") is not None:
            return []
        named = dict(zip(known.annotated, made.term.arguments, strict=False))
        term = (named | dict(made.term.keywords)).get(name)
        return [Put(NO_FACTS, Value(term, made.frame))] if term and not is_empty(term) else []

    # -- objects

    def objects(self, value: Value, depth: int = 0) -> Cases[tuple[Object, ...]]:
        """The objects that a value is or holds, in each case; those nobody knows left out."""
        frame = value.frame
        key = (value.term, frame.body.definition.key, frame.this.kind if frame.this else "")
        if depth > DEEPEST or key in self._going:
            return [(NO_FACTS, ())]
        self._going.add(key)
        try:
            return self._objects(value, depth)
        finally:
            self._going.discard(key)

    def _objects(self, value: Value, depth: int) -> Cases[tuple[Object, ...]]:
        term, frame = value.term, value.frame
        nothing: Cases[tuple[Object, ...]] = [(NO_FACTS, ())]

        def of(inner: Term) -> Cases[tuple[Object, ...]]:
            return self.objects(Value(inner, frame), depth + 1)

        match term:
            case This(owner):
                one = frame.this
                if one is not None and owner in self.program.family(one.kind):
                    return [(NO_FACTS, (one,))]
                return [(NO_FACTS, (Object(owner),))]
            case Each(inner, _) | Slice(inner, _, _):
                return of(inner)
            case Item(inner, key) if is_part(key) is None:
                return of(inner)
            case Many(element, _, _, _):
                return of(element)
            case Sequence(items) | Mapping(_, items):
                return together(of(one) for one in items)
            case Operation("+", left, right):
                return together((of(left), of(right)))
            case Operation("or", left, right):
                return self._either((of(left), of(right)))
            case Parameter(function, _) if function == frame.body.definition.key:
                steps = self.steps(value)
                if steps is None:
                    known = self.program.type_of(term, frame.body)
                    return [(NO_FACTS, (Object(known),))] if known else nothing
                return self._of_steps(steps, depth)
            case Call():
                made = self._made(value, depth)
                if made is not None:
                    return made
                steps = self.steps(value)
                found = self._of_steps(steps, depth) if steps else nothing
                if any(all_ for _, all_ in found):
                    return found
                declared = {self._declared(inner) or "" for inner in self.called(value)} - {""}
                return self._either([(NO_FACTS, (Object(kind),))] for kind in sorted(declared))
            case Field():
                return self._held(value, depth)
            case Choice() | Item():
                steps = self.steps(value)
                return self._of_steps(steps, depth) if steps else nothing
        return nothing

    def _of_steps(self, steps: Cases[Value], depth: int) -> Cases[tuple[Object, ...]]:
        found: Cases[tuple[Object, ...]] = []
        for facts, one in steps:
            found += given(self.objects(one, depth + 1), facts)
        return found[:MOST_CASES] or [(NO_FACTS, ())]

    def _either(self, all_: Iterable[Cases[tuple[Object, ...]]]) -> Cases[tuple[Object, ...]]:
        found = [case for cases in all_ for case in cases if case[1]]
        return found[:MOST_CASES] or [(NO_FACTS, ())]

    def _held(self, value: Value, depth: int) -> Cases[tuple[Object, ...]]:
        """Objects in a field: one of what it is set to, and all that is put into it."""
        assert isinstance(value.term, Field)
        result: Cases[tuple[Object, ...]] = []
        for facts, owners in self.objects(Value(value.term.of, value.frame), depth + 1):
            held = together(self._held_by(one, value.term.name, depth) for one in owners)
            result += given(held, facts)
        return result[:MOST_CASES] or [(NO_FACTS, ())]

    def _held_by(self, one: Object, name: str, depth: int) -> Cases[tuple[Object, ...]]:
        computed = self.computed(one, name)
        if computed is not None:
            return self._of_steps(computed, depth)
        puts = self.stores(one, name)
        either = self._either(
            given(self.objects(put.value, depth + 1), put.facts) for put in puts if put.whole
        )
        parts = (self.objects(put.value, depth + 1) for put in puts if not put.whole)
        return together([either, *parts])

    def _made(self, value: Value, depth: int) -> Cases[tuple[Object, ...]] | None:
        """The object that a constructor makes, of a class that is named or handed over."""
        call, frame = value.term, value.frame
        assert isinstance(call, Call)
        known = self.program.constructed(call)
        if known is not None:
            return [(NO_FACTS, (Object(known, value),))]
        if call.callee or call.receiver is None:
            return None
        found: Cases[tuple[Object, ...]] = [
            (facts, (Object(kind, value),))
            for facts, kind in self._classes(Value(call.receiver, frame), depth)
        ]
        declared = self._declared(frame)
        if not found and declared and any(r.term == call for r in frame.body.returns):
            return [(NO_FACTS, (Object(declared, value),))]
        return found or None

    def _classes(self, value: Value, depth: int) -> Cases[str]:
        """Keys of the classes that a value can stand for."""
        if depth > DEEPEST:
            return []
        match value.term:
            case Global(name):
                key = self.program.lookup(name)
                return [(NO_FACTS, key)] if key and self.program.class_at(key) else []
        found: Cases[str] = []
        for facts, one in self.steps(value) or ():
            found += given(self._classes(one, depth + 1), facts)
        return found[:MOST_CASES]

    def _declared(self, frame: Frame) -> str | None:
        definition = frame.body.definition
        return self.program.class_named(definition.path, definition.returns)

    # -- what an object was made with

    def constructor(self, one: Object, key: str) -> Frame | None:
        """The frame of the constructor `key` (the object's own, or one of its bases') as it ran
        when the object was made; None where nobody knows the call that made it."""
        made = one.made
        if made is None or not isinstance(made.term, Call):
            return None
        for base in self.program.family(one.kind):
            definition = self.program.definition(f"{base}.__init__")
            body = self.program.body(definition) if definition else None
            if definition is None or body is None:
                continue
            frame = Frame(body, one, self.bind(made.term, definition, made.frame))
            return self._inner_constructor(frame, key, 4)
        return None

    def _inner_constructor(self, frame: Frame, key: str, depth: int) -> Frame | None:
        definition = frame.body.definition
        if definition.key == key:
            return frame
        if depth == 0:
            return None
        owner = f"{definition.path}::{definition.class_name}"
        for site in frame.body.calls:
            match site.call:
                case Call(callee="__init__", receiver=Call(callee="super", receiver=None)):
                    for base in self.program.family(owner)[1:]:
                        inner = self.program.definition(f"{base}.__init__")
                        body = self.program.body(inner) if inner else None
                        if inner is not None and body is not None:
                            bound = self.bind(site.call, inner, frame)
                            return self._inner_constructor(
                                Frame(body, frame.this, bound), key, depth - 1
                            )
        return None


def is_empty(value: Term) -> bool:
    """What stands in a field until something is put there."""
    match value:
        case Literal(None) | Sequence(()) | Mapping((), ()) | Opaque():
            return True
        case Many(Literal(None), _, _, _):
            return True
        case Call(callee="list" | "dict", receiver=None, arguments=()):
            return True
    return False
