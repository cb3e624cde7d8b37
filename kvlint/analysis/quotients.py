"""Quotients that place memory: what is rounded down on the way to a stride or a count."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.bodies import Body, Mark
from kvlint.analysis.contiguity import roots_of
from kvlint.analysis.descriptors import counts
from kvlint.analysis.forms import normal
from kvlint.analysis.guards import refusals
from kvlint.analysis.link import Program
from kvlint.analysis.lists import BUILDS, TRANSPORT, addresses
from kvlint.analysis.measures import measured, same
from kvlint.analysis.origins import Origin, Origins
from kvlint.analysis.quantities import Unit, quantity
from kvlint.analysis.roles import Strength
from kvlint.analysis.showing import brief
from kvlint.analysis.strides import products, stepping
from kvlint.analysis.tensors import allocation
from kvlint.analysis.terms import Call, Literal, Operation, Term
from kvlint.analysis.vocabulary import words
from kvlint.findings import Span, Step

MAKES = re.compile(r"(?:zeros|empty)\(")
PAGES = re.compile(r"// ?[\w.]*(?:page|block|slot)")
_ALIGNS = frozenset({"align", "aligned", "round", "pad", "padded"})
_DIVIDED = frozenset({Unit.BYTES, Unit.ELEMENTS, Unit.TOKENS, Unit.SLOTS})
_DIVIDERS = _DIVIDED | {Unit.ELEMENT_SIZE, Unit.HEADS, Unit.LAYERS}


@dataclass(frozen=True, slots=True)
class Rounded:
    """`dividend // divisor` as a `use` (stride, count or shape) of memory, in `body` at `at`.

    `sure`: an API tells what one of them counts; `settled`: why nothing is lost.
    """

    body: Body
    at: Span
    dividend: Term
    divisor: Term
    use: str
    sure: bool
    settled: Step | None
    steps: tuple[Step, ...]


def rounded(program: Program) -> Iterator[Rounded]:
    """Each quotient once, where its body first uses it for memory."""
    origins = Origins(program)
    seen: set[tuple[str, Term]] = set()
    for body, term, mark, use in _uses(program):
        for at in _quotients(origins, body, term, use):
            key = (at.body.definition.key, at.term)
            if key not in seen:
                seen.add(key)
                found = _judged(program, origins, at, body, term, mark, use)
                if found is not None:
                    yield found


def _quotients(origins: Origins, body: Body, term: Term, use: str) -> Iterator[Origin]:
    if use == "shape":  # of any tensor at all: only what is written there is looked at
        if isinstance(term, Operation) and term.symbol == "//":
            yield Origin(term, body, None)
        return
    for way in measured(origins, Origin(term, body, None)):
        yield from way.quotients


def _uses(program: Program) -> Iterator[tuple[Body, Term, Mark, str]]:
    for body in stepping(program):
        seen: set[Term] = set()
        for root in reversed([*body.roots, *body.returns]):
            for _, _, length in products(program, root.term, body, seen):
                yield body, length, root.place, "stride"
    for body in program.holding(BUILDS, addresses(), words=TRANSPORT):
        grown: set[Term] = set()
        for root in reversed([*body.roots, *body.returns]):
            if root.term in grown:
                continue
            # What a value grew from is in what it grew to.
            part = root.term
            while isinstance(part, Operation):
                grown.add(part)
                part = part.left
            for count in counts(root.term, body):
                yield body, count.count, root.place, "count"
    for body in program.holding(PAGES, MAKES):
        for site in body.calls:
            made = allocation(site.call, body)
            if made is not None:
                yield body, made.shape[0], site.place, "shape"


def _judged(
    program: Program, origins: Origins, at: Origin, body: Body, term: Term, mark: Mark, use: str
) -> Rounded | None:
    """None where a remainder is meant, or where a thing is only split among several."""
    quotient = at.term
    assert isinstance(quotient, Operation)
    dividend, divisor = quotient.left, quotient.right
    if isinstance(divisor, Literal) or (
        isinstance(dividend, Operation) and dividend.symbol in ("+", "-")
    ):
        return None  # a ceiling, or one more than needed, is meant
    one, other = quantity(dividend, at.body), quantity(divisor, at.body)
    if one is None or other is None or one.unit not in _DIVIDED or other.unit not in _DIVIDERS:
        return None
    if use == "shape" and one.unit is Unit.ELEMENTS:
        return None  # rows and columns of any matrix
    if use != "count" and one.unit is other.unit is Unit.BYTES:
        return None  # how many things fit a budget
    span = program.span_of(at.body, quotient)
    at_body = at.body
    if span.path != body.definition.path:
        used = body.place_of(term)
        span, at_body = program.span(body, used[0] if used else mark), body
    settled = _exact(program, origins, at, dividend, divisor) or _checked(
        program, origins, at, quotient
    )
    sure = Strength.STRONG in (one.strength, other.strength)
    return Rounded(at_body, span, dividend, divisor, use, sure, settled, at.steps)


def _exact(
    program: Program, origins: Origins, at: Origin, dividend: Term, divisor: Term
) -> Step | None:
    """Why the division leaves no remainder by construction: what is divided was multiplied by
    the divisor, was aligned to it, or both are measured from one tensor."""
    for one in [Origin(dividend, at.body, at.frame), *origins.of(dividend, at.body, at.frame)]:
        if _is_multiple(normal(one.term), divisor):
            span = program.span_of(one.body, one.term)
            return Step(span, f"is {brief(one.term, 60)}")
    sides = [
        {root for way in measured(origins, Origin(side, at.body, at.frame))
         for tensor, _ in way.extents for root in roots_of(tensor)}
        for side in (dividend, divisor)
    ]  # fmt: skip
    if not sides[0].isdisjoint(sides[1]):
        span = program.span_of(at.body, at.term)
        return Step(span, "both are measured from one tensor")
    return None


def _is_multiple(term: Term, divisor: Term) -> bool:
    match term:
        case Operation("*", left, right):
            return any(same(side, divisor) or _is_multiple(side, divisor) for side in (left, right))
        case Call() as call if _ALIGNS & set(words(call.name)):
            return any(same(value, divisor) for value in call.values())
    return False


def _checked(program: Program, origins: Origins, at: Origin, quotient: Operation) -> Step | None:
    """A check of the remainder, or of the product, in the body or where its parts come from."""
    written = at.body.place_of(quotient)
    bodies = {at.body.definition.key: at.body}
    for side in (quotient.left, quotient.right):
        for one in origins.of(side, at.body, at.frame):
            bodies.setdefault(one.body.definition.key, one.body)
    for body in bodies.values():
        for guard in body.guards:
            inside = body is at.body and written and guard.where.dominates(written[1])
            if guard.raises or inside:
                if _tests(program.inline(guard.condition, body), quotient):
                    return _step(program, body, guard.place, guard.condition)
        for site in body.calls:
            for inner, guard, condition in refusals(program, site.call, body):
                if _tests(condition, quotient):
                    return _step(program, inner, guard.place, guard.condition)
    return None


def _step(program: Program, body: Body, place: int, condition: Term) -> Step:
    return Step(program.span(body, place), f"checks {brief(condition, 80)}")


def _tests(condition: Term, quotient: Operation) -> bool:
    for part in condition.holding(Operation.bit):
        match part:
            case Operation("%", left, right):
                if same(right, quotient.right) and same(left, quotient.left):
                    return True
            case Operation("==" | "!=", left, right):
                for side, other in ((left, right), (right, left)):
                    product = _is_multiple(side, quotient.right) and same(other, quotient.left)
                    if product or side.contains(quotient):
                        return True
    return False
