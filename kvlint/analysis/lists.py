"""Descriptor lists of a program: counts they share, indices that go into them."""

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.bodies import Body, Place
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
    Index,
    Operation,
    Parameter,
    Term,
    show,
)
from kvlint.analysis.vocabulary import apis
from kvlint.assumptions import Own
from kvlint.findings import Step

BUILDS = re.compile(r"\b(?:arange|range|full|column_stack)\(|xfer|\bregister|descs?\b|runs\b")
ADDRESSES = re.compile(r"(?i)ptr|addr")


@dataclass(frozen=True, slots=True)
class SharedCount:
    """A count that all regions of a list get. `replaces`: an own count stands beside it;
    `meanings`: what it can be, worst first; `checks`: each region was compared with it."""

    body: Body
    place: Place
    shown: str
    address: str
    kind: str
    replaces: bool
    meanings: tuple[Meaning, ...]
    checks: tuple[Step, ...]


def shared_counts(program: Program) -> Iterator[SharedCount]:
    origins = Origins(program)
    for body in program.holding(BUILDS, ADDRESSES):
        seen: set[tuple[Term, str]] = set()
        for root in [*body.roots, *body.returns]:
            found: list[tuple[Term, Count, str]] = [(c.count, c, "list") for c in counts(root.term, body)]
            found += [(whole, c, "registration") for whole, c in registered(root.term, body)]
            for shown, count, kind in found:
                for shared, replaces in _shared(count):
                    if (shared, kind) in seen:
                        continue
                    seen.add((shared, kind))
                    said = tuple(meanings(origins, Origin(shared, body, None)))
                    if not said:
                        continue
                    term = shown if kind == "registration" or replaces else shared
                    place = _place(body, count, term, root.place)
                    checks = tuple(_checked(program, body, shared))
                    yield SharedCount(
                        body, place, show(shared)[:60], show(count.address)[:60], kind,
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


def _place(body: Body, count: Count, term: Term, default: Place) -> Place:
    for loop in body.loops.values():
        if loop.over.contains(lambda t: t == term) and count.address.contains(
            lambda t, loop=loop: isinstance(t, Index) and t.loop == loop.id  # type: ignore[misc]
        ):
            return loop.place
    written = body.spans.get(count.count) or body.spans.get(term)
    if written and isinstance(count.count, Choice | Operation):
        return written[0][0]
    for loop in body.loops.values():
        match loop.over:
            case Call() | Operation():
                continue
        if any(t == term for t in loop.over.walk()) and loop.id not in count.loops:
            return loop.place
    return default


def _checked(program: Program, body: Body, shared: Term) -> Iterator[Step]:
    """Checks that compare the shared count with each region's own."""
    for guard, said in guards_of(program, body):
        for fact in said:
            limit = fact.limit if isinstance(fact, Bound) else None
            if limit == shared and isinstance(fact, Bound) and fact.symbol in (">=", "=="):
                yield Step(program.span(body, guard.place), f"checks {show(guard.condition)[:80]}")
            if isinstance(fact, Uniform) and shared.contains(fact.entry):
                yield Step(program.span(body, guard.place), f"checks {show(guard.condition)[:80]}")


@dataclass(frozen=True, slots=True)
class StridedIndex:
    """Indices `i * stride + p` into a prepared list, and the counts the list was built with."""

    body: Body
    place: Place
    stride: Term
    side: str
    strides: tuple[Meaning, ...]
    built: tuple[Meaning, ...]
    list_step: Step | None
    same: bool
    unresolved: tuple[str, ...]


POSTS = re.compile(r"\b(?:" + "|".join(n for n, r in apis().transports.items() if "local_index" in r) + r")\(")


def strided_indices(program: Program) -> Iterator[StridedIndex]:
    origins = Origins(program)
    seen: set[tuple[str, Place, Term]] = set()
    for body in program.holding(POSTS):
        for site in body.calls:
            roles = apis().transports.get(site.call.name, {})
            for side in ("local", "remote"):
                index = _argument(site.call, roles.get(f"{side}_index"))
                handle = _argument(site.call, roles.get(f"{side}_handle"))
                if index is None or handle is None:
                    continue
                for at, stride, place in _combined(program, origins, index, body):
                    key = (at.body.definition.key, place, stride)
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
) -> Iterator[tuple[Origin, Term, Place]]:
    """Where region number and stride meet: (origin with the stride, stride, place).

    The place is that of the product, or of the call that hands the stride to a helper;
    it lies in the body that is looked at from `body`.
    """
    for origin in [Origin(index, body, None), *origins.of(index, body)]:
        for part in origin.term.walk():
            match part:
                case Operation("*", left, right):
                    for number, stride in ((left, right), (right, left)):
                        if not _numbers_regions(origins, origin, number):
                            continue
                        if origin.frame is not None:
                            at, place = _handed(program, origin, stride)
                        else:
                            found = origin.body.place_of(part)
                            at, place = origin, found[0] if found else (1, 1, 1, 1)
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


def _handed(program: Program, origin: Origin, stride: Term) -> tuple[Origin, Place]:
    frame = origin.frame
    assert frame is not None
    if stride.contains(lambda t: isinstance(t, Parameter) and t.function == frame.callee):
        span = frame.step.span
        return origin, (span.line, span.column, span.end_line, span.end_column)
    found = origin.body.place_of(stride)
    return origin, found[0] if found else (1, 1, 1, 1)


def _compared(
    origins: Origins,
    at: Origin,
    stride: Term,
    place: Place,
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
        step = step or (origin.steps[-2] if len(origin.steps) > 1 else (origin.steps or (None,))[-1])
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
        unresolved.append(f"the list behind {show(handle)[:50]} is not known")
    unresolved += [m.unresolved for m in (*strides[:1], *built[:1]) if m.unresolved]
    return StridedIndex(
        home, place, stride, side, strides, tuple(built), step,
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


def _built(origins: Origins, listed: Term, at: Origin, depth: int) -> Iterator[tuple[Count, Origin]]:
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
