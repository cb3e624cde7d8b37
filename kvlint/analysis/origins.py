"""Where a value comes from: backwards through arguments, fields, returns and the wire.

`Origins.of` yields what a term can be, one consistent case at a time: the facts chosen
on the way (which branch of which test) come with it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from kvlint.analysis.bodies import Body, Store
from kvlint.analysis.forms import is_part, item, part
from kvlint.analysis.link import Program, default_of
from kvlint.analysis.outline import Definition
from kvlint.analysis.showing import brief, show
from kvlint.analysis.terms import (
    Call,
    Choice,
    Each,
    Field,
    Fold,
    Item,
    Literal,
    Many,
    Mapping,
    Opaque,
    Operation,
    Parameter,
    Sequence,
    Term,
)
from kvlint.analysis.vocabulary import apis, words
from kvlint.analysis.wire import Wire
from kvlint.findings import Step

DEPTH = 14
MOST = 24  # origins of one value; more are not worth telling apart
_SENTINELS = (0, None, -1, "")


@dataclass(frozen=True, slots=True)
class Frame:
    """The call through which a body is looked at: parameter -> argument of `body`."""

    callee: str
    bound: tuple[tuple[str, Term], ...]
    body: Body
    outer: "Frame | None"
    step: Step


@dataclass(frozen=True, slots=True)
class Origin:
    """`term` in `body` is what the value can be. `facts`: tests chosen, by their text."""

    term: Term
    body: Body
    frame: Frame | None
    facts: frozenset[tuple[str, bool]] = frozenset()
    steps: tuple[Step, ...] = ()
    by_name: bool = False
    wire: bool = False


@dataclass(slots=True)
class Origins:
    program: Program
    wire: Wire = field(init=False)

    def __post_init__(self) -> None:
        self.wire = Wire(self.program)

    def of(self, term: Term, body: Body, frame: Frame | None = None) -> list[Origin]:
        """Origins of `term`: each is no parameter, field, choice or project call any more."""
        found: list[Origin] = []
        for origin in self._of(Origin(term, body, frame), DEPTH, frozenset()):
            if origin not in found:
                found.append(origin)
            if len(found) >= MOST:
                break
        return found

    def nearby(self, term: Term, body: Body, frame: Frame | None) -> list[Origin]:
        """As `of`, but no further than the call through which the body is looked at:
        fields and the arguments of unknown callers stay as they are."""
        found: list[Origin] = []
        stack = [Origin(term, body, frame)]
        while stack and len(found) < MOST:
            at = stack.pop()
            match at.term:
                case Choice(test, then, other):
                    stack.extend(self._choice(at, test, then, other))
                case Parameter(function, _) if at.frame is not None and at.frame.callee == function:
                    stack.extend(self.step(at))
                case Call() if (
                    put := self.program.inline(at.term, at.body)
                ) != at.term and isinstance(put, Operation | Choice):
                    stack.append(_with(at, put))
                case _ if at.term not in (o.term for o in found):
                    found.append(at)
        return found

    def plain(self, at: Origin) -> Term | None:
        """The arithmetic of a helper, in the caller's own terms: they tell more than its
        parameters."""
        put = self.program.inline(at.term, at.body)
        return put if put != at.term and isinstance(put, Operation | Choice) else None

    def _of(self, at: Origin, depth: int, seen: frozenset[tuple[str, Term]]) -> Iterator[Origin]:
        key = (at.body.definition.key, at.term)
        if depth <= 0 or key in seen:
            yield _with(at, Opaque(f"{brief(at.term, 60)} is followed no further"))
            return
        seen |= {key}
        steps = list(self.step(at))
        if not steps:
            yield at
            return
        for origin in steps:
            yield from self._of(origin, depth - 1, seen)

    def step(self, at: Origin) -> Iterator[Origin]:
        """One step back; nothing when `at.term` is an origin already."""
        match at.term:
            case Choice(test, then, other):
                yield from self._choice(at, test, then, other)
            case Parameter(function, name):
                yield from self._parameter(at, function, name)
            case Field(of, name):
                yield from self._field(at, of, name)
            case Item(of, key):
                yield from self._item(at, of, key)
            case Each(Field() | Parameter() | Call() as of, _):
                for origin in self.step(_with(at, of)):
                    match origin.term:
                        case Many(element, _, _):
                            yield _with(origin, element)
            case Call() as call:
                yield from self._call(at, call)

    def _choice(self, at: Origin, test: Term, then: Term, other: Term) -> Iterator[Origin]:
        text = show(test)
        known = dict(at.facts).get(text)
        decided = known if known is not None else self.decide(test, at)
        for value, taken in ((then, True), (other, False)):
            if decided in (None, taken):
                facts = at.facts | {(text, taken)} if decided is None else at.facts
                yield Origin(value, at.body, at.frame, facts, at.steps, at.by_name, at.wire)

    def decide(self, test: Term, at: Origin) -> bool | None:
        """Whether a `x is None` test is settled by what the caller gives."""
        match test:
            case Operation("is" | "is not" as symbol, Parameter(function, name), Literal(None)):
                if at.frame is None or at.frame.callee != function:
                    return None
                value = dict(at.frame.bound).get(name)
                if value is None or value == Literal(None):
                    return symbol == "is"
                if isinstance(value, Parameter):
                    inner = Origin(value, at.frame.body, at.frame.outer)
                    return self.decide(Operation(symbol, value, Literal(None)), inner)
                return symbol == "is not"
            case Operation("is" | "is not" as symbol, Operation() | Fold() | Many(), Literal(None)):
                return symbol == "is not"
            case Operation("is" | "is not" as symbol, Literal(value), Literal(None)):
                return (value is None) == (symbol == "is")
        return None

    def _parameter(self, at: Origin, function: str, name: str) -> Iterator[Origin]:
        if at.frame is not None and at.frame.callee == function:
            value = dict(at.frame.bound).get(name)
            if value is None:
                callee = self.program.definition(function)
                yield _with(at, default_of(callee, name) if callee else Literal(None))
                return
            yield Origin(
                value, at.frame.body, at.frame.outer, at.facts, (*at.steps, at.frame.step),
                at.by_name, at.wire,
            )  # fmt: skip
            return
        definition = self.program.definition(function)
        if definition is None:
            return
        for frame in self.frames(definition):
            value = dict(frame.bound).get(name, default_of(definition, name))
            steps = (*at.steps, frame.step)
            yield Origin(value, frame.body, None, at.facts, steps, at.by_name, at.wire)

    def frames(self, definition: Definition) -> list[Frame]:
        """One frame for each call of `definition`."""
        result: list[Frame] = []
        for body, site in self.program.callers(definition):
            bound = self.program.bind(site.call, definition)
            step = Step(self.program.span(body, site.place), f"call of {definition.short}")
            result.append(Frame(definition.key, tuple(bound.items()), body, None, step))
        return result

    def _field(self, at: Origin, of: Term, name: str) -> Iterator[Origin]:
        owner = self.program.type_of(of, at.body)
        for member in self.program.family(owner) if owner else ():
            computed = self.program.definition(f"{member}.{name}")
            if computed is not None and "property" in " ".join(computed.decorators):
                yield from self._call(at, Call(name, of, ()))
                return
        stores = [
            (b, s) for b, s in self.program.stores(name, owner)
            if s.key is None and not s.appended and not _is_sentinel(s.value)
            and s.value != Field(s.of, name)
        ]  # fmt: skip
        related = self._of_kind(stores, owner)
        by_name = not related
        for body, store in related or stores:
            step = Step(self.program.span(body, store.place), f"{name} = {brief(store.value, 70)}")
            yield Origin(
                store.value, body, None, at.facts, (*at.steps, step),
                at.by_name or (by_name and len(stores) > 1), at.wire,
            )  # fmt: skip

    def _of_kind(
        self, stores: list[tuple[Body, Store]], owner: str | None
    ) -> list[tuple[Body, Store]]:
        """The stores into objects of the class `owner`, its bases or its heirs."""
        if owner is None:
            return []
        family = self.program.family(owner)
        return [
            (b, s)
            for b, s in stores
            if (kind := self.program.type_of(s.of, b)) is not None
            and (kind in family or owner in self.program.family(kind))
        ]

    def _item(self, at: Origin, of: Term, key: Term) -> Iterator[Origin]:
        number = is_part(key)
        match of:
            case Call() as call:
                for origin in self._call(at, call):
                    yield _with(
                        origin,
                        part(origin.term, number) if number is not None else item(origin.term, key),
                    )
            case Parameter(_, name) if isinstance(key, Literal) and _is_message(name):
                if isinstance(key.value, int):
                    for body, term, step in self.wire.received(at.body, of, key.value):
                        yield Origin(
                            term, body, None, at.facts, (*at.steps, step), at.by_name, True
                        )
            case Field(owner, name):
                yield from self._keyed(at, owner, name, key)
                if number is not None:
                    for origin in self._field(at, owner, name):
                        if isinstance(origin.term, Sequence):
                            yield _with(origin, part(origin.term, number))
            case Item(Field(owner, name), inner) if number is not None:
                for origin in self._keyed(at, owner, name, inner):
                    yield _with(origin, part(origin.term, number))
            case Mapping(keys, values):
                for known, value in zip(keys, values, strict=True):
                    if known == key:
                        yield _with(at, value)

    def _keyed(self, at: Origin, of: Term, name: str, key: Term) -> Iterator[Origin]:
        """`of.name[key]`: stores under that key; a parameter as key is told apart by call."""
        owner = self.program.type_of(of, at.body)
        for member in self.program.family(owner) if owner else ():
            computed = self.program.definition(f"{member}.{name}")
            if computed is not None and "property" in " ".join(computed.decorators):
                yield from self._call(at, Call(name, of, ()))
                return
        stores = [
            (b, s)
            for b, s in self.program.stores(name, owner)
            if s.key is not None and not s.appended
        ]
        for body, store in self._of_kind(stores, owner) or stores:
            step = Step(self.program.span(body, store.place), f"kept in {name}[...]")
            match store.key:
                case Parameter(function, parameter):
                    definition = self.program.definition(function)
                    frames = self.frames(definition) if definition else []
                    for frame in frames:
                        given = dict(frame.bound).get(parameter, Literal(None))
                        if _same_key(given, key):
                            yield Origin(
                                store.value, body, frame, at.facts,
                                (*at.steps, frame.step, step), at.by_name, at.wire,
                            )  # fmt: skip
                case stored if stored is not None and _same_key(stored, key):
                    yield Origin(
                        store.value, body, None, at.facts, (*at.steps, step), at.by_name, at.wire
                    )

    def _call(self, at: Origin, call: Call) -> Iterator[Origin]:
        if call.name in apis().transports:
            return
        put = self.plain(at)
        if put is not None:
            yield _with(at, put)
            return
        found, by_name = self.program.callees(call, at.body)
        if len(found) > 3:
            return
        for callee in found:
            inner = self.program.body(callee)
            if inner is None or callee.short == "__init__":
                continue
            bound = tuple(self.program.bind(call, callee).items())
            span = self.program.span_of(at.body, call)
            frame = Frame(callee.key, bound, at.body, at.frame, Step(span, f"calls {callee.short}"))
            for root in inner.returns:
                if root.term != Literal(None):
                    yield Origin(
                        root.term, inner, frame, at.facts, at.steps, at.by_name or by_name, at.wire
                    )


def _with(origin: Origin, term: Term) -> Origin:
    return Origin(
        term, origin.body, origin.frame, origin.facts, origin.steps, origin.by_name, origin.wire
    )


def _is_sentinel(value: Term) -> bool:
    match value:
        case Literal(constant):
            return any(constant is s or constant == s for s in _SENTINELS)
        case Sequence(()) | Mapping((), ()):
            return True
    return False


def _is_message(name: str) -> bool:
    return bool(
        set(words(name)) & {"msg", "message", "frames", "payload", "parts", "bytes", "data"}
    )


def _same_key(one: Term, other: Term) -> bool:
    if isinstance(one, Literal) or isinstance(other, Literal):
        return one == other
    return True
