"""What a name of a kernel stands for while its source is read."""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from kvlint.runtime_checks.launches.terms import KINDS, OTHER, Term, Terms

_ELEMENT: Final = re.compile(r"(uint|u|int|i|bfloat|bf|float|fp|complex|bool)_?(\d*)")


@dataclass(frozen=True, slots=True)
class Element:
    """What a pointer points to: its integer kind, or `OTHER`, and bytes."""

    kind: str
    width: int

    @classmethod
    def named(cls, name: str) -> "Element | None":
        """By the names of Triton's types, their short forms, and torch's: "int32", "*bf16",
        "float8_e4m3fn"; None for none of them."""
        found = _ELEMENT.match(name.lstrip("*k"))
        if found is None:
            return None
        family, bits = found[1], int(found[2] or 1 if found[1] == "bool" else found[2] or 0)
        if not bits:
            return None
        signs = {"uint": "u", "u": "u", "int": "i", "i": "i", "bool": "i"}
        kind = f"{signs.get(family, '-')}{bits}"
        return cls(kind if kind in KINDS else OTHER, max(1, bits // 8))


@dataclass(frozen=True, slots=True)
class Number:
    """An integer, or a tile of them with `rank` axes; of kind `OTHER` anything else that has a
    value."""

    term: Term
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Pointer:
    """`offset` bytes past an argument of the kernel."""

    argument: str
    offset: Term
    element: Element
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """What `make_block_ptr` makes, or, where every access is checked, a tensor descriptor."""

    base: Pointer
    shape: tuple[Term, ...]
    strides: tuple[Term, ...]
    offsets: tuple[Term, ...]
    sizes: tuple[int, ...]
    checked: bool = False

    def moved(self, terms: Terms, by: tuple[Term, ...]) -> "Block":
        pairs = zip(self.offsets, by, strict=True)
        return replace(self, offsets=tuple(terms.of("+", old, more) for old, more in pairs))

    def access(self, terms: Terms, checked: set[int]) -> tuple[Term, list[Term]]:
        """Offset in bytes of an element, and what holds where it is accessed."""
        offset, when = self.base.offset, []
        for axis, count in enumerate(self.sizes):
            lane = terms.cast(terms.lane(len(self.sizes) - axis, count), "i64")
            at = terms.of("+", terms.cast(self.offsets[axis], "i64"), lane)
            if self.checked or axis in checked:
                when.append(terms.of("<=", terms.number(0, "i64"), at))
                when.append(terms.of("<", at, terms.cast(self.shape[axis], "i64")))
            step = terms.of("*", at, terms.cast(self.strides[axis], "i64"))
            offset = terms.of("+", offset, in_bytes(terms, step, self.base.element))
        return offset, when


@dataclass(frozen=True, slots=True)
class Known:
    """A constant that is no integer: None, a float, a text, a type."""

    value: object


@dataclass(frozen=True, slots=True)
class PointerTo:
    element: Element


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A kernel, or a function that kernels call. Its code is read, never run.

    file  that it is in, for people
    """

    node: ast.FunctionDef
    scope: "Scope"
    file: str = ""


class Nothing:
    """What nobody could read."""


NOTHING: Final = Nothing()
Value = Number | Pointer | Block | Known | Element | PointerTo | Function | Nothing | tuple  # type: ignore[type-arg]


class Scope(Protocol):
    """What is around a function: constants, and functions that are kernels' too."""

    def look(self, name: str) -> object:
        """An int, float, text or None, a `Function`; `NOTHING` for anything else. `name` may be
        dotted."""

    def is_language(self, name: str) -> bool:
        """Whether Triton's functions stand under this name: `tl`, mostly."""


@dataclass(frozen=True, slots=True)
class Given:
    """Constants and functions by name."""

    names: Mapping[str, object]

    def look(self, name: str) -> object:
        return self.names.get(name, NOTHING)

    def is_language(self, name: str) -> bool:
        return name in ("tl", "triton")


def in_bytes(terms: Terms, count: Term, element: Element) -> Term:
    return terms.of("*", terms.cast(count, "i64"), terms.number(element.width, "i64"))


def moved(terms: Terms, pointer: Pointer, by: Number, sign: str) -> Pointer | Nothing:
    """The pointer so many elements on. An unsigned index of 32 bits is not followed: whether its
    upper half is taken for negative numbers is the compiler's own."""
    if by.term.kind == "u32" or by.term.kind == OTHER:
        return replace(pointer, offset=terms.unknown("i64"), rank=max(pointer.rank, by.rank))
    step = in_bytes(terms, by.term, pointer.element)
    offset = terms.of(sign, pointer.offset, step)
    return replace(pointer, offset=offset, rank=max(pointer.rank, by.rank))


def spread(terms: Terms, value: Number | Pointer, axes: Mapping[int, int], rank: int) -> Value:
    """With each axis, counted from the last one, at another place."""

    def change(term: Term) -> Term | None:
        if term.op == "variable" and isinstance(term.value, tuple) and term.value[0] == "lane":
            at = axes.get(term.value[1])
            return terms.unknown(term.kind) if at is None else _lane(terms, at, term)
        return None

    if isinstance(value, Number):
        return Number(terms.replaced(value.term, change), rank)
    return replace(value, offset=terms.replaced(value.offset, change), rank=rank)


def _lane(terms: Terms, axis: int, old: Term) -> Term:
    return terms.variable(("lane", axis), old.operands[0], old.kind)
