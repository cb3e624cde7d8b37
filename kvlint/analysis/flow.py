"""From a value to the memory it decides about: which sinks does a value reach?

Forward, on demand: inside one body by containment, on through fields, arguments and
return values. A value that is only logged, compared or tested reaches nothing.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.bodies import Body, Mark, Where
from kvlint.analysis.carrying import Carrying, Leaf, is_running
from kvlint.analysis.entries import entry_number
from kvlint.analysis.forms import GRID, PART
from kvlint.analysis.idioms import handed_over
from kvlint.analysis.link import Program
from kvlint.analysis.outline import Definition
from kvlint.analysis.roles import (
    Strength,
    counts_regions,
    is_address,
    is_byte_buffer,
    joins_lists,
    numbers_slot,
    region_list,
)
from kvlint.analysis.showing import brief, show
from kvlint.analysis.terms import (
    Arange,
    Call,
    Choice,
    Field,
    Index,
    Item,
    Literal,
    Many,
    Operation,
    Parameter,
    Sequence,
    Slice,
    Term,
    This,
    last_name,
)
from kvlint.analysis.vocabulary import apis, nouns, words

DEPTH = 6
MOST_TESTS = 4
ENOUGH = 24  # sinks of one value; those further off tell nothing new
_STRIDES = frozenset({"item length", "stride", "region length", "shape", "element size"})


@dataclass(frozen=True, slots=True)
class Hop:
    """One stop of a value on its way; its place is worked out only if it is shown."""

    body: Body
    mark: Mark
    says: str


@dataclass(frozen=True, slots=True)
class Sink:
    """A place where a value decides about memory of more than its own region.

    `role`: address, length, count, stride, device, index or wire; `where` it stands in
    `body`. `crossing`: where the value left the body it came from (the sink's own place
    when it never did: `home`).
    """

    role: str
    body: Body
    where: Where
    crossing: Where
    home: bool
    hops: tuple[Hop, ...]
    by_name: bool = False
    tests: tuple[tuple[Term, bool], ...] = ()  # of the choices it stands in, and how they went

    @property
    def says(self) -> str:
        return self.hops[-1].says


@dataclass(frozen=True, slots=True)
class _Carrier:
    """Something that holds the value: a parameter, a field, what a function returns."""

    kind: str
    owner: str
    name: str
    part: int | None = None


@dataclass(frozen=True, slots=True)
class _Way:
    """A carrier on the way to be looked into, and how the value came there."""

    carrier: _Carrier
    crossing: Where
    hops: tuple[Hop, ...]
    by_name: bool


class Flow(Carrying):
    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._within: dict[tuple[_Carrier, str], list[Sink]] = {}
        self._onward: dict[_Carrier, list[_Way]] = {}

    def sinks(self, body: Body, leaf: Leaf, quantity: str, depth: int = DEPTH) -> list[Sink]:
        """Sinks that a value recognised by `leaf` in `body` reaches, nearest first.

        Breadth first, each carrier looked into once for each way out of `body`, `depth`
        functions far; what a name alone connects comes last.
        """
        found = list(self._home(body, leaf, quantity))
        ways = list(self._leaves(body, leaf))
        seen: set[tuple[_Carrier, Where]] = set()
        for _ in range(depth):
            further: list[_Way] = []
            for way in sorted(ways, key=lambda w: w.by_name):
                if (way.carrier, way.crossing) in seen:
                    continue
                seen.add((way.carrier, way.crossing))
                found += [_after(way, sink) for sink in self._sinks_of(way.carrier, quantity)]
                further += [_beyond(way, one) for one in self._ways_from(way.carrier)]
            if len(found) >= ENOUGH:
                break
            ways = further
        return found

    def _sinks_of(self, carrier: _Carrier, quantity: str) -> list[Sink]:
        key = (carrier, quantity)
        if key not in self._within:
            self._within[key] = [
                dataclasses.replace(sink, by_name=by_name)
                for body, leaf, by_name in self._holders(carrier)
                for sink in self._home(body, leaf, quantity)
            ]
        return self._within[key]

    def _ways_from(self, carrier: _Carrier) -> list[_Way]:
        if carrier not in self._onward:
            self._onward[carrier] = [
                dataclasses.replace(way, by_name=by_name)
                for body, leaf, by_name in self._holders(carrier)
                for way in self._leaves(body, leaf)
            ]
        return self._onward[carrier]

    # -- one body

    def _home(self, body: Body, leaf: Leaf, quantity: str) -> Iterator[Sink]:
        """Sinks in the body itself."""
        seen: set[tuple[str, int]] = set()
        for root in body.roots + body.returns:
            held = root.term.holding(leaf.kinds)
            if not any(leaf.is_it(t) or is_running(t) for t in held):
                continue
            for tests, part in _with_tests(root.term, leaf.kinds):
                for role, says in self._uses(part, body, leaf, root.where, quantity):
                    if (role, root.place) not in seen or tests:
                        seen.add((role, root.place))
                        hop = Hop(body, root.place, says)
                        yield Sink(role, body, root.where, root.where, True, (hop,), False, tests)
        yield from self._loop_counts(body, leaf)

    def _loop_counts(self, body: Body, leaf: Leaf) -> Iterator[Sink]:
        """`for block in range(n)` around descriptors of each region."""
        for loop in body.loops.values():
            match loop.over:
                case Arange(count) if self.carries(count, body, leaf):
                    pass
                case _:
                    continue
            for root in body.roots:
                if loop.id in root.where.loops and _is_descriptor(root.term):
                    hop = Hop(body, loop.place, "is the number of descriptors of each region")
                    yield Sink("count", body, root.where, root.where, True, (hop,))
                    break

    def _uses(
        self, term: Term, body: Body, leaf: Leaf, where: Where, quantity: str
    ) -> Iterator[tuple[str, str]]:
        """What one term, not counting what it is made of, does with the value."""
        match term:
            case Operation("+" | "-", left, right) if not joins_lists(left, right):
                for base, offset in ((left, right), (right, left)):
                    if (
                        is_address(base)
                        and not is_address(offset)
                        and self.carries(offset, body, leaf)
                        and not _own_region(base)
                    ):
                        yield self._in_address(base, offset, body, leaf)
            case Operation("*", left, right):
                for one, other in ((left, right), (right, left)):
                    if self.carries(one, body, leaf) and _has_region_count(other, body):
                        yield (
                            "length",
                            f"is multiplied by the number of regions ({brief(other, 50)})",
                        )
                    elif quantity in _STRIDES and numbers_slot(other):
                        if self.carries(one, body, leaf) and not _own_region(other):
                            yield "stride", f"strides over pages ({brief(other, 40)} * it)"
            case Sequence(items) if len(items) >= 2 and is_address(items[0]):
                if not _own_region(items[0]):
                    yield from self._in_descriptor(items, body, leaf, quantity)
            case Slice(of, lower, upper) if is_byte_buffer(of) and where.loops:
                bounds = [b for b in (lower, upper) if b is not None]
                if any(self.carries(b, body, leaf) for b in bounds):
                    yield "length", f"cuts {brief(of, 40)} for each region"
            case Call() as call:
                yield from self._in_call(call, body, leaf, quantity, where)

    def _in_address(self, base: Term, offset: Term, body: Body, leaf: Leaf) -> tuple[str, str]:
        for part in offset.walk():
            match part:
                case Operation("*", left, right):
                    for one, other in ((left, right), (right, left)):
                        if self.carries(one, body, leaf) and not isinstance(one, Arange | Index):
                            step = f"{brief(base, 40)} + {brief(other, 30)} * it"
                            return "stride", f"strides through memory ({step})"
        return "address", f"is added to the address {brief(base, 50)}"

    def _in_descriptor(
        self, items: tuple[Term, ...], body: Body, leaf: Leaf, quantity: str
    ) -> Iterator[tuple[str, str]]:
        for number, value in enumerate(items[1:], 1):
            if not self.carries(value, body, leaf) or is_address(value):
                continue
            role = {1: "length", 2: "device", 3: "stride", 4: "count"}.get(number, "length")
            if quantity != "device" and role == "device":
                role = "length"
            if (quantity == "device") != (role == "device"):
                continue
            yield role, f"is the {role} beside the address {brief(items[0], 50)}"

    def _in_call(
        self, call: Call, body: Body, leaf: Leaf, quantity: str, where: Where
    ) -> Iterator[tuple[str, str]]:
        name = call.name
        if name in apis().silent:
            return
        values = list(call.values())
        if name in apis().sends and _is_channel(call):
            if any(self.carries_whole(v, body, leaf) for v in values):
                yield "wire", f"is sent to the peer ({name})"
            return
        if name in apis().transports and quantity != "device":
            roles = apis().transports[name]
            for key in ("length", "address", "local_index", "remote_index"):
                position = roles.get(key)
                if isinstance(position, int) and position < len(call.arguments):
                    if self.carries(call.arguments[position], body, leaf):
                        says = "strides the indices" if "index" in key else f"is the {key}"
                        yield key.rpartition("_")[2], f"{says} handed to {name}"
            return
        if quantity in ("device", "dtype", "layout"):
            if self._is_message(call) and any(self.carries(v, body, leaf) for v in values):
                yield "wire", f"is part of the message {name}"
            return
        grid = dict(call.keywords).get(GRID)
        if grid is not None and self.carries(grid, body, leaf):
            if any(is_address(v) for v in call.arguments):
                yield "count", f"is the extent of a launch over every region ({name})"
                return
        if self._is_message(call):
            if any(self.carries(v, body, leaf) for v in values):
                yield "wire", f"is part of the message {name}"
        elif self._is_native_transfer(call, body) or self._registers(call, body):
            if any(self.carries(v, body, leaf) for v in values):
                pointers = any(_many_addresses(v, body) for v in values)
                if pointers:
                    yield "stride", f"is the geometry of every region in {name}"

    def _is_message(self, call: Call) -> bool:
        key = self.program.constructed(call)
        return key is not None and bool(self.program.external_bases(key) & apis().messages)

    def _registers(self, call: Call, body: Body) -> bool:
        """A call that no project file defines and that is told of every region."""
        return "register" in words(call.name) and not self.program.callees(call, body)[0]

    def _is_native_transfer(self, call: Call, body: Body) -> bool:
        """A function that no project file defines and whose name moves cache memory."""
        parts = set(words(call.name))
        if not parts & nouns().transfer or not parts & nouns().region:
            return False
        found, _ = self.program.callees(call, body)
        return not found or all("jit" in d.decorators for d in found)

    # -- between bodies

    def _leaves(self, body: Body, leaf: Leaf) -> Iterator[_Way]:
        """Ways out of a body: fields, arguments, what it returns."""
        for store in body.stores:
            if self.carries_whole(store.value, body, leaf):
                owner = self.program.type_of(store.of, body) or ""
                carrier = _Carrier("field", owner, store.name)
                says = f"kept in {show(store.of)}.{store.name}"
                yield _Way(carrier, store.where, (Hop(body, store.place, says),), False)
        for site in body.calls:
            for carrier, says, by_name in self._arguments(site.call, body, leaf):
                yield _Way(carrier, site.where, (Hop(body, site.place, says),), by_name)
        for root in body.returns:
            for part in self._returned_parts(root.term, body, leaf):
                definition = body.definition
                carrier = _Carrier("return", definition.key, definition.short, part)
                hop = Hop(body, root.place, f"returned by {definition.short}")
                yield _Way(carrier, root.where, (hop,), False)

    def _arguments(
        self, call: Call, body: Body, leaf: Leaf
    ) -> Iterator[tuple[_Carrier, str, bool]]:
        if call.name in apis().silent or call.name in apis().sends:
            return
        if not any(self.carries(value, body, leaf) for value in call.values()):
            return
        key = self.program.constructed(call)
        if key is None and isinstance(call.receiver, This) and not call.callee:
            key = call.receiver.owner
        made = self.program.class_at(key) if key else None
        if made is not None and key and self.program.definition(f"{key}.__init__") is None:
            given = [*zip(made.annotated, call.arguments, strict=False), *call.keywords]
            for name, value in given:
                if name in made.annotated and self.carries(value, body, leaf):
                    yield _Carrier("field", key, name), f"kept in {made.name}.{name}", False
            return
        call = handed_over(call)
        found, by_name = self.program.callees(call, body)
        for callee in found:
            for parameter, value in self.program.bind(call, callee).items():
                if self.carries(value, body, leaf):
                    carrier = _Carrier("parameter", callee.key, parameter)
                    says = f"passed to {callee.short} as {parameter}"
                    yield carrier, says, by_name and len(found) > 1

    def _returned_parts(self, term: Term, body: Body, leaf: Leaf) -> list[int | None]:
        """Which parts of a returned tuple carry the value; None stands for the whole."""
        if isinstance(term, Sequence):
            return [n for n, one in enumerate(term.items) if self.carries_whole(one, body, leaf)]
        return [None] if self.carries_whole(term, body, leaf) else []

    def _holders(self, carrier: _Carrier) -> Iterator[tuple[Body, Leaf, bool]]:
        program = self.program
        if carrier.kind == "parameter":
            definition = program.definition(carrier.owner)
            body = program.body(definition) if definition else None
            if body is not None:
                wanted = Parameter(carrier.owner, carrier.name)
                yield body, Leaf.of(wanted), False
        elif carrier.kind == "field":
            yield from self._field_holders(carrier)
        else:
            definition = program.definition(carrier.owner)
            if definition is None:
                return
            if {"property", "cached_property"} & set(definition.decorators):
                owner = definition.owner
                yield from self._field_holders(_Carrier("field", owner, definition.short))
                return
            for body in {id(b): b for b, _ in program.callers(definition)}.values():
                yield body, _returned(definition, carrier.part), False

    def _field_holders(self, carrier: _Carrier) -> Iterator[tuple[Body, Leaf, bool]]:
        program, name = self.program, carrier.name
        family = set(program.family(carrier.owner)) if carrier.owner else set()
        only = {
            s.of for _, s in program.stores(name, carrier.owner or None) if isinstance(s.of, This)
        }
        unique = len({o.owner for o in only if isinstance(o, This)} - family) == 0
        if not family and (not unique or name in apis().quantities):
            return
        for body in program.readers(name, carrier.owner):
            owner = body.definition.owner
            related = bool(family) and (owner in family or carrier.owner in program.family(owner))
            if related and not program.runs_on(body.definition, carrier.owner):
                continue

            def leaf(term: Term, related: bool = related, body: Body = body) -> bool:
                match term:
                    case Field(This(), found) if found == name:
                        return related
                    case Field(of, found) if found == name:
                        known = program.type_of(of, body)
                        return known is None or not family or known in family
                return False

            direct = related and any(
                isinstance(t, Field) and isinstance(t.of, This) and t.name == name
                for r in body.roots for t in r.term.holding(Field.bit)
            )  # fmt: skip
            yield body, Leaf(leaf, Field), not direct and not unique


def _with_tests(term: Term, kinds: int) -> Iterator[tuple[tuple[tuple[Term, bool], ...], Term]]:
    """The term and all in it that holds these kinds, with the tests of the choices on the way."""
    stack: list[tuple[tuple[tuple[Term, bool], ...], Term]] = [((), term)]
    while stack:
        tests, part = stack.pop()
        if not part.kinds & kinds:
            continue
        yield tests, part
        match part:
            case Choice(test, then, other) if len(tests) < MOST_TESTS:
                stack += [((*tests, (test, False)), other), ((*tests, (test, True)), then)]
            case _:
                stack.extend((tests, child) for child in part.children()[::-1])


def _after(way: _Way, sink: Sink) -> Sink:
    return Sink(
        sink.role, sink.body, sink.where, way.crossing, False, (*way.hops, *sink.hops),
        way.by_name or sink.by_name,
    )  # fmt: skip


def _beyond(way: _Way, one: _Way) -> _Way:
    return _Way(one.carrier, way.crossing, (*way.hops, *one.hops), way.by_name or one.by_name)


def _returned(definition: Definition, part: int | None) -> Leaf:
    short = definition.short
    if short == "__init__":
        short = definition.class_name.rpartition(".")[2]

    def leaf(term: Term) -> bool:
        match term:
            case Item(Call() as call, Literal((tag, number))) if tag == PART:
                return call.name == short and (part is None or part == number)
            case Call() as call:
                return part is None and call.name == short
        return False

    if part is None:
        return Leaf(leaf, Call, Item)

    def whole(term: Term) -> bool:
        return leaf(term) or (isinstance(term, Call) and term.name == short)

    return Leaf(whole, Call, Item)


def _own_region(base: Term) -> bool:
    """The address belongs to the very entry the value was taken from."""
    return base.contains(lambda t: entry_number(t) is not None)


def _has_region_count(term: Term, body: Body) -> bool:
    return any(counts_regions(t, body) for t in term.walk()) and not term.contains(
        lambda t: isinstance(t, Many)
    )


def _is_descriptor(term: Term) -> bool:
    return term.contains(
        lambda t: isinstance(t, Sequence) and len(t.items) >= 2 and is_address(t.items[0])
    )


def _is_channel(call: Call) -> bool:
    if call.name not in ("send", "publish", "put_object"):
        return True
    parts = set(words(last_name(call.receiver))) if call.receiver is not None else set()
    return bool(
        parts & {"sock", "socket", "channel", "conn", "connection", "pipe", "client", "pub"}
    )


def _many_addresses(term: Term, body: Body) -> bool:
    match term:
        case Many(element, _, _):
            return is_address(element)
    return is_address(term) or region_list(term, body) is Strength.STRONG
