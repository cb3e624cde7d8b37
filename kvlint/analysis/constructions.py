"""Lists of regions by how they are made: equal by construction, near or far."""

from kvlint.analysis.bodies import Body
from kvlint.analysis.link import Program
from kvlint.analysis.showing import brief
from kvlint.analysis.terms import (
    Call,
    Choice,
    Each,
    Field,
    Index,
    Literal,
    Many,
    Mapping,
    Operation,
    Sequence,
    Term,
    This,
)
from kvlint.findings import Step


def uniform_nearby(program: Program, regions: Term, body: Body) -> Step | None:
    """Why all entries of `regions` are alike, when the same function or class makes them.

    The step tells where; None when they may differ, or are made elsewhere.
    """
    made = _alike(regions)
    if made is not None:
        span = program.span_of(body, regions)
        return Step(span, f"every region is {brief(made, 60)}")
    match regions:
        case Field(This(owner), name):
            family = program.family(owner)
            found: list[tuple[Body, Term, Step]] = []
            for other, store in program.stores(name, owner):
                maker = program.type_of(store.of, other)
                if maker is None or not set(program.family(maker)) & set(family):
                    continue
                if _is_empty(store.value) or store.key is not None:
                    continue
                step = Step(program.span(other, store.place), f"{name} = {brief(store.value, 60)}")
                found.append((other, store.value, step))
            if found and all(
                _alike(program.inline(v, b)) is not None or _alike(v) for b, v, _ in found
            ):
                return found[0][2]
    return None


def _alike(regions: Term) -> Term | None:
    """The element that each entry is, when it does not depend on which."""
    match regions:
        case Many(element, over, loop, None):
            if element.contains(lambda t: isinstance(t, Each | Index) and t.loop == loop):
                return None
            if isinstance(element, Many):
                return _alike(element)
            del over
            return element
        case Choice(_, then, other):
            one, two = _alike(then), _alike(other)
            return one if one is not None and two is not None else None
        case Operation("+", left, right):
            one, two = _alike(left), _alike(right)
            return one if one is not None and one == two else None
        case Sequence((only,)) if isinstance(only, Many):
            return _alike(only)
    return None


def _is_empty(value: Term) -> bool:
    match value:
        case Literal(None) | Sequence(()) | Mapping((), ()):
            return True
        case Call(callee="list" | "dict", receiver=None, arguments=()):
            return True
    return False
