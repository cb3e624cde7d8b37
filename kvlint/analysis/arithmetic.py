"""Whether two formulas give the same number, decided by trying small numbers.

A formula is a term of whole numbers, arithmetic, `min`, `max` and `Parameter("", name)` for each
name in it. Two are the same when they agree for all numbers tried. Names that only one of them
has may stand for one another: the same formula is often spelled with other names.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice, permutations, product
from math import ceil

from kvlint.analysis.terms import Call, Fold, Literal, Operation, Parameter, Sequence, Term
from kvlint.analysis.vocabulary import words

MOST_TRIED = 4096
_SMALL = 8
_LONGEST = 1 << 64
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


def evaluate(formula: Term, at: Mapping[str, int]) -> Fraction:
    """Raises ZeroDivisionError, KeyError for a missing name, ValueError for what is no number."""
    match formula:
        case Literal(int(value)):
            return Fraction(value)
        case Parameter(_, name):
            return Fraction(at[name])
        case Operation(symbol, left, right):
            return _combined(symbol, evaluate(left, at), evaluate(right, at))
        case Fold("min" | "max" as kind, Sequence(items)) if items:
            numbers = [evaluate(item, at) for item in items]
            return min(numbers) if kind == "min" else max(numbers)
        case Call(callee="ceil", arguments=(only,)):
            return Fraction(ceil(evaluate(only, at)))
    raise ValueError("no arithmetic")


def _combined(symbol: str, left: Fraction, right: Fraction) -> Fraction:
    match symbol:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right
        case "//":
            return Fraction(left // right)
        case "%":
            return left % right
        case "cdiv":
            return Fraction(-(-left // right))
        case "or":
            return left or right
        case "**" | "<<" | ">>" | "&" | "|" | "^" if left.denominator == right.denominator == 1:
            return Fraction(_of_integers(symbol, int(left), int(right)))
    raise ValueError(f"{symbol} is not followed")


def _of_integers(symbol: str, left: int, right: int) -> int:
    if symbol in ("**", "<<", ">>") and not 0 <= right <= 64:
        raise ValueError("too large")
    match symbol:
        case "**":
            return int(left**right)
        case "<<":
            return left << right
        case ">>":
            return left >> right
        case "&":
            return left & right
        case "|":
            return left | right
    return left ^ right


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
    mine = variables(one)
    all_names = list(dict.fromkeys([*mine, *(names.get(n, n) for n in variables(other))]))
    for values in _tries(len(all_names), _constants(one, other)):
        at = dict(zip(all_names, values, strict=True))
        theirs = at | {name: at[of] for name, of in names.items()}
        try:
            left, right = int(evaluate(one, at)), int(evaluate(other, theirs))
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
