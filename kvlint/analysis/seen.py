"""Values followed back through the frames they are seen in: one step at a time, and to the
objects that they are."""

from collections.abc import Iterable, Iterator

from kvlint.analysis.forms import is_part, item, part
from kvlint.analysis.frames import (
    DEEPEST,
    MOST_CASES,
    NO_FACTS,
    Cases,
    Frame,
    Object,
    Put,
    Value,
    choice,
    facts_at,
    given,
    one_of,
    together,
)
from kvlint.analysis.link import Program
from kvlint.analysis.members import Members
from kvlint.analysis.outline import Definition
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
    Opaque,
    Operation,
    Parameter,
    Sequence,
    Slice,
    Term,
    This,
)
from kvlint.analysis.vocabulary import apis
from kvlint.findings import Span

MOST_CALLERS = 4
MOST_STEPS = 8_000  # for one question; real code takes some hundreds


class Seen:
    """Follows values of one program back through the frames they are seen in."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.members = Members(program)
        self._left = MOST_STEPS
        self._going: set[tuple[Term, str, str]] = set()

    def frame(self, definition: Definition, kind: str | None = None) -> Frame | None:
        """Where a question starts: a definition, run on some object of the class `kind`."""
        self._left = MOST_STEPS
        body = self.program.body(definition)
        if body is None:
            return None
        return Frame(body, Object(kind) if kind else None)

    def span(self, value: Value) -> Span:
        """Where a value stands."""
        body = value.frame.body
        found = body.place_of(value.term)
        return self.program.span(body, found[0] if found else -1)

    # -- one step back

    def steps(self, value: Value) -> Cases[Value] | None:
        """What a value is given as; None where it is given nowhere (it is what it is)."""
        term, frame = value.term, value.frame
        self._left -= 1
        if self._left < 0:
            return None
        match term:
            case Choice(test, then, other):
                return choice(test, Value(then, frame), Value(other, frame))
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
        for body, call in self.members.calls(one.kind, definition.short) if one else ():
            bound = self.bind(call, definition, Frame(body, one))
            yield Frame(frame.body, one, bound)

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
            definition = self.members.method(start, call.name)
            body = self.program.body(definition) if definition else None
            if definition is not None and body is not None:
                found.append(Frame(body, one, self.bind(call, definition, frame)))
        return found

    def _receivers(self, receiver: Term, frame: Frame) -> list[tuple[Object, str]]:
        """Objects that a method is called of, each with the class where it is looked up first."""
        match receiver:
            case Call(callee="super", receiver=None):
                definition = frame.body.definition
                bases = self.program.family(definition.owner)[1:2]
                return [(frame.this or Object(base), base) for base in bases]
        found = {one.kind: one for _, all_ in self.objects(Value(receiver, frame)) for one in all_}
        return [(one, kind) for kind, one in found.items()]

    def results(self, value: Value) -> Cases[Value] | None:
        """What a call of the project returns."""
        found: Cases[Value] = []
        for inner in self.called(value):
            for root in inner.body.returns:
                if root.term != Literal(None):
                    found.append((facts_at(inner, root.where), Value(root.term, inner)))
        return found[:MOST_CASES] or None

    def computed(self, one: Object, name: str) -> Cases[Value] | None:
        """What a property of an object returns; None where it is none."""
        definition = self.members.method(one.kind, name)
        if definition is None or "property" not in " ".join(definition.decorators):
            return None
        body = self.program.body(definition)
        frame = Frame(body, one) if body else None
        if body is None or frame is None:
            return None
        return [(facts_at(frame, r.where), Value(r.term, frame)) for r in body.returns]

    # -- fields

    def stores(self, one: Object, name: str) -> list[Put]:
        """What the field `name` of an object is given, empty and missing values left out."""
        found = self._given_when_made(one, name)
        stores = [
            (body, store)
            for body, store in self.members.stores(one.kind, name)
            if not is_empty(store.value) and store.value != Field(store.of, name)
        ]
        methods = list(dict.fromkeys(body.definition.key for body, _ in stores))
        for body, store in stores:
            frame = Frame(body, one)
            facts = facts_at(frame, store.where)
            if len(methods) > 1:
                number = methods.index(body.definition.key)
                facts |= {(f"{one.kind}: {key}", n == number) for n, key in enumerate(methods)}
            whole = store.key is None and not store.appended
            found.append(Put(facts, Value(store.value, frame), whole, store.key))
        return found

    def _given_when_made(self, one: Object, name: str) -> list[Put]:
        """The argument that a class without a constructor keeps under its own name."""
        known = self.program.class_at(one.kind)
        made = one.made
        if known is None or made is None or not isinstance(made.term, Call):
            return []
        if name not in known.annotated or self.members.method(one.kind, "__init__") is not None:
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
        owner = definition.owner
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
