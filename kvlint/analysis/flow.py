"""From a value to the memory it decides about: which sinks does a value reach?

Forward, on demand: inside one body by containment, on through fields, arguments and
return values. A value that is only logged, compared or tested reaches nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.bodies import Body, Mark, Where
from kvlint.analysis.carrying import Carrying, Leaf, is_running
from kvlint.analysis.entries import entry_number
from kvlint.analysis.forms import GRID, PART
from kvlint.analysis.link import Program
from kvlint.analysis.outline import Definition
from kvlint.analysis.roles import (
    Strength,
    counts_regions,
    is_address,
    is_byte_buffer,
    numbers_slot,
    region_list,
)
from kvlint.analysis.showing import brief, show
from kvlint.analysis.terms import (
    Arange,
    Call,
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
from kvlint.findings import Step

DEPTH = 6
ENOUGH = 12  # sinks behind one carrier; more tell nothing new
_STRIDES = frozenset({"item length", "stride", "region length", "shape", "element size"})


@dataclass(frozen=True, slots=True)
class Sink:
    """A place where a value decides about memory of more than its own region.

    `role`: address, length, count, stride, device, index or wire. `crossing`: where the
    value left the body it came from (the sink's own place when it never did).
    """

    role: str
    says: str
    body: Body
    place: Mark
    where: Where
    crossing: Where
    home: bool
    steps: tuple[Step, ...]
    by_name: bool


@dataclass(frozen=True, slots=True)
class _Carrier:
    """Something that holds the value: a parameter, a field, what a function returns."""

    kind: str
    owner: str
    name: str
    part: int | None = None


class Flow(Carrying):
    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._memo: dict[_Carrier, list[Sink]] = {}
        self._open: set[_Carrier] = set()

    def sinks(self, body: Body, leaf: Leaf, quantity: str) -> list[Sink]:
        """Sinks that a value recognised by `leaf` in `body` reaches."""
        return list(self._sinks(body, leaf, quantity, DEPTH))

    # -- one body

    def _sinks(self, body: Body, leaf: Leaf, quantity: str, depth: int) -> Iterator[Sink]:
        seen: set[tuple[str, int]] = set()
        for root in body.roots + body.returns:
            if not any(leaf(t) or is_running(t) for t in root.term.walk()):
                continue
            for role, says in self._uses(root.term, body, leaf, root.where, quantity):
                if (role, root.place) in seen:
                    continue
                seen.add((role, root.place))
                step = Step(self.program.span(body, root.place), says)
                yield Sink(
                    role, says, body, root.place, root.where, root.where, True, (step,), False
                )
        yield from self._loop_counts(body, leaf)
        if depth <= 0:
            return
        for carrier, place, where, says in self._leaves(body, leaf):
            for sink in self._behind(carrier, quantity, depth - 1):
                step = Step(self.program.span(body, place), says)
                yield Sink(
                    sink.role, sink.says, sink.body, sink.place, sink.where, where, False,
                    (step, *sink.steps), sink.by_name,
                )  # fmt: skip

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
                    step = Step(self.program.span(body, loop.place), f"counts {show(loop.over)}")
                    yield Sink(
                        "count", "is the number of descriptors of each region", body, loop.place,
                        root.where, root.where, True, (step,), False,
                    )  # fmt: skip
                    break

    def _uses(
        self, term: Term, body: Body, leaf: Leaf, where: Where, quantity: str
    ) -> Iterator[tuple[str, str]]:
        for part in term.walk():
            match part:
                case Operation("+" | "-", left, right):
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

    def _leaves(self, body: Body, leaf: Leaf) -> Iterator[tuple[_Carrier, Mark, Where, str]]:
        for store in body.stores:
            if self.carries_whole(store.value, body, leaf):
                owner = self.program.type_of(store.of, body) or ""
                says = f"kept in {show(store.of)}.{store.name}"
                yield _Carrier("field", owner, store.name), store.place, store.where, says
        for site in body.calls:
            call = site.call
            if call.name in apis().silent or call.name in apis().sends:
                continue
            pairs = [(None, v) for v in call.arguments] + list(call.keywords)
            if not any(self.carries(v, body, leaf) for _, v in pairs):
                continue
            key = self.program.constructed(call)
            if key is None and isinstance(call.receiver, This) and not call.callee:
                key = call.receiver.owner
            made = self.program.class_at(key) if key else None
            if made is not None and key and self.program.definition(f"{key}.__init__") is None:
                names = [*made.annotated]
                for number, value in enumerate(call.arguments):
                    if number < len(names) and self.carries(value, body, leaf):
                        says = f"kept in {made.name}.{names[number]}"
                        yield _Carrier("field", key, names[number]), site.place, site.where, says
                for keyword, value in call.keywords:
                    if keyword in names and self.carries(value, body, leaf):
                        says = f"kept in {made.name}.{keyword}"
                        yield _Carrier("field", key, keyword), site.place, site.where, says
                continue
            found, _ = self.program.callees(call, body)
            for callee in found:
                for parameter, value in self.program.bind(call, callee).items():
                    if self.carries(value, body, leaf):
                        says = f"passed to {callee.short} as {parameter}"
                        yield (
                            _Carrier("parameter", callee.key, parameter),
                            site.place,
                            site.where,
                            says,
                        )
        for root in body.returns:
            part = None
            term = root.term
            if isinstance(term, Sequence):
                numbers = [n for n, i in enumerate(term.items) if self.carries_whole(i, body, leaf)]
                if not numbers:
                    continue
                for part in numbers:
                    yield (
                        _Carrier("return", body.definition.key, body.definition.short, part),
                        root.place, root.where, f"returned by {body.definition.short}",
                    )  # fmt: skip
                continue
            if self.carries_whole(term, body, leaf):
                yield (
                    _Carrier("return", body.definition.key, body.definition.short, part),
                    root.place, root.where, f"returned by {body.definition.short}",
                )  # fmt: skip

    def _behind(self, carrier: _Carrier, quantity: str, depth: int) -> list[Sink]:
        keyed = _Carrier(carrier.kind, carrier.owner + "\0" + quantity, carrier.name, carrier.part)
        if keyed in self._memo:
            return self._memo[keyed]
        if carrier in self._open or depth <= 0:
            return []
        self._open.add(carrier)
        found: list[Sink] = []
        told: set[tuple[str, str, bool]] = set()
        for body, leaf, by_name in self._holders(carrier):
            for sink in self._sinks(body, leaf, quantity, depth):
                if by_name and not sink.by_name:
                    sink = Sink(
                        sink.role, sink.says, sink.body, sink.place, sink.where, sink.crossing,
                        sink.home, sink.steps, True,
                    )  # fmt: skip
                # One sink of a kind in a body tells as much as all of them.
                key = (sink.role, sink.body.definition.key, sink.by_name)
                if key in told:
                    continue
                told.add(key)
                found.append(sink)
                if len(found) >= ENOUGH:
                    break
            if len(found) >= ENOUGH:
                break
        self._open.discard(carrier)
        self._memo[keyed] = found
        return found

    def _holders(self, carrier: _Carrier) -> Iterator[tuple[Body, Leaf, bool]]:
        program = self.program
        if carrier.kind == "parameter":
            definition = program.definition(carrier.owner)
            body = program.body(definition) if definition else None
            if body is not None:
                wanted = Parameter(carrier.owner, carrier.name)
                yield body, lambda t: t == wanted, False
        elif carrier.kind == "field":
            yield from self._field_holders(carrier)
        else:
            definition = program.definition(carrier.owner)
            if definition is None:
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
            owner = f"{body.definition.path}::{body.definition.class_name}"
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
                for r in body.roots for t in r.term.walk()
            )  # fmt: skip
            yield body, leaf, not direct and not unique


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
        return leaf

    def whole(term: Term) -> bool:
        return leaf(term) or (isinstance(term, Call) and term.name == short)

    return whole


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
