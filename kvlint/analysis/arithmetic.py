"""Whether two formulas give the same number, decided by trying small numbers.

A formula is a term of whole numbers, arithmetic, `min`, `max` and `Parameter("", name)` for each
name in it. Two are the same when they agree for all numbers tried. Names that only one of them
has may stand for one another: the same formula is often spelled with other names.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice, permutations, product
from math import ceil
from operator import add, and_, floordiv, lshift, mod, mul, or_, rshift, sub, xor
from typing import Any

from kvlint.analysis.terms import Call, Fold, Literal, Operation, Parameter, Sequence, Term
from kvlint.analysis.vocabulary import words

MOST_TRIED = 2048
_SMALL = 8
_LONGEST = 1 << 64
_MOST_BITS = 64
_BYTES = frozenset({"byte", "bytes", "nbytes", "memory", "mem", "budget", "gb", "gib", "mb", "mib"})


@dataclass(frozen=True, slots=True)
class Apart:
    """Numbers for which two formulas differ: (name, value) in order, and what each gives.

    `by_name`: only what the names say keeps them from being one formula.
    """

    values: tuple[tuple[str, int], ...]
    left: int
    right: int
    by_name: bool = False

    def __str__(self) -> str:
        named = ", ".join(f"{name} {value}" for name, value in self.values)
        return f"with {named}: {self.left} and {self.right}"


def variable(name: str) -> Parameter:
    return Parameter("", name)


def variables(formula: Term) -> list[str]:
    """Names in a formula, each once, as they come."""
    names = (part.name for part in formula.walk() if isinstance(part, Parameter))
    return list(dict.fromkeys(names))


Number = int | Fraction
_Made = Callable[[Mapping[str, int]], Number]


def evaluate(formula: Term, at: Mapping[str, int]) -> Number:
    """Raises ZeroDivisionError, KeyError for a missing name, ValueError for what is no number."""
    return _made(formula)(at)


@lru_cache(maxsize=1024)
def _made(formula: Term) -> _Made:
    """What works a formula out: it is taken apart once, for all the numbers that are tried."""
    match formula:
        case Literal(int(value)):
            return lambda _: value
        case Parameter(_, name):
            return lambda at: at[name]
        case Operation(symbol, left, right) if symbol in _WORKS_OUT:
            combine, one, other = _WORKS_OUT[symbol], _made(left), _made(right)
            return lambda at: combine(one(at), other(at))
        case Fold("min", Sequence(items)) if items:
            least = [_made(item) for item in items]
            return lambda at: min(one(at) for one in least)
        case Fold("max", Sequence(items)) if items:
            most = [_made(item) for item in items]
            return lambda at: max(one(at) for one in most)
        case Call(callee="ceil", arguments=(only,)):
            inner = _made(only)
            return lambda at: ceil(inner(at))
    raise ValueError("no arithmetic")


def _bits(combine: Callable[[int, int], int]) -> Callable[[Number, Number], Number]:
    """Of whole numbers; of a power or a shift nothing that takes long to work out."""

    def of_whole(left: Number, right: Number) -> Number:
        one, other = int(left), int(right)
        if one != left or other != right or not 0 <= other <= _LONGEST:
            raise ValueError("not followed")
        if combine in _GROW and (other > _MOST_BITS or abs(one) > _LONGEST):
            raise ValueError("too large")
        return combine(one, other)

    return of_whole


_GROW: tuple[Callable[[int, int], int], ...] = (pow, lshift, rshift)
_WORKS_OUT: dict[str, Callable[[Any, Any], Number]] = {
    "+": add, "-": sub, "*": mul, "//": floordiv, "%": mod,
    "/": Fraction,
    "cdiv": lambda left, right: -(-left // right),
    "or": lambda left, right: left or right,
    "**": _bits(pow), "<<": _bits(lshift), ">>": _bits(rshift),
    "&": _bits(and_), "|": _bits(or_), "^": _bits(xor),
}  # fmt: skip


@lru_cache(maxsize=4096)
def apart(one: Term, other: Term) -> Apart | None:
    """The smallest numbers for which two formulas differ; None where none of those tried tells
    them apart, or none can be tried."""
    if one == other:
        return None
    told: Apart | None = None
    by_name = False
    for names, fits in _pairings(variables(one), variables(other)):
        found = _difference(one, other, names)
        if found is None:
            if fits:
                return None
            by_name = True  # the same, if bytes were tokens
        elif told is None or fits:
            told = told or found
    if told is None:
        # The same formula, of a number of bytes here and of a number of tokens there.
        told = _difference(one, other, {})
    if told is None:
        return None
    return Apart(told.values, told.left, told.right, by_name)


def _pairings(one: list[str], other: list[str]) -> Iterator[tuple[dict[str, str], bool]]:
    """Names of `other` -> names of `one` that they may stand for, and whether the units fit."""
    left = [name for name in one if name not in other]
    right = [name for name in other if name not in one]
    if not left or not right:
        yield {}, True
        return
    few, many = (left, right) if len(left) <= len(right) else (right, left)
    for chosen in islice(permutations(many, len(few)), 120):
        pairs = list(zip(few, chosen, strict=True))
        fits = all(_counts_bytes(a) == _counts_bytes(b) for a, b in pairs)
        yield {b: a for a, b in pairs} if few is left else dict(pairs), fits


def _counts_bytes(name: str) -> bool:
    return bool(_BYTES & set(words(name)))


def _difference(one: Term, other: Term, names: Mapping[str, str]) -> Apart | None:
    """`names`: names of `other` that stand for a name of `one`."""
    try:
        left_of, right_of = _made(one), _made(other)
    except ValueError:
        return None
    mine = variables(one)
    all_names = list(dict.fromkeys([*mine, *(names.get(n, n) for n in variables(other))]))
    for values in _tries(len(all_names), _constants(one, other)):
        at = dict(zip(all_names, values, strict=True))
        theirs = at | {name: at[of] for name, of in names.items()} if names else at
        try:
            left, right = int(left_of(at)), int(right_of(theirs))
        except (ZeroDivisionError, ValueError, OverflowError):
            continue
        if left != right and min(left, right) > 0 and max(left, right) < _LONGEST:
            return Apart(tuple(at.items()), left, right)
    return None


def _constants(*formulas: Term) -> list[int]:
    found = {
        part.value
        for formula in formulas
        for part in formula.walk()
        if isinstance(part, Literal) and type(part.value) is int and part.value >= _SMALL
    }
    return sorted(found)[:3]


def _tries(count: int, constants: list[int]) -> list[tuple[int, ...]]:
    return _numbers(count, tuple(constants))


@lru_cache(maxsize=64)
def _numbers(count: int, constants: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Tuples of numbers to try, those with the smallest sum first."""
    most = _SMALL
    beside = sorted({n + more for n in constants for more in (-1, 0, 1, n)})
    while most > 2 and (most + len(beside)) ** count > MOST_TRIED:
        most -= 1
    while beside and (most + len(beside)) ** count > MOST_TRIED:
        beside.pop()
    values = [*range(1, most + 1), *(n for n in beside if n > most)]
    tuples = islice(product(values, repeat=count), MOST_TRIED)
    return sorted(tuples, key=lambda numbers: (sum(numbers), numbers))
