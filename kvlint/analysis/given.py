"""Where the factors and addends of a value were given theirs: lines that a reader looks at next."""

from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.bodies import Body, Mark, Store
from kvlint.analysis.link import Program
from kvlint.analysis.showing import brief
from kvlint.analysis.terms import Field, Literal, Operation, Term
from kvlint.findings import Step


@dataclass(frozen=True, slots=True)
class Number:
    """The number that a field is given wherever it is stored; `store`, in `body`, is the first."""

    value: int
    body: Body
    store: Store


def given(program: Program, body: Body, term: Term, mark: Mark) -> tuple[Step, ...]:
    """The assignments of the locals, and of the fields that only ever get one number, that
    `term` is made of. What is on the line of `mark`, where `term` stands, is left out."""
    line = program.span(body, mark).line
    steps: dict[Step, None] = {}
    for part in operands(term):
        for step in (*_of_local(program, body, part), *_of_field(program, body, part)):
            if (step.span.path, step.span.line) != (body.definition.path, line):
                steps.setdefault(step)
    return tuple(steps)


def operands(term: Term) -> Iterator[Term]:
    """The term and what its arithmetic is made of."""
    yield term
    match term:
        case Operation(_, left, right):
            yield from operands(left)
            yield from operands(right)


def _of_local(program: Program, body: Body, part: Term) -> Iterator[Step]:
    if part in body.assigned:
        name, mark = body.assigned[part]
        yield Step(program.span(body, mark), f"{name} = {brief(part, 60)}")


def _of_field(program: Program, body: Body, part: Term) -> Iterator[Step]:
    number = only_number(program, body, part)
    if number is not None:
        span = program.span(number.body, number.store.place)
        yield Step(span, f"{brief(part, 40)} = {number.value}")


def only_number(program: Program, body: Body, field: Term) -> Number | None:
    """What a field is only ever given, if it is a number."""
    if not isinstance(field, Field):
        return None
    owner = program.type_of(field.of, body)
    stores = program.stores(field.name, owner) if owner else []
    match list({store.value for _, store in stores}):
        case [Literal(int(value))] if value > 0:
            return Number(value, *stores[0])
    return None
