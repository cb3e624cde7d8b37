"""Descriptor lists of a program: counts they share, indices that go into them."""

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.bodies import Body, Mark, Where
from kvlint.analysis.descriptors import Count, counts, registered
from kvlint.analysis.guards import Bound, Uniform, guards_of
from kvlint.analysis.link import Program
from kvlint.analysis.meaning import Meaning, meanings, varies
from kvlint.analysis.origins import Origin, Origins
from kvlint.analysis.roles import counts_regions, numbers_region
from kvlint.analysis.terms import (
    Arange,
    Call,
    Choice,
    Each,
    Field,
    Literal,
    Operation,
    Parameter,
    Term,
    brief,
)
from kvlint.analysis.vocabulary import apis, nouns
from kvlint.assumptions import Own
from kvlint.findings import Span, Step

BUILDS = re.compile(
    r"\b(?:arange|range|full|column_stack)\(|\bappend\(\s*[(\[]|\(\s*\w+,[^()]*\)\s*for\b"
)
ADDRESSES = re.compile(r"(?i)(?:ptrs?|addrs?|address(?:es)?)\b")
COUNTS = re.compile(r"num_(?:blocks|slots|pages|rows)|slots|count|//")
TRANSPORT = re.compile("|".join(sorted(nouns().descriptors)))


@dataclass(frozen=True, slots=True)
class SharedCount:
    """A count that all regions of a list get. `replaces`: an own count stands beside it;
    `meanings`: what it can be, worst first; `checks`: each region was compared with it."""

    body: Body
    at: Span
    shown: str
    address: str
    kind: str
    replaces: bool
    meanings: tuple[Meaning, ...]
    checks: tuple[Step, ...]


def shared_counts(program: Program) -> Iterator[SharedCount]:
    origins = Origins(program)
    for body in program.holding(BUILDS, ADDRESSES, COUNTS, file=TRANSPORT):
        seen: set[tuple[Term, str]] = set()
        for root in [*body.roots, *body.returns]:
            found: list[tuple[Term, Count, str]] = [
                (c.count, c, "list") for c in counts(root.term, body)
            ]
            found += [(whole, c, "registration") for whole, c in registered(root.term, body)]
            for shown, count, kind in found:
                for shared, replaces in _shared(count):
                    if (shared, kind) in seen:
                        continue
                    seen.add((shared, kind))
                    said = tuple(meanings(origins, Origin(shared, body, None)))
                    if not said:
                        continue
                    term = count.count if replaces else shown
                    place = _place(body, root.where, count, term, root.place)
                    checks = tuple(_checked(program, body, shared))
                    yield SharedCount(
                        body, program.span(body, place), brief(shared, 60),
                        brief(count.address, 60), kind,
                        replaces, said, checks,
                    )  # fmt: skip


def _shared(count: Count) -> Iterator[tuple[Term, bool]]:
    """The part of a count that is the same for every region; whether it replaces an own one."""
    match count.count:
        case Choice(_, then, other):
            own = [count.is_own(x) for x in (then, other)]
            if own == [False, True]:
                yield then, True
            elif own == [True, False]:
                yield other, True
            elif own == [False, False]:
                yield count.count, False
        case term if not count.is_own(term):
            yield term, False


def _place(body: Body, where: Where, count: Count, term: Term, default: Mark) -> Mark:
    """Where the shared count was written: the loop that counts, the choice, the product."""
    for loop in where.loops:
        if body.loops[loop].over == Arange(count.count):
            return body.loops[loop].place
    for written in (term, count.count):
        if isinstance(written, Choice | Operation):
            for place, there in body.spans.get(written, ()):
                if there.loops[: len(where.loops)] == where.loops[: len(there.loops)]:
                    return place
    return default


def _checked(program: Program, body: Body, shared: Term) -> Iterator[Step]:
    """Checks that compare the shared count with each region's own."""
    for guard, said in guards_of(program, body):
        for fact in said:
            limit = fact.limit if isinstance(fact, Bound) else None
            if limit == shared and isinstance(fact, Bound) and fact.symbol in (">=", "=="):
                yield Step(program.span(body, guard.place), f"checks {brief(guard.condition, 80)}")
            if isinstance(fact, Uniform) and shared.contains(fact.entry):
                yield Step(program.span(body, guard.place), f"checks {brief(guard.condition, 80)}")


@dataclass(frozen=True, slots=True)
class StridedIndex:
    """Indices `i * stride + p` into a prepared list, and the counts the list was built with."""

    body: Body
    at: Span
    stride: Term
    side: str
    strides: tuple[Meaning, ...]
    built: tuple[Meaning, ...]
    list_step: Step | None
    same: bool
    unresolved: tuple[str, ...]


POSTS = re.compile(
    r"\b(?:" + "|".join(n for n, r in apis().transports.items() if "local_index" in r) + r")\("
)


def strided_indices(program: Program) -> Iterator[StridedIndex]:
    origins = Origins(program)
    seen: set[tuple[Span, Term]] = set()
    for body in program.holding(POSTS):
        for site in body.calls:
            roles = apis().transports.get(site.call.name, {})
            for side in ("local", "remote"):
                index = _argument(site.call, roles.get(f"{side}_index"))
                handle = _argument(site.call, roles.get(f"{side}_handle"))
                if index is None or handle is None:
                    continue
                for at, stride, place in _combined(program, origins, index, body):
                    key = (place, stride)
                    if key in seen:
                        continue
                    seen.add(key)
                    yield _compared(origins, at, stride, place, handle, body, side, program)


def _argument(call: Call, position: object) -> Term | None:
    if not isinstance(position, int):
        return None
    return call.arguments[position] if position < len(call.arguments) else None


def _combined(
    program: Program, origins: Origins, index: Term, body: Body
) -> Iterator[tuple[Origin, Term, Span]]:
    """Where region number and stride meet: (origin with the stride, stride, place).

    The place is that of the product, or of the call that hands the stride to a helper;
    it lies in the body that is looked at from `body`.
    """
    for origin in [Origin(index, body, None), *origins.of(index, body)]:
        for part in origin.term.walk():
            match part:
                case Operation("*", left, right):
                    for number, stride in ((left, right), (right, left)):
                        if isinstance(stride, Literal):
                            continue  # K and V of a layer: a region number still
                        if not _numbers_regions(origins, origin, number):
                            continue
                        if origin.frame is not None:
                            at, place = _handed(program, origin, stride)
                        else:
                            at, place = origin, _span(program, origin.body, part)
                        yield at, stride, place
                        break


def _numbers_regions(origins: Origins, origin: Origin, number: Term) -> bool:
    if numbers_region(number, origin.body):
        return True
    match number:
        case Arange(count) if origin.frame is not None:
            return any(
                counts_regions(o.term, o.body)
                for o in origins.nearby(count, origin.body, origin.frame)
            )
        case Each(of, _) if origin.frame is not None:
            return any(
                numbers_region(o.term, o.body)
                for o in origins.nearby(of, origin.body, origin.frame)
            )
    return False


def _handed(program: Program, origin: Origin, stride: Term) -> tuple[Origin, Span]:
    frame = origin.frame
    assert frame is not None
    if stride.contains(lambda t: isinstance(t, Parameter) and t.function == frame.callee):
        return origin, frame.step.span
    return origin, _span(program, origin.body, stride)


def _span(program: Program, body: Body, term: Term) -> Span:
    found = body.place_of(term)
    return program.span(body, found[0] if found else 0)


def _compared(
    origins: Origins,
    at: Origin,
    stride: Term,
    at_span: Span,
    handle: Term,
    body: Body,
    side: str,
    program: Program,
) -> StridedIndex:
    home = at.body
    if at.frame is not None and stride.contains(
        lambda t: isinstance(t, Parameter) and t.function == at.frame.callee  # type: ignore[union-attr]
    ):
        home = at.frame.body
    near = origins.nearby(stride, at.body, at.frame)
    strides = tuple(meanings(origins, Origin(stride, at.body, at.frame)))
    built: list[Meaning] = []
    unresolved: list[str] = []
    same: list[bool] = []
    step: Step | None = None
    for count, origin in prepared(program, origins, handle, body):
        step = step or (
            origin.steps[-2] if len(origin.steps) > 1 else (origin.steps or (None,))[-1]
        )
        counted = origins.nearby(count.count, origin.body, origin.frame)
        for one in counted:
            if _is_own(count, one):
                built.append(Meaning(Own("slots"), one))
                same.append(False)
            elif any(_alike(one.term, other.term) for other in near):
                same.append(True)
            else:
                built.extend(meanings(origins, one))
                same.append(False)
    if not same:
        unresolved.append(f"the list behind {brief(handle, 50)} is not known")
    unresolved += [m.unresolved for m in (*strides[:1], *built[:1]) if m.unresolved]
    return StridedIndex(
        home, at_span, stride, side, strides, tuple(built), step,
        bool(same) and all(same), tuple(unresolved),
    )  # fmt: skip


def _is_own(count: Count, origin: Origin) -> bool:
    return count.is_own(origin.term) or varies(origin.term, origin)


def _alike(one: Term, other: Term) -> bool:
    """The same field of the same kind of object, or the same expression."""
    if one == other:
        return True
    match one, other:
        case Field(_, a), Field(_, b):
            return a == b
    return False


def prepared(
    program: Program, origins: Origins, handle: Term, body: Body
) -> Iterator[tuple[Count, Origin]]:
    """How the lists that a handle can stand for were built: counts, and where."""
    for origin in origins.of(handle, body):
        match origin.term:
            case Call() as call if "handle" in apis().transports.get(call.name, {}):
                listed = _argument(call, apis().transports[call.name]["list"])
                if listed is not None:
                    yield from _built(origins, listed, origin, 3)
    del program


def _built(
    origins: Origins, listed: Term, at: Origin, depth: int
) -> Iterator[tuple[Count, Origin]]:
    for origin in origins.of(listed, at.body, at.frame):
        origin = dataclasses.replace(origin, steps=(*at.steps, *origin.steps))
        match origin.term:
            case Call() as call if call.name in apis().transports and depth:
                inner = _argument(call, apis().transports[call.name].get("list"))
                if inner is not None:
                    yield from _built(origins, inner, origin, depth - 1)
            case term:
                for count in dict.fromkeys(counts(term, origin.body)):
                    yield count, origin
