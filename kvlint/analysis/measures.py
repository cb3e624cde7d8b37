"""What a number was measured from, through whatever carried it: lengths and strides of tensors.

A length is what one slot holds (`numel`, `nbytes`, `shape`), a stride how far away the next
one lies (`stride`). They are one number only as long as nothing is padded, packed or turned.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from kvlint.analysis.bodies import Body
from kvlint.analysis.origins import Origin, Origins
from kvlint.analysis.quantities import Unit, named
from kvlint.analysis.showing import brief
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
    Slice,
    Term,
    last_name,
)
from kvlint.analysis.vocabulary import apis, nouns, words
from kvlint.findings import Step

DEPTH = 16
MOST = 12  # what one number can be; more is not worth telling apart

# What one slot or a whole tensor holds; `size` and `shape` of anything else are not its own.
_EXTENTS = frozenset({"nbytes", "numel", "shape", "size"})

# What is multiplied into a length, and never is one: how many tokens, heads, elements.
_COUNTS = frozenset({Unit.TOKENS, Unit.HEADS, Unit.LAYERS, Unit.ELEMENTS, Unit.ELEMENT_SIZE})


@dataclass(frozen=True, slots=True)
class Measured:
    """One way to a number. `extents`: the tensors whose shape or size is in it, and the body
    that asked them; `quotients`: where it is rounded down, `left // right`; `stride`: a stride
    is in it; `unknown`: parts that nothing tells of.

    `origin`: where the arithmetic stands; its facts are the tests passed on the way.
    """

    origin: Origin
    extents: tuple[tuple[Term, Body], ...] = ()
    quotients: tuple[Origin, ...] = ()
    stride: bool = False
    unknown: tuple[str, ...] = ()


def measured(origins: Origins, at: Origin) -> list[Measured]:
    """What `at.term` can be measured from, at most `MOST` ways."""
    return list(islice(_ways(origins, at, DEPTH), MOST))


def _ways(origins: Origins, at: Origin, depth: int) -> Iterator[Measured]:
    term = at.term
    if depth <= 0 or isinstance(term, Opaque):
        yield Measured(at, unknown=(f"{brief(term, 60)} is followed no further",))
        return
    if nouns().stride & set(words(last_name(term))):
        yield Measured(at, stride=True)
        return
    if at.by_name:
        yield Measured(at, unknown=(f"only its name tells what {brief(term, 50)} is",))
        return
    match term:
        case Literal():
            yield Measured(at)
        case Parameter() | Field() if named(last_name(term)) in _COUNTS:
            yield Measured(at)
        case Field(of, name) if name in _EXTENTS and name != "size":
            yield Measured(at, extents=((of, at.body),))
        case Call(callee=name, receiver=of) if of is not None and name in _EXTENTS:
            # `torch.Size(spec.shape).numel()` is of no tensor, and a storage holds gaps, too.
            plain = _is_size(of) or _is_storage(of)
            yield Measured(at, extents=() if plain else ((of, at.body),))
        case Call() as call if call.name in apis().element_sizes:
            yield Measured(at)
        case Field(_, "itemsize" | "dtype"):
            yield Measured(at)
        case Call(callee="prod", receiver=of) if of is not None:
            yield from _ways(origins, replace(at, term=of), depth - 1)
        case Call(arguments=(first, *_)) as call if call.receiver is None and call.name == "prod":
            yield from _whole(origins, at, first, depth)
        case Fold(_, of):
            yield from _whole(origins, at, of, depth)
        case Operation(_, left, right):
            for one in islice(_ways(origins, replace(at, term=left), depth - 1), MOST):
                beside = replace(at, term=right, facts=one.origin.facts)
                for two in islice(_ways(origins, beside, depth - 1), MOST):
                    yield _joined(at, one, two)
        case Item(of, _) | Slice(of, _, _) if _is_shape(of):
            yield from _ways(origins, replace(at, term=of), depth - 1)
        case _:
            yield from _further(origins, at, depth)


def _whole(origins: Origins, at: Origin, of: Term, depth: int) -> Iterator[Measured]:
    for one in _ways(origins, replace(at, term=of), depth - 1):
        yield replace(one, origin=replace(at, facts=one.origin.facts))


def _joined(at: Origin, one: Measured, two: Measured) -> Measured:
    """Two sides of one arithmetic; what leads further away tells where the number is made."""
    told = [side for side in (one, two) if side.extents or side.stride or side.unknown]
    away = [s.origin for s in told if s.origin.body is not at.body and (s.extents or s.stride)]
    base = away[0] if away else at
    steps = one.origin.steps + two.origin.steps[len(at.steps) :]
    by_name = one.origin.by_name or two.origin.by_name
    wire = one.origin.wire or two.origin.wire
    return Measured(
        replace(base, facts=two.origin.facts, steps=steps, by_name=by_name, wire=wire),
        one.extents + tuple(e for e in two.extents if e not in one.extents),
        _quotients(at, one, two),
        one.stride or two.stride,
        one.unknown + two.unknown,
    )


def _quotients(at: Origin, one: Measured, two: Measured) -> tuple[Origin, ...]:
    """What is rounded down on either side; `n // page * page` rounds on purpose."""
    match at.term:
        case Operation("//"):
            return (at, *one.quotients, *two.quotients)
        case Operation("*", left, right):
            return (*_divided(one, right), *_divided(two, left))
    return one.quotients + two.quotients


def _divided(side: Measured, other: Term) -> Iterator[Origin]:
    for at in side.quotients:
        if not (isinstance(at.term, Operation) and same(at.term.right, other)):
            yield at


def same(one: Term, other: Term) -> bool:
    """The same term, or the same thing by name: `self.page_size` is given `page_size`."""
    return one == other or (last_name(one) != "" and last_name(one) == last_name(other))


def _is_size(term: Term) -> bool:
    return bool({"shape", "shapes", "size"} & set(words(last_name(term))))


def _is_storage(term: Term) -> bool:
    return isinstance(term, Call) and term.name in ("untyped_storage", "storage")


def _is_shape(term: Term) -> bool:
    match term:
        case Field(_, "shape") | Call(callee="size" | "stride"):
            return True
        case Slice(of, _, _):
            return _is_shape(of)
    return False


def _why(at: Origin) -> str:
    match at.term:
        case Parameter(_, name):
            return f"no caller of {at.body.definition.short} is known that gives {name}"
        case Field(_, name):
            return f"no statement is known that sets {name}"
    return f"{brief(at.term, 60)} is not followed"


def _further(origins: Origins, at: Origin, depth: int) -> Iterator[Measured]:
    found = list(islice(elements(origins, at), MOST)) or list(islice(origins.step(at), MOST))
    for one in found:
        yield from _ways(origins, one, depth - 1)
    if not found:
        yield Measured(at, unknown=(_why(at),))


def elements(origins: Origins, at: Origin) -> Iterator[Origin]:
    """What one entry of a list, or one value of a mapping, can be."""
    match at.term:
        case Item(of, _) | Each(of, _):
            yield from _held(origins, replace(at, term=of), 6)


def _held(origins: Origins, at: Origin, depth: int) -> Iterator[Origin]:
    if depth <= 0:
        return
    match at.term:
        case Choice(_, then, other):
            for side in (then, other):
                yield from _held(origins, replace(at, term=side), depth)
        case Operation("+", left, right):
            for side in (left, right):
                yield from _held(origins, replace(at, term=side), depth)
        case Operation("*", Sequence() as left, _):
            yield from _held(origins, replace(at, term=left), depth)
        case Sequence(items):
            for item in items:
                if isinstance(item, Many):
                    yield from _held(origins, replace(at, term=item), depth)
                else:
                    yield replace(at, term=item)
        case Mapping(_, values):
            for value in values:
                yield replace(at, term=value)
        case Many():
            yield replace(at, term=_innermost(at.term))
        case Slice(of, _, _):
            yield from _held(origins, replace(at, term=of), depth)
        case Field(of, name):
            yield from _put(origins, at, of, name, depth)
        case _:
            for one in islice(origins.step(at), MOST):
                yield from _held(origins, one, depth - 1)


def _innermost(term: Term) -> Term:
    """What is put into a list by loops within loops, one by one."""
    while isinstance(term, Many):
        term = term.element
    return term


def _put(origins: Origins, at: Origin, of: Term, name: str, depth: int) -> Iterator[Origin]:
    """What is put into the list or mapping that a field holds, one by one or as a whole."""
    program = origins.program
    owner = program.type_of(of, at.body)
    stores = program.stores(name, owner)
    own = [
        (b, s)
        for b, s in stores
        if owner is not None
        and (kind := program.type_of(s.of, b)) is not None
        and (kind in program.family(owner) or owner in program.family(kind))
    ]
    by_name = at.by_name or (not own and len(stores) > 1)
    for body, store in own or stores:
        if isinstance(store.value, Literal):
            continue
        says = f"{name} gets {brief(_innermost(store.value), 70)}"
        step = Step(program.span(body, store.place), says)
        one = replace(
            at, term=store.value, body=body, frame=None, steps=(*at.steps, step), by_name=by_name
        )
        if store.appended or store.key is not None:
            yield replace(one, term=_innermost(one.term))
        else:
            yield from _held(origins, one, depth - 1)
