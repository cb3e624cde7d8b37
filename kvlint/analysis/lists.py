"""Descriptor lists of a program: counts they share, indices that go into them."""

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.bodies import Body, Mark, Where
from kvlint.analysis.descriptors import Count, counts, paired, registered
from kvlint.analysis.entries import entries
from kvlint.analysis.guards import Bound, checks_of, settles
from kvlint.analysis.link import Program
from kvlint.analysis.meaning import Meaning, meanings, varies
from kvlint.analysis.origins import Origin, Origins
from kvlint.analysis.roles import counts_regions, invariant, numbers_region, region_list
from kvlint.analysis.showing import brief
from kvlint.analysis.terms import (
    Arange,
    Call,
    Choice,
    Each,
    Field,
    Literal,
    Operation,
    Parameter,
    Running,
    Term,
)
from kvlint.analysis.vocabulary import apis, nouns, own_names, remembered, words
from kvlint.assumptions import Own
from kvlint.findings import Span, Step

BUILDS = re.compile(
    r"\b(?:arange|range|full|column_stack)\(|\bappend\(|register\w*\(|\(\s*\w+,[^()]*\)\s*for\b"
)
TRANSPORT = tuple(sorted(nouns().descriptors))


@remembered
def addresses() -> re.Pattern[str]:
    own = own_names().pattern("addresses")
    return re.compile(rf"(?i)(?:ptrs?|addrs?|address(?:es)?{own})\b")


@remembered
def numbers() -> re.Pattern[str]:
    own = own_names().pattern("slots")
    return re.compile(rf"num_(?:blocks|slots|pages|rows)|slots|count|//{own}")


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
    for body in program.holding(BUILDS, addresses(), numbers(), words=TRANSPORT):
        seen: set[tuple[Term, str]] = set()
        for root in [*body.roots, *body.returns]:
            found: list[tuple[Term, Count, str]] = [
                (c.count, c, "list") for c in counts(root.term, body)
            ]
            found += [(whole, c, "registration") for whole, c in registered(root.term, body)]
            found += [(whole, c, "registration") for whole, c in _paired(root.term, body)]
            for shown, count, kind in found:
                written = count.count
                count = dataclasses.replace(count, count=program.inline(written, body))
                for shared, replaces in _shared(count):
                    if (shared, kind) in seen:
                        continue
                    seen.add((shared, kind))
                    said = tuple(meanings(origins, Origin(shared, body, None)))
                    if not said:
                        continue
                    term = shown if kind == "registration" else written if replaces else None
                    place = _place(body, root.where, count, term, root.place)
                    checks = tuple(_checked(program, body, shared, said[0]))
                    yield SharedCount(
                        body, program.span(body, place), brief(shared, 60),
                        brief(count.address, 60), kind,
                        replaces, said, checks,
                    )  # fmt: skip


def _paired(term: Term, body: Body) -> Iterator[tuple[Term, Count]]:
    """Addresses and lengths that one call of a transport gets in two arguments."""
    for call in term.walk():
        if isinstance(call, Call) and call.name in apis().transports:
            address = _argument(call, "address")
            length = _argument(call, "length")
            if address is not None and length is not None:
                yield from paired(address, length, body)


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


def _place(body: Body, where: Where, count: Count, term: Term | None, default: Mark) -> Mark:
    """Where the shared count was written: the loop that counts, the choice, the product."""
    for loop in where.loops:
        if body.loops[loop].over == Arange(count.count):
            return body.loops[loop].place
    for place, there in body.spans.get(term, ()) if term is not None else ():
        if there.loops[: len(where.loops)] == where.loops[: len(there.loops)]:
            return place
    return default


def _checked(program: Program, body: Body, shared: Term, said: Meaning) -> Iterator[Step]:
    """Checks that compare the shared count with each region's own, here or at its origin."""
    for check in checks_of(program, body):
        for fact in check.said:
            if isinstance(fact, Bound) and fact.limit == shared and fact.symbol in (">=", "=="):
                yield check.step
    yield from checked_at_origin(program, said)


def checked_at_origin(program: Program, said: Meaning) -> list[Step]:
    """Checks that make the one region a count comes from like all others."""
    origin = said.origin
    found = entries(origin.term, origin.body)
    if not found:
        return []
    wholes = {entry.whole for entry in found}
    made = origin.body.place_of(found[0].whole)
    return [
        check.step
        for check in settles(program, origin.body, found[0].item.of, wholes)
        if check.where is None
        or (check.raises and len(check.where.block) == 1)
        or (made is not None and check.where.dominates(made[1]))
    ]


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
    checks: tuple[Step, ...]
    unresolved: tuple[str, ...]


POSTED = tuple(name for name, roles in apis().transports.items() if "local_index" in roles)
POSTS = re.compile(r"\b(?:" + "|".join(POSTED) + r")\(")


def strided_indices(program: Program) -> Iterator[StridedIndex]:
    origins = Origins(program)
    seen: set[tuple[Span, Term]] = set()
    for body in program.holding(POSTS, words=POSTED):
        for site in body.calls:
            for side in ("local", "remote"):
                index = _argument(site.call, f"{side}_index")
                handle = _argument(site.call, f"{side}_handle")
                if index is None or handle is None:
                    continue
                for at, stride, place in _combined(program, origins, index, body):
                    if place.path != body.definition.path:
                        # Told where the list is indexed: each file answers for its own code.
                        place = program.span(body, site.place)
                    key = (place, stride)
                    if key in seen:
                        continue
                    seen.add(key)
                    yield _compared(origins, at, stride, place, handle, body, side, program)


_KEYWORDS = {
    "local_index": {"local", "indices"}, "remote_index": {"remote", "indices"},
    "local_handle": {"local", "side"}, "remote_handle": {"remote", "side"},
    "list": {"list"}, "address": {"buffers"}, "length": {"lengths"},
}  # fmt: skip


def _argument(call: Call, role: str) -> Term | None:
    """The argument of a transport's call that has a role, by position or by keyword."""
    position = apis().transports.get(call.name, {}).get(role)
    if isinstance(position, int) and position < len(call.arguments):
        return call.arguments[position]
    for keyword, value in call.keywords:
        if position is not None and _KEYWORDS.get(role, {role}) <= set(words(keyword)):
            return value
    return None


def _combined(
    program: Program, origins: Origins, index: Term, body: Body
) -> Iterator[tuple[Origin, Term, Span]]:
    """Where region number and stride meet: (origin with the stride, stride, place).

    The place is that of the product, or of the call that hands the stride to a helper;
    it lies in the body that is looked at from `body`.
    """
    found = [Origin(index, body, None), *origins.of(index, body)]
    for origin in list(found):
        for part in origin.term.walk():
            if isinstance(part, Field):
                found += origins.of(part, origin.body, origin.frame)
    for origin in found:
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
                            at, place = origin, _span(program, origin.body, part, index)
                        yield at, stride, place
                        break
                case Running(name, loop):
                    yield from _added_up(program, origin, name, loop)


def _added_up(
    program: Program, origin: Origin, name: str, loop: int
) -> Iterator[tuple[Origin, Term, Span]]:
    """`start += S` in a loop over regions is i * S, if S does not change with the region."""
    added = origin.body.running.get((name, loop), ())
    over = origin.body.loops[loop].over if loop in origin.body.loops else None
    if len(added) == 1 and over is not None and region_list(over, origin.body):
        stride = added[0]
        if invariant(stride, loop) and not isinstance(stride, Literal):
            yield origin, stride, _span(program, origin.body, stride)


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


def _span(program: Program, body: Body, term: Term, called: Term | None = None) -> Span:
    """Where a term stands; of what a helper computes, where it is called."""
    found = body.place_of(term) or (body.place_of(called) if called is not None else None)
    return program.span(body, found[0] if found else -1)


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
    for count, origin in prepared(origins, handle, body):
        step = step or _given_at(program, origin, handle)
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
        bool(same) and all(same),
        tuple(_checks(program, strides, built, side)), tuple(unresolved),
    )  # fmt: skip


def _checks(
    program: Program, strides: tuple[Meaning, ...], built: list[Meaning], side: str
) -> list[Step]:
    """Checks of the list that is indexed: what holds for our regions says nothing of the peer's."""
    if not strides or not built or (side == "remote") != strides[0].origin.wire:
        return []
    return checked_at_origin(program, strides[0])


def _given_at(program: Program, origin: Origin, handle: Term) -> Step:
    """Where a list gets its count: the outermost call on the way to its preparation."""
    frame = origin.frame
    while frame is not None and frame.outer is not None:
        frame = frame.outer
    if frame is not None:
        return Step(frame.step.span, "the list is prepared with this count")
    return Step(_span(program, origin.body, handle, origin.term), "the list is prepared here")


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


def prepared(origins: Origins, handle: Term, body: Body) -> Iterator[tuple[Count, Origin]]:
    """How the lists that a handle can stand for were built: counts, and where."""
    for origin in origins.of(handle, body):
        match origin.term:
            case Call() as call if "handle" in apis().transports.get(call.name, {}):
                listed = _argument(call, "list")
                if listed is not None:
                    yield from _built(origins, listed, origin, 3)


def _built(
    origins: Origins, listed: Term, at: Origin, depth: int
) -> Iterator[tuple[Count, Origin]]:
    for origin in origins.of(listed, at.body, at.frame):
        origin = dataclasses.replace(origin, steps=(*at.steps, *origin.steps))
        match origin.term:
            case Call() as call if call.name in apis().transports and depth:
                inner = _argument(call, "list")
                if inner is not None:
                    yield from _built(origins, inner, origin, depth - 1)
            case term:
                for count in dict.fromkeys(counts(term, origin.body)):
                    yield count, origin
