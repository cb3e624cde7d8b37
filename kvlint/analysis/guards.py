"""What code enforces before it goes on, as facts about lists of regions.

A fact is a term in entry-0 form: `shape of xs[0]` means that this quantity is the same
for each entry of xs.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.bodies import Body, Guard
from kvlint.analysis.expressions import ZERO
from kvlint.analysis.link import Program
from kvlint.analysis.terms import (
    Call,
    Each,
    Fold,
    Index,
    Item,
    Literal,
    Many,
    Not,
    Operation,
    Sequence,
    Term,
    replace,
)

_FLIP = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "is": "is not",
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
        case Fold("all", of) if holds:
            yield from _each(of, True)
        case Fold("any", of) if not holds:
            yield from _each(of, False)
        case Operation(symbol, left, right) if symbol in _FLIP:
            yield from _compared(symbol if holds else _FLIP[symbol], left, right)
        case Fold("len", Fold("set", _)) if not holds:
            return


def _compared(symbol: str, left: Term, right: Term) -> Iterator[Uniform | Bound]:
    if isinstance(left, Literal) and symbol in _MIRROR:
        left, right, symbol = right, left, _MIRROR[symbol]
    match symbol, left, right:
        case ("==" | "<=", Fold("len", Fold("set", of)), Literal(1)) | (
            "<",
            Fold("len", Fold("set", of)),
            Literal(2),
        ):
            yield from _uniform(of)
        case ("==" | "<=", Fold("len", of), Literal(1)) | ("<", Fold("len", of), Literal(2)):
            yield Uniform(Item(of, ZERO), alone=True)
        case "==", Fold("min", a), Fold("max", b) if a == b:
            yield from _uniform(a)
        case "==", Fold("max", a), Fold("min", b) if a == b:
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
        case Operation(symbol, left, right) if symbol in _FLIP:
            symbol = symbol if holds else _FLIP[symbol]
            for one, other in ((left, right), (right, left)):
                if _varies(one, loop) and not _varies(other, loop):
                    if symbol == "==":
                        yield Uniform(entry_form(one, loop))
                    elif symbol in _MIRROR:
                        sign = symbol if one is left else _MIRROR[symbol]
                        yield Bound(entry_form(one, loop), sign, other)


def _varies(term: Term, loop: int) -> bool:
    return term.contains(lambda t: isinstance(t, Each | Index) and t.loop == loop)


def entry_form(element: Term, loop: int) -> Term:
    """An element of a loop as entry 0 of its list."""

    def step(part: Term) -> Term | None:
        match part:
            case Each(of, number) if number == loop:
                return Item(of, ZERO)
            case Index(_, number) if number == loop:
                return ZERO
        return None

    return replace(element, step)


def guards_of(program: Program, body: Body) -> list[tuple[Guard, list[Uniform | Bound]]]:
    """The body's own guards and those of helpers it calls, with what they say."""
    known: list[tuple[Guard, list[Uniform | Bound]]] = []
    for guard in body.guards:
        said = list(facts(guard.condition))
        if not said and guard.condition.contains(lambda t: isinstance(t, Call)):
            said = list(facts(program.inline(guard.condition, body)))
        if said:
            known.append((guard, said))
    for site in body.calls:
        callees, by_name = program.callees(site.call, body)
        if len(callees) != 1 or by_name or callees[0].key == body.definition.key:
            continue
        if not checks(program, callees[0].key):
            continue
        inner = program.body(callees[0])
        bound = program.bind(site.call, callees[0])
        for guard in inner.guards if inner else ():
            if not guard.raises or len(guard.where.block) > 1:
                continue
            condition = program.substitute(guard.condition, callees[0], bound, site.call.receiver)
            said = list(facts(condition))
            if said:
                known.append((Guard(condition, site.place, site.where, True), said))
    return known


def checks(program: Program, key: str) -> bool:
    """Whether a definition's text can hold a check that stops the caller."""
    definition = program.definition(key)
    if definition is None:
        return False
    source = program.outline(definition.path)
    text = source.text(definition) if source else ""
    return ("raise" in text or "assert" in text) and (
        "set(" in text or "any(" in text or "all(" in text or "!=" in text or "==" in text
    )


def covers(said: Uniform, item: Item, whole: Term) -> bool:
    """Whether a uniformity fact settles the quantity `whole` of the entry `item`."""
    base = Item(item.of, ZERO)
    if said.alone:
        return said.entry == base
    entry = said.entry
    form = replace(whole, lambda t: base if t == item else None)
    # A check of `.shape` settles `.shape[1]`; a check of the entry settles all of it.
    return (entry == base and not _is_object(whole, item)) or (
        form.contains(entry) and entry.contains(base)
    )


def _is_object(whole: Term, item: Item) -> bool:
    return whole != item
