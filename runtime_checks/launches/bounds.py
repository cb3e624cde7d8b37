"""Between which numbers a term lies in one launch, over all its programs and lanes.

The bounds hold, and need not be reached: what they allow is settled, what they do not is for
`points` to find out. Overflow is not counted in: a term that would not fit its kind is named.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kvlint.runtime_checks.launches.terms import KINDS, Term, below

Range = tuple[int, int]
Box = Mapping[int, Range]
"""Some variables' values, by the variable's number."""

_FLAG: Final = (0, 1)


@dataclass(frozen=True, slots=True)
class Values:
    """What a launch gives: integers by argument, and programs along each of three axes."""

    arguments: Mapping[str, int]
    grid: tuple[int, int, int]


class Bounds:
    """Of the terms that some roots are made of."""

    def __init__(self, roots: Sequence[Term]) -> None:
        self.tape = below(roots)
        self._steps = [
            (term.number, _PLAIN.get(term.op), tuple(o.number for o in term.operands), term)
            for term in self.tape
        ]

    def of(
        self,
        values: Values,
        box: Box = {},  # noqa: B006 (never changed)
        narrowed: Box = {},  # noqa: B006
    ) -> dict[int, Range | None]:
        """By number, None for nobody knows.

        box       variables that are looked at in a part of their values only
        narrowed  what is known of terms besides, as by `narrowing`
        """
        found: dict[int, Range | None] = {}
        for number, plain, operands, term in self._steps:
            if plain is not None:
                one, two = found[operands[0]], found[operands[1]]
                range_ = None if one is None or two is None else plain(one, two)
            else:
                range_ = _range(term, [found[operand] for operand in operands], values)
            for known in (box, narrowed):
                if number in known:
                    low, high = known[number]
                    if range_ is None:
                        range_ = low, high
                    else:
                        range_ = max(low, range_[0]), min(high, range_[1])
            found[number] = range_
        return found


Conditions = Sequence[tuple[Term, Sequence[Term]]]
"""Each with the terms in it that may not fit their kinds."""


def conditions_of(terms: Sequence[Term]) -> Conditions:
    return [(term, [part for part in below([term]) if part.narrow]) for term in terms]


def narrowing(conditions: Conditions, found: Mapping[int, Range | None]) -> dict[int, Range] | None:
    """What comparisons say of their two sides where they hold; None where one never does. One
    that may overflow says nothing: what is too large for it comes out small."""
    narrowed: dict[int, Range] = {}

    def keep(term: Term, low: int | None, high: int | None) -> bool:
        old = narrowed.get(term.number) or found.get(term.number)
        if old is None:
            if low is None or high is None:
                return True
            old = (low, high)
        new = (
            old[0] if low is None else max(low, old[0]),
            old[1] if high is None else min(high, old[1]),
        )
        if new[0] > new[1]:
            return False
        if term.op != "number":
            narrowed[term.number] = new
        return True

    for condition, parts in conditions:
        if not all(fits(part, found[part.number]) for part in parts):
            continue
        known = found.get(condition.number)
        if known is not None and known[1] <= 0:
            return None
        if condition.op not in ("<", "<=", "=="):
            continue
        left, right = condition.operands
        one, two = found.get(left.number), found.get(right.number)
        gap = int(condition.op == "<")
        both = condition.op == "=="
        if two is not None and not keep(left, two[0] if both else None, two[1] - gap):
            return None
        if one is not None and not keep(right, one[0] + gap, one[1] if both else None):
            return None
    return narrowed


def fits(term: Term, range_: Range | None) -> bool:
    """Whether a term of the kernel's arithmetic stays in its kind."""
    if range_ is None or not term.narrow:
        return True
    bits, _ = KINDS[term.kind]
    return -(1 << (bits - 1)) <= range_[0] and range_[1] < 1 << (bits - 1)


def _range(term: Term, operands: list[Range | None], values: Values) -> Range | None:
    match term.op:
        case "number":
            return (term.value, term.value)
        case "argument":
            value = values.arguments.get(str(term.value))
            return None if value is None else (value, value)
        case "size":
            size = values.grid[term.value]
            return (size, size)
        case "variable":
            count = operands[0]
            return None if count is None else (0, max(count[1] - 1, 0))
        case "where":
            return _where(*operands)
        case "and" | "or" | "not":
            return _logical(term.op, operands)
        case "//" | "%":
            one, two = operands
            if one is not None and two is not None and two[0] > 0:
                return (_over if term.op == "//" else _left)(one, two, floor=term.kind == "")
        case "<" | "<=" | "==" | "!=":
            one, two = operands
            return _FLAG if one is None or two is None else _compared(term.op, one, two)
        case "cast":
            return _cast(operands[0], term.kind)
    return _FLAG if term.kind == "i1" else None


def _where(test: Range | None, one: Range | None, other: Range | None) -> Range | None:
    if test == (1, 1):
        return one
    if test == (0, 0):
        return other
    if one is None or other is None:
        return None
    return min(one[0], other[0]), max(one[1], other[1])


def _logical(op: str, operands: list[Range | None]) -> Range:
    ranges = [operand or _FLAG for operand in operands]
    if op == "not":
        low, high = ranges[0]
        return int(high == low == 0), int(low <= 0 <= high)
    combine = min if op == "and" else max
    return (
        combine(int(r[0] > 0) for r in ranges),
        combine(int(r[1] > 0) for r in ranges),
    )


def _compared(op: str, one: Range, two: Range) -> Range:
    (a, b), (c, d) = one, two
    match op:
        case "<":
            return int(b < c), int(a < d)
        case "<=":
            return int(b <= c), int(a <= d)
        case "==":
            return int(a == b == c == d), int(a <= d and c <= b)
    return int(b < c or d < a), int(not a == b == c == d)


def _plus(one: Range, two: Range) -> Range:
    return one[0] + two[0], one[1] + two[1]


def _minus(one: Range, two: Range) -> Range:
    return one[0] - two[1], one[1] - two[0]


def _times(one: Range, two: Range) -> Range:
    (a, b), (c, d) = one, two
    if a >= 0 and c >= 0:
        return a * c, b * d
    products = (a * c, a * d, b * c, b * d)
    return min(products), max(products)


def _least(one: Range, two: Range) -> Range:
    return min(one[0], two[0]), min(one[1], two[1])


def _most(one: Range, two: Range) -> Range:
    return max(one[0], two[0]), max(one[1], two[1])


def _over(one: Range, two: Range, *, floor: bool) -> Range:
    """By positive numbers."""
    (a, b), (c, d) = one, two

    def down(x: int, y: int) -> int:
        return x // y if floor or x >= 0 else -(-x // y)

    return min(down(a, c), down(a, d)), max(down(b, c), down(b, d))


def _left(one: Range, two: Range, *, floor: bool) -> Range:
    (a, b), (c, d) = one, two
    if c == d and a >= 0 and a // c == b // c:
        return a % c, b % c
    if a >= 0:
        return 0, min(d - 1, b)
    return 0 if floor else -(d - 1), d - 1


def _shifted(one: Range, two: Range) -> Range | None:
    (a, b), (c, d) = one, two
    if not (c >= 0 and d < 64):
        return None
    ends = (a << c, a << d, b << c, b << d)
    return min(ends), max(ends)


def _shifted_back(one: Range, two: Range) -> Range | None:
    (a, b), (c, d) = one, two
    if not (c >= 0 and d < 64):
        return None
    ends = (a >> c, a >> d, b >> c, b >> d)
    return min(ends), max(ends)


def _common(one: Range, two: Range) -> Range | None:
    (a, b), (c, d) = one, two
    if a < 0 or c < 0:
        return None
    return (a & c, a & c) if a == b and c == d else (0, min(b, d))


def _either(one: Range, two: Range) -> Range | None:
    if one[0] < 0 or two[0] < 0:
        return None
    return 0, (1 << max(one[1], two[1]).bit_length()) - 1


_PLAIN: Final[Mapping[str, Callable[[Range, Range], Range | None]]] = {
    "+": _plus,
    "-": _minus,
    "*": _times,
    "min": _least,
    "max": _most,
    "<<": _shifted,
    ">>": _shifted_back,
    "&": _common,
    "|": _either,
    "^": _either,
}


def _cast(range_: Range | None, kind: str) -> Range | None:
    if range_ is None or kind not in KINDS:
        return None
    bits, signed = KINDS[kind]
    if kind == "i1":
        return int(not range_[0] <= 0 <= range_[1]), int(range_ != (0, 0))
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    return range_ if low <= range_[0] and range_[1] < high else (low, high - 1)
