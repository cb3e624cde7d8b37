"""Addresses that go from slot to slot by a length: where a stride is assumed to be one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.bodies import Body, Where
from kvlint.analysis.contiguity import contiguous_by, roots_of
from kvlint.analysis.link import Program
from kvlint.analysis.lists import TRANSPORT
from kvlint.analysis.measures import Measured, measured
from kvlint.analysis.origins import Origin, Origins
from kvlint.analysis.quantities import Unit, named
from kvlint.analysis.roles import (
    counts_regions,
    is_address,
    list_quantity,
    numbers_region,
    numbers_slot,
)
from kvlint.analysis.tensors import tensors
from kvlint.analysis.terms import (
    Arange,
    Call,
    Field,
    Fold,
    Index,
    Item,
    Literal,
    Operation,
    Parameter,
    Term,
    last_name,
)
from kvlint.analysis.vocabulary import words
from kvlint.analysis.widths import summands, sums_in
from kvlint.findings import Span, Step

# An address that something is added to, where something is multiplied with a length.
SUMS = re.compile(
    r"(?:ptr|addr|address|base)(?:e?s)?(?:\(\)|\[[^\]\n]*\])?\)*\s*(?:#[^\n]*\s*)?\+|\+\s*\(?[\w.]*(?:ptr|addr|base)"
)
_LENGTH = "len|size|bytes|width|numel|prod|page|block"
PRODUCTS = re.compile(
    rf"\* ?\(?[\w.\[\]]*(?:{_LENGTH})|(?:len|size|bytes|width)\w*(?:\[[^\]\n]*\])?\)* ?\*[^*]"
)
ANY = re.compile(r"[\w)\]] (?:\* [\w(]|\+ [\w.]+\()")  # a helper may multiply, too
NUMBERS = re.compile(r"_ids?\b|_idx|ind(?:ex|ices)|range\(|_locs?\b|(?:page|block|slot)s?\b")
NEAR = 300  # characters between the two
MEMORY = (*TRANSPORT, "data_ptr", "base_addr", "item_len", "block_len")


@dataclass(frozen=True, slots=True)
class Way:
    """One way to a length. `handed`: its tensor is handed in from elsewhere, so nothing here
    says how it lies; `settled`: why its slots follow one another without gaps."""

    measured: Measured
    handed: bool
    settled: Step | None


@dataclass(frozen=True, slots=True)
class Stepped:
    """`number * length` in an address of `body`: slot `number` is looked for there.

    `ways`: how the length can come about, one that rests on a tensor handed in first.
    """

    body: Body
    at: Span
    number: Term
    length: Term
    ways: tuple[Way, ...]


def stepped(program: Program) -> Iterator[Stepped]:
    """Products of a slot number and a length in addresses, one for each length of a body."""
    origins = Origins(program)
    for body in stepping(program):
        seen: set[tuple[Term, Term]] = set()
        sums: set[Term] = set()
        found: dict[object, Stepped] = {}
        # What an address grows to tells of what it grew from: the last one is asked first, and
        # the first one that rests on an assumption is told.
        for root in reversed([*body.roots, *body.returns]):
            for product, number, length in products(program, root.term, body, sums):
                if (number, length) in seen:
                    continue
                seen.add((number, length))
                ways = _ways(program, origins, length, body, root.where)
                # Source and destination of one loop rest on one assumption.
                key = (root.where.loops, *(way.measured.origin.term for way in ways))
                if ways:
                    place = body.place_of(product)
                    span = program.span(body, place[0] if place else root.place)
                    found.pop(key, None)
                    found[key] = Stepped(body, span, number, length, ways)
        yield from reversed(found.values())


def stepping(program: Program) -> Iterator[Body]:
    """Bodies that may make an address of a number and a length."""
    for path in program.starts():
        text = program.texts[path]
        if any(word in text for word in MEMORY):
            # Beside a transport, a length may go by any name.
            product = ANY if any(word in text for word in TRANSPORT) else PRODUCTS
            sums = [m.span() for m in SUMS.finditer(text)]
            near = [a for a, b in sums if product.search(text, max(0, a - NEAR), b + NEAR)]
            yield from program.bodies_at(path, near, NUMBERS)


def products(
    program: Program, term: Term, body: Body, seen: set[Term]
) -> Iterator[tuple[Term, Term, Term]]:
    """(product, slot number, what it is multiplied with) of each address in `term`; of what a
    helper multiplies, the call stands for the product. Sums in `seen` were looked at."""
    for total in sums_in(term, seen):
        addends = [part.term for part in summands(total)]
        if not any(map(_is_base, addends)):
            continue
        for added in addends:
            put = program.inline(added, body) if isinstance(added, Call) else added
            for one in _parts("+", put):
                if isinstance(one, Operation) and one.symbol == "*":
                    split = _split(one, body) if not is_address(one) else None
                    if split is not None:
                        yield added, *split


def _is_base(term: Term) -> bool:
    return is_address(term) or "base" in words(last_name(term))


def _parts(symbol: str, term: Term) -> list[Term]:
    match term:
        case Operation(found, left, right) if found == symbol:
            return [*_parts(symbol, left), *_parts(symbol, right)]
    return [term]


def _split(product: Term, body: Body) -> tuple[Term, Term] | None:
    factors = _parts("*", product)
    for number in factors:
        if _numbers_slots(number, body):
            length, *others = [factor for factor in factors if factor is not number]
            for other in others:
                length = Operation("*", length, other)
            return number, length
    return None


def _numbers_slots(term: Term, body: Body) -> bool:
    """A slot number, whatever carries it: the first of a group, a part of a message."""
    if isinstance(term, Literal | Fold) or numbers_region(term, body):
        return False
    match term:
        case Index(Arange(count), _) | Arange(count):
            counted = named(last_name(count))
            return counted not in _OTHERS and not counts_regions(count, body)
        case Field(_, name) if not name.endswith(_NUMBERS):
            return False  # `pool.num_pages`, `pool.pages`: how many there are
    return any(map(_speaks_of_slots, term.walk()))


_OTHERS = (Unit.LAYERS, Unit.HEADS, Unit.REGIONS)
_NUMBERS = ("id", "ids", "idx", "index", "indices", "loc", "locs", "start", "starts")


def _speaks_of_slots(term: Term) -> bool:
    match term:
        case Item(_, Literal(str(key))):
            return numbers_slot(Parameter("", key))
        case Parameter() | Field():
            return numbers_slot(term)
    return False


def _ways(
    program: Program, origins: Origins, length: Term, body: Body, at: Where
) -> tuple[Way, ...]:
    """None where the number is a stride, and where neither a tensor nor its name tells what
    it is."""
    named = list_quantity(last_name(length)) == "item length"
    found: dict[Term, Way] = {}
    for one in measured(origins, Origin(length, body, None)):
        if one.stride:
            continue
        if one.extents or (named and one.unknown):
            way = _way(program, origins, one, body, at)
            found.setdefault(one.origin.term, way)
    return tuple(sorted(found.values(), key=_worst_first))


def _worst_first(way: Way) -> tuple[bool, bool, bool]:
    return way.settled is not None, not way.handed, way.measured.origin.by_name


def _way(program: Program, origins: Origins, one: Measured, body: Body, at: Where) -> Way:
    handed, settled = False, None
    for tensor, asked in one.extents:
        reason = contiguous_by(program, one.origin, tensor, asked, body, at)
        if reason is None:
            reason = _made_here(program, origins, tensor, asked)
        if reason is None:
            handed |= any(_is_handed(origins, root, asked) for root in roots_of(tensor))
        settled = reason or settled
    return Way(one, handed, None if handed else settled)


def _made_here(program: Program, origins: Origins, tensor: Term, body: Body) -> Step | None:
    """Where the project's own code makes the tensor as a whole, in each case."""
    step: Step | None = None
    for root in roots_of(tensor):
        for one in origins.of(root, body):
            made = tensors(program, one.term, one.body)
            if not made:
                return None
            span = program.span_of(made[0].body, made[0].call)
            step = step or Step(span, "the tensor is made here, without gaps")
    return step


def _is_handed(origins: Origins, root: Term, body: Body) -> bool:
    """Whether a tensor comes from a parameter, or from a field that is given one."""
    match root:
        case Parameter(function, name):
            definition = origins.program.definition(function)
            kind = dict(definition.annotations).get(name, "") if definition else ""
            return definition is not None and "memoryview" not in kind
        case Field():
            for one in origins.step(Origin(root, body, None)):
                for given in roots_of(one.term):
                    if isinstance(given, Parameter) and _is_handed(origins, given, one.body):
                        return True
    return False
