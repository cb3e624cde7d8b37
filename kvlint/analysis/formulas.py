"""Whether the pools behind a list of regions count their slots by one formula.

A construction that lies far from the use is no guard: nothing keeps the two together.
But when it can be read it is said, so that nobody calls the finding false today.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.bodies import Body
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
    Many,
    Sequence,
    Term,
    This,
    replace,
)
from kvlint.analysis.vocabulary import apis

MOST_PROVIDERS = 24
_LISTS = ("data_ptr", "nbytes")


@dataclass(frozen=True, slots=True)
class _Made:
    formula: str
    place: str


def one_formula(program: Program, regions: Term) -> str | None:
    """`in Pool every count is (size + page + 1) // page (pool.py:88)`, None otherwise.

    Said of the class that hands over most pools, when all of them can be read and use one
    formula, and no other class that can be read mixes formulas.
    """
    if not isinstance(regions, Field):
        return None
    best: tuple[int, str, _Made] | None = None
    for provider in _providers(program, regions.name):
        made = _pools(program, provider)
        if made is None:
            continue
        if len({m.formula for m in made}) > 1:
            return None
        if len(made) > 1 and (best is None or len(made) > best[0]):
            best = (len(made), provider.class_name, made[0])
    if best is None:
        return None
    return f"in {best[1]} every count is {best[2].formula} ({best[2].place})"


def _providers(program: Program, field: str) -> list[Definition]:
    """Methods whose result is stored in a field of this name."""
    names: set[str] = set()
    for _, store in program.stores(field):
        for part in store.value.walk():
            match part:
                case Item(Call(receiver=receiver) as call, _) if receiver is not None:
                    names.add(call.name)
    found: list[Definition] = []
    for name in sorted(names):
        if name in apis().keeps:
            continue
        keys = program.defined(name)
        found.extend(
            d for key in keys
            if (d := program.definition(key)) and d.class_name and not _is_test(d.path)
        )  # fmt: skip
    return found[:MOST_PROVIDERS]


def _is_test(path: str) -> bool:
    return bool({"test", "tests", "testing"} & set(path.split("/")[:-1]))


def _pools(program: Program, provider: Definition) -> list[_Made] | None:
    """How each list of buffers that a provider hands over is made; None if one is unread."""
    body = program.body(provider)
    if body is None:
        return None
    lists: list[Term] = []
    for root in [*body.roots, *body.returns]:
        for found in _buffer_lists(root.term):
            if found not in lists:
                lists.append(found)
    if not lists:
        return None
    result: list[_Made] = []
    for buffers in lists:
        made = _made(program, buffers, body)
        if made is None:
            return None
        result.append(made)
    return result


def _buffer_lists(term: Term) -> Iterator[Term]:
    """xs of `x.data_ptr() for x in xs`, lists of lists taken apart."""
    for part in term.walk():
        match part:
            case Call(callee="data_ptr", receiver=Each(Each(Sequence(items), _), _)):
                yield from items
            case Call(callee="data_ptr", receiver=Each(Field() as one, _)):
                yield one
            case Call(callee="data_ptr", receiver=Item(Field() as one, _)):
                yield one


def _made(program: Program, buffers: Term, body: Body) -> _Made | None:
    if not isinstance(buffers, Field):
        return None
    owner = _class_of(program, buffers.of, body)
    if owner is None:
        return None
    family = program.family(owner)
    for other, store in program.stores(buffers.name, owner):
        if store.key is not None or program.type_of(store.of, other) not in family:
            continue
        match store.value:
            case Many(element, _, _, None):
                count = _first_dimension(program, element, other)
                if count is not None:
                    place = other.place_of(count) or other.place_of(store.value)
                    span = program.span(other, place[0] if place else store.place)
                    return _Made(_text(count), f"{span.path.rpartition('/')[2]}:{span.line}")
    return None


def _class_of(program: Program, term: Term, body: Body) -> str | None:
    known = program.type_of(term, body)
    if known is not None:
        return known
    match term:
        case Field(This(owner), name):
            for other, store in program.stores(name, owner):
                if store.of == term.of and isinstance(store.value, Call):
                    found = _chosen(program, store.value.receiver)
                    if found is not None:
                        return found
                    return program.type_of(store.value, other)
    return None


def _chosen(program: Program, term: Term | None) -> str | None:
    """The class that all branches of a choice of classes have in common."""
    match term:
        case Global(name):
            key = program.lookup(name)
            return key if key and program.class_at(key) else None
        case Choice(_, then, other):
            one, two = _chosen(program, then), _chosen(program, other)
            if one is None or two is None:
                return None
            return next((k for k in program.family(one) if k in program.family(two)), None)
    return None


def _first_dimension(program: Program, element: Term, body: Body) -> Term | None:
    match element:
        case Call() as call if call.name in apis().makes_tensor and call.arguments:
            first = call.arguments[0]
            return first.items[0] if isinstance(first, Sequence) and first.items else first
        case Call(receiver=This(owner)) as call:
            own = next(
                (d for k in program.family(owner) if (d := program.definition(f"{k}.{call.name}"))),
                None,
            )
            value = program.result(own) if own else None
            if own is None or value is None:
                return None
            inner = program.body(own)
            put = program.substitute(value, own, program.bind(call, own), call.receiver)
            return _first_dimension(program, put, inner or body)
    return None


def _text(count: Term) -> str:
    """The formula as it is, without whose it is."""

    def bare(part: Term) -> Term | None:
        match part:
            case Field(This(), name):
                return Global(name)
        return None

    return show(replace(count, bare, (Field,)))
