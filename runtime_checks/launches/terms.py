"""What a kernel's addresses and masks are made of: integer terms over programs, lanes and
arguments.

A term is made once: equal terms are one object, so a mask that bounds `offs` bounds every address
that has `offs` in it. `kind` is the integer type in which the kernel has the value, "" for a plain
number of Python's, which takes the type of what it meets, as Triton has it.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

MOST: Final = 20_000

# Integer kinds, with bits and sign.
KINDS: Final = {
    "i1": (1, False),
    "i8": (8, True),
    "i16": (16, True),
    "i32": (32, True),
    "i64": (64, True),
    "u8": (8, False),
    "u16": (16, False),
    "u32": (32, False),
    "u64": (64, False),
}
OTHER: Final = "other"
"""The kind of what is no integer: floats, and what nobody could read."""

COMPARISONS: Final = frozenset({"<", "<=", "==", "!="})
# What is so where one is not, and whether its sides change places.
_TURNED: Final = {"<": ("<=", True), "<=": ("<", True), "==": ("!=", False), "!=": ("==", False)}
LOGICAL: Final = frozenset({"and", "or", "not"})
WRAPPING: Final = frozenset({"+", "-", "*", "<<"})


class UnreadableError(Exception):
    """A kernel that is not read, with the reason."""


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """
    op        "number", "argument", "size" (programs along an axis), "variable", "loaded",
              "unknown", or an operation on the operands
    operands  of a variable: how many values it takes, from 0; of a loaded value its `Access`
    value     the number, the argument's name, the axis, the variable's name
    number    in the order of creation: operands come before what is made of them
    settled   whether arguments, programs and lanes alone say what it is, nothing loaded
    """

    op: str
    operands: tuple["Term", ...]
    value: Any
    kind: str
    number: int
    settled: bool

    @property
    def narrow(self) -> bool:
        return self.op in WRAPPING and self.kind in ("i32", "i16", "i8")


@dataclass(frozen=True, slots=True)
class Access:
    """A load or a store at `argument + offset`, where all of `when` hold.

    argument  of the kernel, the pointer
    offset    in bytes
    width     bytes from there
    when      each 0 or not
    call      tl's function
    place     file and line
    fallback  what a load gives where they do not; None for nobody knows what
    """

    argument: str
    offset: Term
    width: int
    when: tuple[Term, ...]
    call: str
    place: str
    fallback: Term | None = None

    @property
    def settled(self) -> bool:
        return self.offset.settled and all(term.settled for term in self.when)


class Terms:
    """Makes terms. Raises `UnreadableError` for more than `MOST` of them."""

    def __init__(self) -> None:
        self._made: dict[object, Term] = {}

    def number(self, value: int, kind: str = "") -> Term:
        return self._make("number", (), value, kind, True)

    def argument(self, name: str, kind: str) -> Term:
        return self._make("argument", (), name, kind, True)

    def size(self, axis: int) -> Term:
        return self._make("size", (), axis, "i32", True)

    def variable(self, name: object, count: Term, kind: str = "i32") -> Term:
        return self._make("variable", (count,), name, kind, count.settled)

    def loaded(self, access: Access, kind: str) -> Term:
        return self._make("loaded", (access.offset, *access.when), access, kind, False)

    def unknown(self, kind: str = OTHER) -> Term:
        """Nothing is said of it; no two are the same."""
        return self._make("unknown", (), len(self._made), kind, False)

    def program(self, axis: int) -> Term:
        return self.variable(("program", axis), self.size(axis))

    def lane(self, axis: int, count: int) -> Term:
        """One of the lanes along an axis of a tile, counted from the last one, 1."""
        if count == 1:
            return self.number(0, "i32")
        return self.variable(("lane", axis), self.number(count))

    def of(self, op: str, *operands: Term) -> Term:
        """An operation: + - * // % min max << >> & | ^, a comparison, and, or, not, where."""
        if op == "not" and operands[0].op in _TURNED:
            turned, swapped = _TURNED[operands[0].op]
            return self.of(turned, *operands[0].operands[:: -1 if swapped else 1])
        kind = _kind_of(op, operands)
        if kind == OTHER:
            return self.unknown()
        plain = _simplified(op, operands)
        if plain is not None:
            return plain if plain.kind == kind else self.cast(plain, kind)
        if all(term.op == "number" for term in operands):
            values = [term.value for term in operands]
            result = apply(op, values, floor=kind == "")
            if result is not None:
                return self.number(wrapped(result, kind), kind)
        settled = all(term.settled for term in operands)
        return self._make(op, tuple(operands), None, kind, settled)

    def cast(self, term: Term, kind: str) -> Term:
        if term.kind == kind:
            return term
        if kind not in KINDS or term.kind == OTHER:
            return self.unknown(kind if kind in KINDS else OTHER)
        if term.op == "number" and isinstance(term.value, int):
            return self.number(wrapped(term.value, kind), kind)
        return self._make("cast", (term,), None, kind, term.settled)

    def all_of(self, terms: Sequence[Term]) -> Term:
        found = self.number(1, "i1")
        for term in terms:
            found = self.of("and", found, term)
        return found

    def replaced(self, term: Term, change: Callable[[Term], Term | None]) -> Term:
        """The term with other variables, also where they say which value is loaded."""
        done: dict[int, Term] = {}

        def again(term: Term) -> Term:
            if term.number not in done:
                done[term.number] = self._rebuilt(term, again, change)
            return done[term.number]

        return again(term)

    def _rebuilt(
        self, term: Term, again: Callable[[Term], Term], change: Callable[[Term], Term | None]
    ) -> Term:
        new = change(term)
        if new is not None or not term.operands:
            return new or term
        operands = tuple(again(operand) for operand in term.operands)
        if operands == term.operands:
            return term
        if isinstance(term.value, Access):
            old = term.value
            fallback = None if old.fallback is None else again(old.fallback)
            moved = Access(
                old.argument, operands[0], old.width, operands[1:], old.call, old.place, fallback
            )
            return self.loaded(moved, term.kind)
        settled = all(operand.settled for operand in operands) and term.op != "unknown"
        return self._make(term.op, operands, term.value, term.kind, settled)

    def _make(
        self, op: str, operands: tuple[Term, ...], value: object, kind: str, settled: bool
    ) -> Term:
        key = (op, tuple(term.number for term in operands), value, kind)
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= MOST:
                raise UnreadableError("too large")
            found = Term(op, operands, value, kind, len(self._made), settled)
            self._made[key] = found
        return found


def below(roots: Sequence[Term]) -> list[Term]:
    """All that the terms are made of, operands first."""
    found: dict[int, Term] = {}
    left = list(roots)
    while left:
        term = left.pop()
        if term.number not in found:
            found[term.number] = term
            left.extend(term.operands)
            if isinstance(term.value, Access) and term.value.fallback is not None:
                left.append(term.value.fallback)
    return [found[number] for number in sorted(found)]


def wrapped(value: int, kind: str) -> int:
    """As it comes out in that many bits."""
    if kind not in KINDS:
        return value
    bits, signed = KINDS[kind]
    if kind == "i1":
        return int(value != 0)
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def apply(op: str, values: Sequence[int], *, floor: bool = False) -> int | None:
    """The operation on numbers, without bounds; None where there is no result.

    floor  whether division rounds down, as Python's does; a kernel's rounds towards 0
    """
    if op == "where":
        return values[1] if values[0] else values[2]
    if op == "not":
        return int(not values[0])
    if op == "cast":
        return values[0]
    one, two = values
    if op in ("//", "%"):
        return None if two == 0 else _divided(op, one, two, floor=floor)
    if op in ("<<", ">>") and not 0 <= two < 64:
        return None
    return int(_BINARY[op](one, two))


def _divided(op: str, one: int, two: int, *, floor: bool) -> int:
    if floor:
        return one // two if op == "//" else one % two
    whole = abs(one) // abs(two)
    whole = whole if (one < 0) == (two < 0) else -whole
    return whole if op == "//" else one - whole * two


_BINARY: Final[Mapping[str, Callable[[int, int], int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "min": min,
    "max": max,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    "and": lambda one, two: bool(one and two),
    "or": lambda one, two: bool(one or two),
}


def _kind_of(op: str, operands: Sequence[Term]) -> str:
    if op in COMPARISONS or op in LOGICAL:
        return "i1"
    kinds = {term.kind for term in (operands[1:] if op == "where" else operands)}
    if OTHER in kinds:
        return OTHER
    kinds.discard("")
    if not kinds:
        return ""
    return max(kinds, key=lambda kind: (KINDS[kind][0], not KINDS[kind][1]))


def _simplified(op: str, operands: Sequence[Term]) -> Term | None:
    """The operand that is the result, if one is."""
    numbers = [term.value if term.op == "number" else None for term in operands]
    if op == "where":
        if numbers[0] is not None:
            return operands[1] if numbers[0] else operands[2]
        return operands[1] if operands[1] is operands[2] else None
    if len(operands) != 2:
        return None
    pairs = list(zip(operands, numbers[::-1], strict=True))
    absorbing = {"*": 0, "and": 0, "or": 1}.get(op)
    for term, number in zip(operands, numbers, strict=True):
        if absorbing is not None and number == absorbing:
            return term
    if op in ("+", "or", "|"):
        neutral = 0
    elif op in ("*", "and"):
        neutral = 1
    elif op in ("-", "//", "<<", ">>"):
        neutral, pairs = int(op == "//"), pairs[:1]
    else:
        return None
    kept = [term for term, other in pairs if other == neutral]
    return kept[0] if kept else None
