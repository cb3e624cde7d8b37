"""One region's quantity that stands for every region's: sources, sinks, what settles it."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.bodies import Body, Mark, Store
from kvlint.analysis.candidates import KEEPS, MEASURES, entries_taken, kept
from kvlint.analysis.carrying import Leaf
from kvlint.analysis.constructions import uniform_nearby
from kvlint.analysis.entries import Entry, about_entry, entries, quantity_of_element
from kvlint.analysis.evidence import beside_addresses
from kvlint.analysis.flow import DEPTH, Flow, Sink
from kvlint.analysis.formulas import one_formula
from kvlint.analysis.guards import Check, entry_form, settled_by_tests, settles
from kvlint.analysis.link import Program
from kvlint.analysis.roles import Strength, region_list, speaks_of_index
from kvlint.analysis.showing import brief
from kvlint.analysis.terms import Call, Each, Field, Item, Literal, Term, This, last_name
from kvlint.findings import Span, Step

NEAR = 6  # lines
RANK = (
    "slots", "item length", "stride", "shape", "region length", "element size", "block size",
    "page size", "head size", "head count", "element count", "dtype", "layout", "device",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StandIn:
    """A quantity of one region that reaches memory of others.

    `beside`: other quantities of the same region, taken within a few lines and open to the
    same memory; `open`: sinks that no check covers; `guards`: the checks; `construction`: where the
    same class makes all regions alike.
    """

    body: Body
    regions: str
    quantity: str
    beside: tuple[str, ...]
    number: int
    shown: str
    at: Span
    sinks: tuple[Sink, ...]
    open: tuple[Sink, ...]
    guards: tuple[Step, ...]
    construction: Step | None
    holds_today: str | None
    by_name: bool
    trace: tuple[Step, ...]

    @property
    def kind(self) -> tuple[object, ...]:
        settled = self.construction is not None
        return self.regions, self.number, bool(self.open), self.by_name, settled


def stand_ins(program: Program) -> Iterator[StandIn]:
    flow = Flow(program)
    seen: set[str] = set()
    for path in program.starts():
        for body in program.bodies_at(path, entries_taken(program.texts[path])):
            if body.definition.key not in seen:
                seen.add(body.definition.key)
                yield from _taken(program, flow, body)
    for body in program.holding(kept(), KEEPS, MEASURES):
        yield from _kept(program, flow, body)


def _taken(program: Program, flow: Flow, body: Body) -> Iterator[StandIn]:
    groups: dict[tuple[Term, int, str], list[Entry]] = {}
    for root in [*body.roots, *body.returns]:
        for entry in entries(root.term, body):
            groups.setdefault((entry.item.of, entry.number, entry.quantity), []).append(entry)
    for site in body.calls:
        asked = _asked_by_default(program, body, site.call)
        if asked is not None:
            groups.setdefault((asked.item.of, 0, asked.quantity), []).append(asked)
    for site in body.calls:
        counted = _counted_by_helper(program, body, site.call)
        if counted is not None:
            inside = set(counted.whole.walk())
            for key in list(groups):
                groups[key] = [e for e in groups[key] if e.whole not in inside]
            groups.setdefault((counted.item.of, counted.number, "slots"), []).append(counted)
    found: list[StandIn] = []
    for (regions, number, quantity), group in groups.items():
        if not group:
            continue
        wholes = {entry.whole for entry in group}
        strength = _strength(program, body, regions, group)
        depth = _worth(program, body, regions, quantity, strength)
        sinks = flow.sinks(body, Leaf.of(*wholes), quantity, depth)
        if number == -1:
            # A peer that is told the last entry is told about that entry.
            sinks = [s for s in sinks if s.role != "wire"]
        if not sinks:
            continue
        if len(wholes) > 1:
            wholes = _used(flow, body, wholes, quantity)
        marks = [m for w in wholes if (m := _mark(body, w)) is not None]
        if not marks:
            continue
        at = min(program.span(body, mark) for mark in marks)
        found.append(_judged(program, body, group[0], regions, at, sinks, wholes, strength))
    yield from _merged(found)


def _merged(found: list[StandIn]) -> Iterator[StandIn]:
    """One for quantities that are taken of one region beside each other: one thing to mend."""
    rest = sorted(found, key=lambda f: RANK.index(f.quantity) if f.quantity in RANK else len(RANK))
    while rest:
        first, *others = rest
        alike = [
            o
            for o in others
            if o.kind == first.kind
            and abs(o.at.line - first.at.line) <= NEAR
            and "device" not in (o.quantity, first.quantity)
        ]
        yield dataclasses.replace(first, beside=tuple(o.quantity for o in alike))
        rest = [o for o in others if o not in alike]


def _strength(program: Program, body: Body, regions: Term, group: list[Entry]) -> Strength:
    strength = max(entry.strength for entry in group)
    if strength is Strength.WEAK and beside_addresses(
        program, body.definition.path, last_name(regions)
    ):
        return Strength.STRONG
    return strength


def _worth(program: Program, body: Body, regions: Term, quantity: str, strength: Strength) -> int:
    """How many functions far a value is followed: not far where little can come of it."""
    if strength is Strength.WEAK or uniform_nearby(program, regions, body) is not None:
        return 2
    return 3 if quantity == "device" else DEPTH


def _counted_by_helper(program: Program, body: Body, call: Call) -> Entry | None:
    """`slots_of(lens[0], item_lens[0])`: the quotient is taken in a helper."""
    if not any(entries(value, body) for value in call.values()):
        return None
    put = program.inline(call, body)
    for entry in entries(put, body) if put != call else ():
        if entry.quantity == "slots" and entry.whole == put:
            return dataclasses.replace(entry, whole=call)
    return None


def _asked_by_default(program: Program, body: Body, call: Call) -> Entry | None:
    """`head_size(caches)` where the helper's `layer_idx` is 0 unless said otherwise."""
    if not call.arguments:
        return None
    if region_list(call.arguments[0], body) is not Strength.STRONG:
        return None
    found, by_name = program.callees(call, body)
    if len(found) != 1 or by_name:
        return None
    bound = program.bind(call, found[0])
    for name in found[0].zero_defaults:
        if speaks_of_index(name) and name not in bound:
            return about_entry(call, call.arguments[0])
    return None


def _used(flow: Flow, body: Body, wholes: set[Term], quantity: str) -> set[Term]:
    """Those that reach a sink themselves: one that is only compared is not the place."""
    used = {w for w in wholes if flow.sinks(body, Leaf.of(w), quantity)}
    return {w for w in wholes if any(u.contains(w) for u in used)} or wholes


def _mark(body: Body, term: Term) -> Mark | None:
    found = body.place_of(term)
    return found[0] if found else None


def _judged(
    program: Program,
    body: Body,
    entry: Entry,
    regions: Term,
    at: Span,
    sinks: list[Sink],
    wholes: set[Term],
    strength: Strength,
) -> StandIn:
    checks = settles(program, body, regions, wholes)
    open_sinks = tuple(
        s for s in sinks
        if not any(_stands_before(check, s) for check in checks)
        and not (s.home and settled_by_tests(s.tests, wholes))
        and not _guarded_there(program, s, regions, wholes)
    )  # fmt: skip
    open_sinks = tuple(sorted(open_sinks, key=_clearest_first))
    shown = (open_sinks or tuple(sinks))[0]
    construction = uniform_nearby(program, regions, body)
    by_name = strength is Strength.WEAK or all(s.by_name for s in (open_sinks or sinks))
    holds = None
    if construction is None and open_sinks and entry.quantity in ("slots", "region length"):
        holds = one_formula(program, regions)
    return StandIn(
        body=body,
        regions=last_name(regions),
        quantity=entry.quantity,
        beside=(),
        number=entry.number,
        shown=program.written(at) or brief(entry.whole, 80),
        at=at,
        sinks=tuple(sinks),
        open=open_sinks,
        guards=tuple(check.step for check in checks),
        construction=construction,
        holds_today=holds,
        by_name=by_name,
        trace=tuple(Step(program.span(h.body, h.mark), h.says) for h in shown.hops),
    )


def _clearest_first(sink: Sink) -> tuple[bool, bool, int, bool]:
    return sink.by_name, sink.role == "wire", len(sink.hops), sink.role == "address"


def _stands_before(check: Check, sink: Sink) -> bool:
    if check.where is None or check.where.dominates(sink.crossing):
        return True
    prefix = sink.crossing.block[: len(check.where.block)] == check.where.block
    return check.raises and prefix and not sink.home


def _guarded_there(program: Program, sink: Sink, regions: Term, wholes: set[Term]) -> bool:
    """The body of the sink checks the same list of the same object before the use."""
    if sink.home or not isinstance(regions, Field):
        return False
    return any(
        check.where is None or check.where.dominates(sink.where)
        for check in settles(program, sink.body, regions, wholes)
    )


def _selects(body: Body, store: Store) -> bool:
    """The number of the region is kept beside its value: one is chosen, not the last."""
    return any(
        s is not store and s.where.block == store.where.block and speaks_of_index(s.name)
        for s in body.stores
    )


def _kept(program: Program, flow: Flow, body: Body) -> Iterator[StandIn]:
    """`self.x = f(region)` inside a loop over regions: the last one's value is kept."""
    for store in body.stores:
        if store.key is not None or store.appended or not isinstance(store.of, This):
            continue
        taken = quantity_of_element(store.value, frozenset(store.where.loops))
        if taken is None or store.value.contains(Field(store.of, store.name)):
            continue
        if _selects(body, store):
            continue
        regions, quantity = taken
        strength = region_list(regions, body)
        if strength is Strength.NONE:
            # The inner list of a nested loop: the outer one is the list of regions.
            outer = [
                t.of for t in regions.walk() if isinstance(t, Each) and t.loop in store.where.loops
            ]
            regions = next((o for o in outer if region_list(o, body) is Strength.STRONG), regions)
            strength = region_list(regions, body)
        if strength is Strength.NONE:
            continue
        value = store.value
        sinks = [
            s for s in flow.sinks(body, Leaf.of(value), quantity)
            if not s.home and any(store.name in hop.says for hop in s.hops[:1])
        ]  # fmt: skip
        if not sinks:
            continue
        entry = Entry(Item(regions, Literal(-1)), value, quantity, -1, strength)
        at = program.span(body, store.place)
        whole = value
        for loop in reversed(store.where.loops):
            whole = entry_form(whole, loop)
        yield _judged(program, body, entry, regions, at, sinks, {whole}, strength)
