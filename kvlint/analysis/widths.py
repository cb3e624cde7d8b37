"""Literals that stand for bytes: a number of bytes taken apart into sums of products.

`page * (dim + dim // 128 * 4)` is a sum of two products in a product. Where one of a sum's parts
is bytes, all are: only bytes of different elements can be added. So a part that has elements
and a literal, and nothing that says how many bytes an element has, has that in its literal.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod

from kvlint.analysis import terms
from kvlint.analysis.bodies import Body
from kvlint.analysis.quantities import Unit, is_dtype, is_told, unit_of
from kvlint.analysis.terms import Call, Choice, Literal, Operation, Term, last_name
from kvlint.analysis.vocabulary import nouns, words

ELEMENT = (1, 2, 4, 8)  # bytes that elements of the usual dtypes have
_SIZED = (Unit.BYTES, Unit.ELEMENT_SIZE)
SMALLEST_BLOCK = 8  # elements that share a scale; fewer are no block of a quantisation
NARROWEST = 16  # bytes of the narrowest row that is worth a literal of its own


# Of a field: the one literal it is ever given, or that it is given an element's size.
Given = Callable[[Term], int | Unit | None]


@dataclass(frozen=True, slots=True)
class Width:
    """A literal that is a number of bytes.

    `term`: the product it stands in; `value`: bytes; `row`: of a whole row, else of one element.
    `default`: what a dtype that is not named is taken for. `doubtful`: it may be K and V, and the
    size a factor of which nothing is known.
    """

    term: Term
    value: int
    row: bool = False
    default: bool = False
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Product:
    """One part of a sum: `literals` x `factors`, as `term` writes it; added, or `taken` off."""

    term: Term
    literals: tuple[int, ...]
    factors: tuple[Term, ...]
    taken: bool = False

    @property
    def coefficient(self) -> int:
        return prod(self.literals)


def summands(term: Term) -> list[Product]:
    """The products that a sum adds up, one for what is no sum."""
    match term:
        case Operation("+", left, right) if constant(term) is None:
            return [*summands(left), *summands(right)]
        case Operation("-", left, right) if constant(term) is None:
            taken = (replace(part, taken=not part.taken) for part in summands(right))
            return [*summands(left), *taken]
    return [_product(term)]


def _product(term: Term) -> Product:
    literals: list[int] = []
    factors: list[Term] = []
    stack = [term]
    while stack:
        match stack.pop():
            case Operation("*", left, right):
                stack += (right, left)
            case Operation("<<", left, Literal(int(bits))) if 0 <= bits < 32:
                stack += (Literal(1 << bits), left)
            case other if (value := constant(other)) is not None:
                literals.append(value)
            case other:
                factors.append(other)
    return Product(term, tuple(literals), tuple(factors))


def constant(term: Term) -> int | None:
    """The number that literals alone make."""
    match term:
        case Literal(int(value)) if not isinstance(value, bool):
            return value
        case Operation("+" | "-" | "*" as symbol, left, right):
            one, other = constant(left), constant(right)
            if one is None or other is None:
                return None
            return one + other if symbol == "+" else one - other if symbol == "-" else one * other
    return None


def widths(
    term: Term,
    body: Body,
    given: Given,
    *,
    stored: bool = False,
) -> Iterator[Width]:
    """Literals that are bytes in `term`, which is a number of bytes.

    `given`: what a field is only ever given. `stored`: `term` is a
    dimension of a tensor of bytes, where elements may be stored as they are: a single product
    says nothing then.
    """
    match term:
        case Choice(_, then, other) if by_dtype(term) is None:
            for one in (then, other):
                yield from widths(one, body, given, stored=stored)
            return
    parts = summands(term)
    alone = len(parts) == 1
    for part in parts:
        yield from _of_part(part, body, given, stored, alone and stored)


def mixed(term: Term, body: Body) -> bool:
    """Whether a sum adds elements times different literals: K and V beside a query, or bytes of
    elements of different widths."""
    found = set()
    for part in summands(term):
        if any(unit_of(f, body) is Unit.ELEMENTS for f in part.factors):
            found.add(part.coefficient)
    return len(found) > 1


def packed(term: Term, body: Body) -> bool:
    """Whether a sum adds elements and, times a literal, what there is one of for each block of
    them: values and their scales, which only have bytes in common."""
    parts = summands(term)
    scales = [part for part in parts if _counts_blocks(part, body)]
    values = [
        part
        for part in parts
        if part not in scales and any(unit_of(f, body) is Unit.ELEMENTS for f in part.factors)
    ]
    return bool(values) and any(part.coefficient > 1 and not part.taken for part in scales)


def _counts_blocks(part: Product, body: Body) -> bool:
    """Whether a part has one of something for each block of elements."""
    for factor in part.factors:
        match factor:
            case Operation("//" | "/" | "cdiv", of, block) if unit_of(of, body) is Unit.ELEMENTS:
                size = constant(block)
                if size is None or (size >= SMALLEST_BLOCK and not _rounds(part)):
                    return True
    return False


def _rounds(part: Product) -> bool:
    """`n // 4 * 4`: a multiple of 4, which is no number of bytes."""
    return any(
        isinstance(f, Operation)
        and f.symbol in ("//", "cdiv")
        and constant(f.right) in part.literals
        for f in part.factors
    )


def adds_to_bytes(term: Term, body: Body) -> bool:
    """Whether arithmetic alone says that `term` is bytes: a dtype's size is in it, or values and
    their scales are added."""
    return _anywhere(term, body, lambda t: _has_bytes(t, body) or packed(t, body))


def adds_widths(term: Term, body: Body) -> bool:
    """As `adds_to_bytes`, or elements are added times different literals: of what is bytes by
    name this says that it is so."""
    return adds_to_bytes(term, body) or _anywhere(term, body, lambda t: mixed(t, body))


def _anywhere(term: Term, body: Body, test: Callable[[Term], bool]) -> bool:
    """Whether the test holds for `term` or a sum in its products."""
    match term:
        case Choice(_, then, other):
            return _anywhere(then, body, test) or _anywhere(other, body, test)
    if test(term):
        return True
    sums = (f for part in summands(term) for f in part.factors if _is_sum(f))
    return any(_anywhere(one, body, test) for one in sums)


def _has_bytes(term: Term, body: Body) -> bool:
    return any(is_told(part.term, body, *_SIZED) for part in summands(term))


def _of_part(
    part: Product,
    body: Body,
    given: Given,
    stored: bool,
    may_count: bool,
) -> Iterator[Width]:
    """`may_count`: its literals may count elements as well."""
    for factor in part.factors:
        default = by_dtype(factor)
        if default is not None:
            yield Width(factor, default, default=True)
            return
    sums = [f for f in part.factors if _is_sum(f)]
    plain = [f for f in part.factors if not _is_sum(f)]
    units = [unit_of(f, body) for f in plain]
    sized = any(unit in _SIZED for unit in units)
    for one in sums:
        # Values and scales are packed bytes, whatever they are multiplied with.
        if packed(one, body) or (not sized and adds_widths(one, body)):
            yield from widths(one, body, given, stored=stored)
            return
    if not part.factors:
        return
    if sized:
        for factor, unit in zip(plain, units, strict=True):
            value = given(factor) if unit in _SIZED else None
            if isinstance(value, int):
                yield Width(part.term, value, row=unit is Unit.BYTES)
        return
    unknown = [f for f, unit in zip(plain, units, strict=True) if unit is None]
    if (
        _converts(part)
        or _rounds(part)
        or any(_may_be_size(f) or given(f) is Unit.ELEMENT_SIZE for f in unknown)
    ):
        return
    if Unit.ELEMENTS in units or any(unit_of(f, body) is Unit.ELEMENTS for f in sums):
        if part.literals and not may_count and all(n in ELEMENT for n in part.literals):
            # Who writes a 1 means bytes: it counts nothing.
            size = 1 if 1 in part.literals else max(part.literals)
            doubtful = part.literals == (2,) and bool(unknown)
            yield Width(_narrowed(part), size, doubtful=doubtful)
        return
    literals = [n for n in part.literals if n > 1]
    if not literals or any(unit_of(f, body) not in (Unit.TOKENS, Unit.SLOTS) for f in sums):
        return
    if max(literals) >= NARROWEST:
        yield Width(_narrowed(part), max(literals), row=True)
    elif part.coefficient in ELEMENT and not may_count:
        yield Width(_narrowed(part), part.coefficient)


def _converts(part: Product) -> bool:
    """Counts of KiB, MiB and GiB are no widths of anything."""
    return any(n >= 1024 and n & (n - 1) == 0 for n in part.literals)


def _may_be_size(factor: Term) -> bool:
    """A size of which nothing is known may be that of an element, or of a row."""
    parts = words(last_name(factor))
    size = bool(parts) and parts[-1] in nouns().sizes
    return size and nouns().counted.isdisjoint(parts)


def sums_in(term: Term, seen: set[Term]) -> Iterator[Operation]:
    """The sums in a term, none that another one goes on from; what is in `seen` was looked at
    before, and what is looked at is put there."""
    stack = [term]
    while stack:
        part = stack.pop()
        if part in seen or not part.kinds & Operation.bit:
            continue
        seen.add(part)
        if not _adds(part):
            stack.extend(part.children())
            continue
        assert isinstance(part, Operation)
        yield part
        inner: Term = part
        while isinstance(inner, Operation) and _adds(inner):
            seen.add(inner)
            stack.append(inner.right)
            inner = inner.left
        stack.append(inner)


def _adds(term: Term) -> bool:
    return isinstance(term, Operation) and term.symbol in ("+", "-")


def is_sized(factors: Iterable[Term], body: Body) -> bool:
    """Whether one of these factors has the bytes, or may have: what the others have is counted."""
    return any(
        unit in _SIZED or (unit is None and _may_be_size(factor))
        for factor in factors
        for unit in (unit_of(factor, body),)
    )


def _is_sum(term: Term) -> bool:
    match term:
        case Operation("+" | "-", _, _):
            return True
        case Choice(_, then, other):
            return _is_sum(then) or _is_sum(other)
    return False


def by_dtype(term: Term) -> int | None:
    """Bytes that a choice by dtype falls back on: `2 if dtype == torch.half else 1`,
    `{...}.get(dtype, 2)`."""
    match term:
        case Choice(test, Literal(int(then)), Literal(int(other))):
            if then in ELEMENT and other in ELEMENT and test.contains(is_dtype):
                return other
        case Call(
            callee="get", receiver=terms.Mapping(_, values), arguments=(_, Literal(int(other)))
        ):
            if other in ELEMENT and all(
                isinstance(v, Literal) and v.value in ELEMENT for v in values
            ):
                return other
    return None


def _narrowed(part: Product) -> Term:
    """The innermost product that still has all the literals: the others only count."""
    term = part.term
    wanted = sorted(part.literals)
    while True:
        match term:
            case Operation("*", left, right):
                inner = [
                    one
                    for one in (left, right)
                    if isinstance(one, Operation)
                    and one.symbol == "*"
                    and sorted(_product(one).literals) == wanted
                ]
                if inner and _product(inner[0]).factors:
                    term = inner[0]
                    continue
        return term
