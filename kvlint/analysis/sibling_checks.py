"""Checks that two buffers of one list have equally many slots, where they are put together."""

from collections.abc import Iterator

from kvlint.analysis.arithmetic import apart, variables
from kvlint.analysis.bodies import Body
from kvlint.analysis.frames import Frame, Object, Value
from kvlint.analysis.guards import Uniform, facts
from kvlint.analysis.handed import Count, Providers
from kvlint.analysis.outline import Definition
from kvlint.analysis.showing import brief
from kvlint.analysis.terms import Field, Item, Literal, Not, Operation, Term
from kvlint.findings import Step


def compared(
    providers: Providers, provider: Definition, kind: str | None, one: Count, other: Count
) -> Step | None:
    """Where whoever hands two buffers over, or the class it belongs to, refuses two counts."""
    for body in _bodies(providers, provider, kind):
        frame = Frame(body, Object(kind) if kind else None)
        for guard in body.guards:
            if not guard.raises:
                continue
            condition = guard.condition
            by_shape = body.definition == provider and any(map(_of_rows, facts(condition)))
            if by_shape or any(
                _tells(providers, left, frame, one) and _tells(providers, right, frame, other)
                for left, right in _equal(condition)
            ):
                at = providers.program.span(body, guard.place)
                return Step(at, f"checks {brief(condition, 70)}")
    return None


def _bodies(providers: Providers, provider: Definition, kind: str | None) -> Iterator[Body]:
    methods = [d for d, _ in providers.seen.members.methods(kind)] if kind else []
    for definition in dict.fromkeys((provider, *methods)):
        text = providers.program.text(definition)
        body = providers.program.body(definition) if "raise" in text or "assert" in text else None
        if body is not None:
            yield body


def _equal(condition: Term) -> Iterator[tuple[Term, Term]]:
    """Both sides, either way round, of what must be equal."""
    match condition:
        case Operation("==", left, right) | Not(Operation("!=", left, right)):
            yield left, right
            yield right, left
        case Operation("and", left, right):
            yield from _equal(left)
            yield from _equal(right)


def _tells(providers: Providers, side: Term, frame: Frame, count: Count) -> bool:
    """Whether one side of a comparison is the number of rows of a buffer."""
    cases = providers.counting.formulas(Value(side, frame), count.holder)
    return any(variables(told) and apart(told, count.rows) is None for _, told in cases)


def _of_rows(fact: object) -> bool:
    """Whether a fact says that all buffers have the same first dimension, or the same shape."""
    if not isinstance(fact, Uniform) or fact.alone:
        return False
    match fact.entry:
        case Item(Field(of, "shape"), Literal(0)) | Field(of, "shape"):
            return isinstance(of, Item)
    return False
