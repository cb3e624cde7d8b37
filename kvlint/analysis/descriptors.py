"""Descriptor lists as code builds them: how many descriptors has each region?"""

from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.bodies import Body
from kvlint.analysis.roles import (
    Strength,
    counts_regions,
    is_address,
    joins_lists,
    region_list,
)
from kvlint.analysis.terms import (
    Arange,
    Choice,
    Each,
    Field,
    Index,
    Item,
    Literal,
    Many,
    Operation,
    Parameter,
    Sequence,
    Term,
    free,
    last_name,
)
from kvlint.analysis.vocabulary import own_names, words


@dataclass(frozen=True, slots=True)
class Count:
    """`count` descriptors are made for each region that `address` runs over.

    `loops`: the loops over regions (ids); empty when an array of addresses is used at once.
    """

    count: Term
    address: Term
    loops: frozenset[int]

    def is_own(self, term: Term) -> bool:
        """Whether `term` differs from region to region."""
        return any(part.loop in self.loops for part in free(term))


def counts(term: Term, body: Body) -> Iterator[Count]:
    """Counts of descriptors in `term`, one for each address expression over regions."""
    for found in term.walk():
        match found:
            case Sequence((address, _, _, _, count)) if is_address(address):
                loops = region_loops(address, body)
                if loops is not None:
                    yield Count(count, address, loops)
            case Operation("+", left, right) if not joins_lists(left, right):
                for base, offset in ((left, right), (right, left)):
                    if is_address(base) and not is_address(offset):
                        loops = region_loops(base, body)
                        number = _vector(offset, body)
                        if loops is not None and number is not None:
                            yield Count(number, base, loops)


def registered(term: Term, body: Body) -> Iterator[tuple[Term, Count]]:
    """`(address, count * length, ...)` of each region: (length, its shared count)."""
    for found in term.walk():
        match found:
            case Sequence((address, Operation("*", left, right), *_)) if is_address(address):
                loops = region_loops(address, body)
                if not loops:
                    continue
                factors = _factors(Operation("*", left, right))
                for count in factors:
                    others = [factor for factor in factors if factor is not count]
                    if _is_count(count) and not any(map(_speaks_of_count, others)):
                        yield Operation("*", left, right), Count(count, address, loops)
                        break


def paired(address: Term, length: Term, body: Body) -> Iterator[tuple[Term, Count]]:
    """As `registered`, for a list of addresses beside a list of `count * length`."""
    while isinstance(address, Many) and isinstance(length, Many):
        address, length = address.element, length.element
    if not isinstance(address, Many) and not isinstance(length, Many):
        yield from registered(Sequence((address, length)), body)


def _factors(term: Term) -> list[Term]:
    match term:
        case Operation("*", left, right):
            return [*_factors(left), *_factors(right)]
    return [term]


def region_loops(address: Term, body: Body) -> frozenset[int] | None:
    """Loops over regions that an address depends on; None if it is one region's."""
    loops: set[int] = set()
    vector = False
    for found in address.walk():
        match found:
            case Each(of, loop) | Index(of, loop):
                over = body.loops.get(loop)
                if over is None or _over_regions(over.over, of, body):
                    loops.add(loop)
    if not loops:
        for found in address.walk():
            match found:
                case Item() | Each():
                    break
                case Parameter() | Field() | Many():
                    many = region_list(found, body) is Strength.STRONG
                    vector |= many and not own_names().may_be_one(last_name(found))
    if loops:
        return frozenset(loops)
    return frozenset() if vector else None


def _over_regions(over: Term, of: Term, body: Body) -> bool:
    if isinstance(of, Arange):
        return counts_regions(of.count, body)
    return (
        region_list(of, body) is not Strength.NONE
        or is_address(of)
        or (isinstance(over, Many | Sequence) and is_address(over))
    )


def _vector(offset: Term, body: Body) -> Term | None:
    """n of `arange(n) * stride`, or of `block * stride` in a loop over `range(n)`."""
    for found in offset.walk():
        match found:
            case Operation("*", left, right):
                for one in (left, right):
                    match one:
                        case Arange(count) if not counts_regions(count, body):
                            return count
                        case Index(Arange(count), _) if not counts_regions(count, body):
                            return count
    match offset:
        case Arange(count) | Index(Arange(count), _) if not counts_regions(count, body):
            return count
    return None


def _is_count(term: Term) -> bool:
    """A slot count by name, or the leading dimension of a tensor."""
    match term:
        case Choice(_, then, other):
            return _is_count(then) and _is_count(other)
        case Item(Field(_, "shape"), Literal(0 | 1)):
            return True
    return _speaks_of_count(term)


def _speaks_of_count(term: Term) -> bool:
    parts = words(last_name(term))
    return (
        len(parts) > 1
        and parts[0] in ("num", "n")
        and bool(set(parts) & {"blocks", "slots", "pages", "rows"})
    )
