"""What code enforces before it goes on, as facts about lists of regions.

A fact is a term in entry-0 form: `shape of xs[0]` means that this quantity is the same
for each entry of xs.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kvlint.analysis.bodies import Body, Guard, Where
from kvlint.analysis.forms import ZERO
from kvlint.analysis.link import Program
from kvlint.analysis.showing import brief
from kvlint.analysis.terms import (
    Call,
    Choice,
    Each,
    Field,
    Fold,
    Index,
    Item,
    Literal,
    Many,
    Not,
    Operation,
    Parameter,
    Sequence,
    Slice,
    Term,
    This,
    replace,
)
from kvlint.findings import Span, Step

ENDS = (ZERO, Literal(-1))  # keys of the first and the last entry
LARGEST_HELPER = 80  # lines; what is longer does more than check
FLIP = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "is": "is not",
         "is not": "is", "in": "not in", "not in": "in"}  # fmt: skip
_MIRROR = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Uniform:
    """`entry` (entry-0 form) is the same for each region; `alone`: there is one region."""

    entry: Term
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """`entry` op `limit` holds for each region."""

    entry: Term
    symbol: str
    limit: Term


@dataclass(frozen=True, slots=True)
class Check:
    """Facts that hold wherever `where` dominates (None: everywhere); `step` tells where they
    are enforced, `raises` whether a run ends there when they do not hold."""

    where: Where | None
    raises: bool
    step: Step
    said: tuple[Uniform | Bound, ...]


def facts(condition: Term, holds: bool = True) -> Iterator[Uniform | Bound]:
    """What `condition` (or its negation) says about all regions."""
    match condition:
        case Not(of):
            yield from facts(of, not holds)
        case Operation("and", left, right) if holds:
            yield from facts(left)
            yield from facts(right)
        case Operation("or", left, right) if not holds:
            yield from facts(left, False)
            yield from facts(right, False)
        case Operation("and", Operation("is not", kept, Literal(None)), right) if (
            not holds and right.contains(kept)
        ):
            yield from facts(right, False)
        case Fold("all", of) if holds:
            yield from _each(of, True)
        case Fold("any", of) if not holds:
            yield from _each(of, False)
        case Operation(symbol, left, right) if symbol in FLIP:
            yield from _compared(symbol if holds else FLIP[symbol], left, right)


def _compared(symbol: str, left: Term, right: Term) -> Iterator[Uniform | Bound]:
    if isinstance(left, Literal) and symbol in _MIRROR:
        left, right, symbol = right, left, _MIRROR[symbol]
    match left:
        case Field(Fold("set", _) as distinct, "size"):
            left = Fold("len", distinct)
    match symbol, left, right:
        case ("==" | "<=", Fold("len", Fold("set", of)), Literal(1)) | (
            "<",
            Fold("len", Fold("set", of)),
            Literal(2),
        ):
            yield from _uniform(of)
        case ("==" | "<=", Fold("len", of), Literal(1)) | ("<", Fold("len", of), Literal(2)):
            yield Uniform(Item(of, ZERO), alone=True)
        case "==" | ">=", Fold("min", a), Fold("max", b) if a == b:
            yield from _uniform(a)
        case "==" | "<=", Fold("max", a), Fold("min", b) if a == b:
            yield from _uniform(a)
        case "==", Fold("set", of), Sequence((_,)):
            yield from _uniform(of)
        case "==", Call(callee="count", receiver=of), Fold("len", again) if of == again:
            yield from _uniform(again)
        case "==", of, Many(element, _, loop) if not element.contains(
            lambda t: isinstance(t, Each | Index) and t.loop == loop
        ):
            yield from _uniform(of)
    if symbol == "==":
        for one, other in ((left, right), (right, left)):
            match one:
                case Many(element, _, loop) if isinstance(other, Literal):
                    yield from _uniform(Many(element, one.over, loop))


def _uniform(of: Term) -> Iterator[Uniform]:
    match of:
        case Many(element, _, loop, None):
            yield Uniform(entry_form(element, loop))
        case _:
            yield Uniform(Item(of, ZERO))


def _each(of: Term, holds: bool) -> Iterator[Uniform | Bound]:
    """`of` is one condition for each region; each holds (or none does)."""
    match of:
        case Many(Many() as inner, _, _, None):
            yield from _each(inner, holds)
        case Many(Fold("all", Many() as inner), _, loop, None) if holds:
            # A loop in a loop: of the inner elements and of the outer ones.
            for fact in _each(inner, True):
                yield dataclasses.replace(fact, entry=entry_form(fact.entry, loop))
        case Many(condition, _, loop, None):
            yield from _elementwise(condition, loop, holds)
        case Operation("==", xs, one) if holds:
            # (xs == xs[0]).all() over an array
            for many, single in ((xs, one), (one, xs)):
                if single == Item(many, ZERO) or (isinstance(single, Item) and single.of == many):
                    yield Uniform(Item(many, ZERO))
        case Operation("!=", xs, one) if not holds:
            if isinstance(one, Item) and one.of == xs:
                yield Uniform(Item(xs, ZERO))


def _elementwise(condition: Term, loop: int, holds: bool) -> Iterator[Uniform | Bound]:
    match condition:
        case Not(of):
            yield from _elementwise(of, loop, not holds)
        case Operation("and", left, right) if holds:
            yield from _elementwise(left, loop, True)
            yield from _elementwise(right, loop, True)
        case Operation("or", left, right) if not holds:
            yield from _elementwise(left, loop, False)
            yield from _elementwise(right, loop, False)
        case Operation("and", Operation("is not", kept, Literal(None)), right) if (
            not holds and right.contains(kept)
        ):
            # Nothing is kept before the first turn; from then on all are compared.
            yield from _elementwise(right, loop, False)
        case Operation(symbol, left, right) if symbol in FLIP:
            symbol = symbol if holds else FLIP[symbol]
            for one, given in ((left, right), (right, left)):
                other = _earlier(given, one)
                if _varies(one, loop) and not _varies(other, loop):
                    if symbol == "==":
                        yield Uniform(entry_form(one, loop))
                    elif symbol in _MIRROR:
                        sign = symbol if one is left else _MIRROR[symbol]
                        yield Bound(entry_form(one, loop), sign, other)


def _earlier(kept: Term, own: Term) -> Term:
    """What a field holds from earlier turns, where the first turn puts its own value in."""
    match kept:
        case Choice(_, then, other) if own in (then, other):
            return other if then == own else then
    return kept


def _varies(term: Term, loop: int) -> bool:
    return term.contains(lambda t: isinstance(t, Each | Index) and t.loop == loop)


def entry_form(element: Term, loop: int) -> Term:
    """An element of a loop as entry 0 of its list."""

    def step(part: Term) -> Term | None:
        match part:
            case Each(Slice(of, Literal(1), None), number) if number == loop:
                return Item(of, ZERO)  # the others, compared with the first
            case Each(of, number) if number == loop:
                return Item(of, ZERO)
            case Index(_, number) if number == loop:
                return ZERO
        return None

    return replace(element, step, (Each, Index))


def checks_of(program: Program, body: Body) -> list[Check]:
    """What the body enforces itself and through the helpers it calls."""
    key = body.definition.key
    if key not in program.checks:
        program.checks[key] = ()
        program.checks[key] = tuple(_checks_of(program, body))
    return [check for check in program.checks[key] if isinstance(check, Check)]


def _checks_of(program: Program, body: Body) -> Iterator[Check]:
    for guard in body.guards:
        said = tuple(facts(guard.condition))
        if not said and guard.condition.contains(lambda t: isinstance(t, Call)):
            said = tuple(facts(program.inline(guard.condition, body)))
        if said:
            step = _step(program.span(body, guard.place), guard.condition)
            yield Check(guard.where, guard.raises, step, said)
    for site in body.calls:
        for inner, guard, condition in refusals(program, site.call, body):
            said = tuple(facts(_as_stored(condition, body, site.where)))
            if said:
                step = _step(program.span(inner, guard.place), guard.condition)
                yield Check(site.where, True, step, said)


def refusals(program: Program, call: Call, body: Body) -> Iterator[tuple[Body, Guard, Term]]:
    """What a small helper refuses whenever it is called: its body, the check, and the
    condition in the caller's terms."""
    callees, by_name = program.callees(call, body)
    if len(callees) != 1 or by_name or not _can_refuse(program, callees[0].key):
        return
    inner = program.body(callees[0])
    bound = program.bind(call, callees[0])
    for guard in inner.guards if inner else ():
        if inner is None or not guard.raises:
            continue
        if len(guard.where.block) > 1 or _left_before(inner, guard):
            continue
        yield inner, guard, program.substitute(guard.condition, callees[0], bound, call.receiver)


def _left_before(body: Body | None, guard: Guard) -> bool:
    """Whether some runs return before they come to the check, an empty list aside."""
    for other in body.guards if body else ():
        if other.raises or other.where.order >= guard.where.order or len(other.where.block) > 1:
            continue
        if not isinstance(other.condition, Not) or not isinstance(
            other.condition.of, Not | Parameter | Field | Fold
        ):
            return True
    return False


def refused_by_class(program: Program, regions: Term, body: Body) -> Iterator[Check]:
    """What the class of `x` in `x.field` refuses before an object of it exists."""
    kind = program.type_of(regions.of, body) if isinstance(regions, Field) else None
    if kind is None or not isinstance(regions, Field):
        return
    for key in program.family(kind):
        for name in ("__post_init__", "__init__"):
            definition = program.definition(f"{key}.{name}")
            inner = program.body(definition) if definition else None
            if inner is None or inner is body:
                continue
            for check in checks_of(program, inner):
                if check.raises and check.where and len(check.where.block) == 1:
                    seen = tuple(_as_seen(fact, inner, key, regions.of) for fact in check.said)
                    yield Check(None, True, check.step, seen)


def refused_when_made(program: Program, body: Body) -> Iterator[tuple[Body, Guard, Term]]:
    """What the constructor of the class of `body` always refuses: its body, the check, and the
    condition as methods see it, what it got by the field that it kept it in."""
    definition = body.definition
    owner = definition.owner
    for key in program.family(owner) if definition.class_name else ():
        for name in ("__post_init__", "__init__"):
            maker = program.definition(f"{key}.{name}")
            inner = program.body(maker) if maker else None
            if inner is None or inner is body:
                continue
            kept = _kept(inner, This(owner))
            for guard in inner.guards:
                if guard.raises and len(guard.where.block) == 1:
                    yield inner, guard, _by_field(guard.condition, kept, key, This(owner))


def step_of(program: Program, body: Body, guard: Guard) -> Step:
    return _step(program.span(body, guard.place), guard.condition)


def _step(span: Span, condition: Term) -> Step:
    return Step(span, f"checks {brief(condition, 80)}")


def _as_seen(fact: Uniform | Bound, inner: Body, owner: str, of: Term) -> Uniform | Bound:
    """A fact of a constructor about the object it makes: what it got is what it kept."""
    return dataclasses.replace(fact, entry=_by_field(fact.entry, _kept(inner, of), owner, of))


def _kept(inner: Body, of: Term) -> dict[Term, Field]:
    """What a constructor keeps, by the field of `of` that it keeps it in."""
    return {s.value: Field(of, s.name) for s in inner.stores if s.key is None and not s.appended}


def _by_field(term: Term, kept: dict[Term, Field], owner: str, of: Term) -> Term:
    def step(part: Term) -> Term | None:
        if part == This(owner):
            return of
        return kept.get(part) if isinstance(part, Parameter | Field) else None

    return replace(term, step, (This, Parameter, Field))


def _as_stored(term: Term, body: Body, where: Where) -> Term:
    """Fields of `term` by the value that this body gave them before `where`."""
    given = {
        Field(s.of, s.name): s.value
        for s in body.stores
        if s.key is None and not s.appended and s.where.dominates(where)
    }
    return replace(term, lambda t: given.get(t) if isinstance(t, Field) else None, (Field,))


def settles(program: Program, body: Body, regions: Term, wholes: Iterable[Term]) -> list[Check]:
    """The checks that make each of `wholes` (quantities of an entry of `regions`) the same
    for all regions: in this body, or in the class of the object that holds the list."""
    found = [*checks_of(program, body), *refused_by_class(program, regions, body)]
    wanted = list(wholes)
    return [check for check in found if all(_settled(check.said, whole) for whole in wanted)]


def settled_by_tests(tests: Iterable[tuple[Term, bool]], wholes: Iterable[Term]) -> bool:
    """Whether a value is only used where a test has found all regions alike."""
    said = tuple(fact for test, holds in tests for fact in facts(test, holds))
    return bool(said) and all(_settled(said, whole) for whole in wholes)


def _settled(said: tuple[Uniform | Bound, ...], whole: Term) -> bool:
    """Every entry in `whole` is covered by a fact (both lists of a quotient, say)."""
    uniform = [fact for fact in said if isinstance(fact, Uniform)]
    items = [t for t in whole.holding(Item.bit) if isinstance(t, Item) and t.key in ENDS]
    outer = [i for i in items if not any(i != o and o.contains(i) for o in items)] or items
    inner = [i for i in items if not any(i != o and i.contains(o) for o in items)]
    return bool(uniform) and any(
        all(any(covers(fact, i, whole) for fact in uniform) for i in group)
        for group in (outer, inner)
        if group
    )


def _can_refuse(program: Program, key: str) -> bool:
    """Whether a definition is small and its text holds a check that stops the caller."""
    definition = program.definition(key)
    source = program.outline(definition.path) if definition else None
    if definition is None or source is None:
        return False
    if definition.last_line - definition.first_line > LARGEST_HELPER:
        return False
    text = source.text(definition)
    return "raise" in text or "assert" in text


def covers(said: Uniform, item: Item, whole: Term) -> bool:
    """Whether a uniformity fact settles the quantity `whole` of the entry `item`."""
    base = Item(item.of, ZERO)
    if said.alone:
        return said.entry == base
    entry = said.entry
    form = replace(whole, lambda t: base if t == item else None, (Item,))
    # A check of `.shape` settles `.shape[1]`; a check of the entry settles all of it.
    return (entry == base and whole == item) or (form.contains(entry) and entry.contains(base))
