"""What ties a literal width to what it stands for, near enough to be a guard.

A comparison that refuses, a check of the dtype, or memory of the very size in the same function
that is read as a dtype of so many bytes.
"""

from collections.abc import Iterator

from kvlint.analysis.bodies import Body, Guard, Where
from kvlint.analysis.guards import FLIP, refusals, refused_when_made, step_of
from kvlint.analysis.link import Program
from kvlint.analysis.quantities import Unit, is_dtype, is_told, unit_of
from kvlint.analysis.showing import brief
from kvlint.analysis.tensors import allocation, bytes_of, tensors
from kvlint.analysis.terms import (
    Call,
    Each,
    Field,
    Fold,
    Literal,
    Many,
    Not,
    Operation,
    Parameter,
    Sequence,
    Slice,
    Term,
    last_name,
)
from kvlint.analysis.vocabulary import words
from kvlint.analysis.widths import Width, summands
from kvlint.findings import Step

Comparison = tuple[str, Term, Term]  # symbol, left, right


def tie(
    program: Program, body: Body, width: Width, where: Where, of: Term | None = None
) -> Step | None:
    """The first thing that ties the width to its parts where it stands: in `body`, or, for the
    tensor `of` that it is about, in the class that makes it."""
    for inner, guard, condition in _checks(program, body, where):
        if any(_ties(program, body, width, of, one) for one in comparisons(condition)):
            return step_of(program, inner, guard)
    made = making(program, body, width, of)
    return _read_as(program, body, width) or (made[0] if made and made[1] else None)


def _checks(program: Program, body: Body, where: Where) -> Iterator[tuple[Body, Guard, Term]]:
    """What is refused before the place is come to, or with it: in the body, in helpers that it
    calls, and when an object of its class is made."""
    for guard in body.guards:
        if _covers(guard, where):
            yield body, guard, guard.condition
    for site in body.calls:
        if site.where.dominates(where):
            yield from refusals(program, site.call, body)
    yield from refused_when_made(program, body)


def _covers(guard: Guard, where: Where) -> bool:
    """Whether the check stands on every way to the place or, if it refuses, behind it."""
    if guard.where.dominates(where):
        return True
    return guard.raises and where.block[: len(guard.where.block)] == guard.where.block


def comparisons(condition: Term, holds: bool = True) -> Iterator[Comparison]:
    """Comparisons that hold where the condition, or its negation, does."""
    match condition:
        case Not(of):
            yield from comparisons(of, not holds)
        case Operation("and", left, right) if holds:
            yield from comparisons(left)
            yield from comparisons(right)
        case Operation("or", left, right) if not holds:
            yield from comparisons(left, False)
            yield from comparisons(right, False)
        case Fold("all", Many(each, _, _, None)) if holds:
            yield from comparisons(each)
        case Fold("any", Many(each, _, _, None)) if not holds:
            yield from comparisons(each, False)
        case Operation("==" | "in" | "is" as symbol, left, right) if holds:
            yield symbol, left, right
        case Operation("!=" | "not in" | "is not" as symbol, left, right) if not holds:
            yield FLIP[symbol], left, right


def _ties(
    program: Program, body: Body, width: Width, of: Term | None, compared: Comparison
) -> bool:
    symbol, left, right = compared
    for one, other in ((left, right), (right, left)):
        if symbol == "==" and one.contains(width.term) and one != other:
            return True
        if width.row and symbol == "==" and is_width(one, other, {width.value}, body):
            return True
        if symbol == "==" and not width.row and other == Literal(width.value):
            if is_told(one, body, Unit.ELEMENT_SIZE):
                return True
        if is_dtype(one) and not width.row and _speaks_of(one, width, of):
            named = other.items if isinstance(other, Sequence) else (other,)
            if all(bytes_of(program, n, body) == width.value for n in named):
                return True
    return False


def is_width(one: Term, other: Term, told: set[int], body: Body) -> bool:
    """Whether `other` is one of the widths `told`, and `one` can have it: what is measured off a
    tensor, or is bytes or a width by name."""
    numbers = other.items if isinstance(other, Sequence) else (other,)
    if not any(isinstance(n, Literal) and n.value in told for n in numbers):
        return False
    named = unit_of(one, body) in (Unit.ELEMENTS, Unit.BYTES) or "width" in words(last_name(one))
    return named or one.contains(measures)


def measures(term: Term) -> bool:
    return last_name(term) in ("shape", "stride", "size")


def _speaks_of(dtype: Term, width: Width, of: Term | None) -> bool:
    """Whether a dtype is of the tensor that the width is about: the one it counts elements of,
    or the one `of` whose address it is added to. One that belongs to no tensor in sight may be."""
    measured = {m for part in width.term.walk() if (m := _measured(part)) is not None}
    match dtype:
        case Field(owner, _) if owner in measured or owner == of:
            return True
        case Field(Parameter() | Each() as owner, "dtype"):
            about = {*measured, *([of] if of is not None else [])}
            return not about or any(_same_list(owner, one) for one in about)
        case Field(owner, _):
            return not measured and not isinstance(owner, Call)
    return True


def _same_list(one: Term, other: Term) -> bool:
    """Elements of one list, looked at by different loops."""
    match one, other:
        case Each(a, _), Each(b, _):
            return a == b
    return False


def _read_as(program: Program, body: Body, width: Width) -> Step | None:
    """A view of memory of this size, or an array of as many elements, of a dtype of so many
    bytes, made in the same function."""
    counted = {f for part in summands(width.term) for f in part.factors}
    for site in body.calls:
        call = site.call
        made = allocation(call, body)
        if made is not None:
            fits = counted and counted <= set(made.shape)
            dtype = made.dtype
        elif call.name == "view" and call.receiver is not None and len(call.arguments) == 1:
            fits = any(
                isinstance(p, Slice | Call) and p.contains(width.term) for p in call.receiver.walk()
            )
            dtype = call.arguments[0]
        else:
            continue
        if fits and bytes_of(program, dtype, body) == width.value:
            return Step(
                program.span(body, site.place), f"is read as {brief(dtype, 40) if dtype else ''}"
            )
    return None


def making(program: Program, body: Body, width: Width, of: Term | None) -> tuple[Step, bool] | None:
    """Where the tensor `of`, or the one that is measured, is made of a dtype of so many bytes, and
    whether that is near: in the same function or class."""
    owner = body.definition.owner
    family = program.family(owner) if body.definition.class_name else ()
    about = [of] if of is not None else [m for p in width.term.walk() if (m := _measured(p))]
    for tensor in about:
        match tensor:
            case Call(callee="view", arguments=(dtype,)) if (
                bytes_of(program, dtype, body) == width.value
            ):
                span = program.span_of(body, tensor)
                return Step(span, f"is read as {brief(dtype, 40)}"), True
        made = tensors(program, tensor, body)
        if made and all(bytes_of(program, m.dtype, m.body) == width.value for m in made):
            definitions = [m.body.definition for m in made]
            near = all(
                m.body is body or d.owner in family for m, d in zip(made, definitions, strict=True)
            )
            place = made[0].body.place_of(made[0].call)
            told = brief(made[0].dtype, 40) if made[0].dtype is not None else ""
            span = program.span(made[0].body, place[0] if place else -1)
            return Step(span, f"is made of {told}"), near
    return None


def _measured(part: Term) -> Term | None:
    match part:
        case Field(owner, "shape") | Call(callee="numel" | "size" | "stride", receiver=owner):
            return owner
    return None
