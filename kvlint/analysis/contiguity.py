"""Where code makes sure that a tensor's slots follow one another without gaps."""

import re
from collections.abc import Iterator

from kvlint.analysis.bodies import Body, Where
from kvlint.analysis.forms import ZERO
from kvlint.analysis.guards import refusals, refused_when_made, step_of
from kvlint.analysis.link import Program
from kvlint.analysis.origins import Origin
from kvlint.analysis.showing import brief
from kvlint.analysis.terms import Call, Choice, Each, Item, Many, Sequence, Slice, Term, last_name
from kvlint.analysis.vocabulary import apis
from kvlint.findings import Step

_ASKS = frozenset({"is_contiguous", "stride"})
_TESTED = re.compile(r"\bis_contiguous\(|\.stride\(")
_PARTS = apis().same_memory | {"items", "keys", "values"}
_MADE = re.compile(r"(\w+)(?:\[[^\]\n]*\])?\.contiguous\(")


def roots_of(tensor: Term) -> Iterator[Term]:
    """The lists, mappings or objects that a tensor can be a part of."""
    match tensor:
        case Item(of, _) | Each(of, _) | Slice(of, _, _) | Many(of, _, _):
            yield from roots_of(of)
        case Choice(_, then, other):
            yield from roots_of(then)
            yield from roots_of(other)
        case Sequence(items):
            for one in items:
                yield from roots_of(one)
        case Call(callee=name, receiver=of) if of is not None and name in _PARTS:
            yield from roots_of(of)
        case _:
            yield tensor


def contiguous_by(
    program: Program, length: Origin, tensor: Term, asked: Body, used: Body, at: Where
) -> Step | None:
    """The check or the copy that leaves no gaps, on this way to a length: where the tensor is
    measured (`asked`), or where the address is made (`used`, `at`)."""
    for text, _ in length.facts:
        if _TESTED.search(text):
            place = asked.place_of(tensor)
            return Step(program.span(asked, place[0] if place else -1), f"only where {text}")
    roots = set(roots_of(tensor))
    written = length.body.place_of(length.term)
    there = written[1] if written and length.body is asked else None
    return _checked(program, asked, there, roots) or _checked(program, used, at, roots)


def _checked(program: Program, body: Body, at: Where | None, roots: set[Term]) -> Step | None:
    for guard in body.guards:
        holds = guard.raises or guard.turn or (at is not None and guard.where.dominates(at))
        if holds and _asks(program.inline(guard.condition, body), roots):
            says = f"checks {brief(guard.condition, 80)}"
            return Step(program.span(body, guard.place), says)
    refused = [r for site in body.calls for r in refusals(program, site.call, body)]
    for inner, guard, condition in (*refused, *refused_when_made(program, body)):
        if _asks(condition, roots):
            return step_of(program, inner, guard)
    copied = set(_MADE.findall(program.text(body.definition)))
    if any(last_name(root) in copied for root in roots):
        return Step(program.span(body, -1), "makes a contiguous copy")
    return None


def _asks(condition: Term, roots: set[Term]) -> bool:
    return any(
        isinstance(part, Call)
        and part.name in _ASKS
        and part.receiver is not None
        and part.arguments in ((), (ZERO,))  # the stride of another axis says nothing
        and not roots.isdisjoint(roots_of(part.receiver))
        for part in condition.holding(Call.bit)
    )
