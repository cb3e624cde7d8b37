"""Where a number is bytes of cache memory, and which of its literals are widths.

A place is looked at because something says that a number is bytes: it is a dimension of a tensor
of bytes, it is added to an address, it is the length beside an address, or, with arithmetic that
only makes sense in bytes, it bears a name that says so. A name alone is said to be one.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kvlint.analysis.bodies import Body, Mark, Where
from kvlint.analysis.given import given, only_number, operands
from kvlint.analysis.item_lengths import described
from kvlint.analysis.link import Program
from kvlint.analysis.quantities import Unit, is_told, named, unit_of
from kvlint.analysis.roles import is_address, joins_lists, list_quantity
from kvlint.analysis.tensors import allocation, bytes_of
from kvlint.analysis.terms import (
    Call,
    Choice,
    Field,
    Literal,
    Many,
    Operation,
    Parameter,
    Sequence,
    Term,
    last_name,
)
from kvlint.analysis.ties import tie
from kvlint.analysis.vocabulary import apis, nouns, words
from kvlint.analysis.widths import NARROWEST, Width, adds_to_bytes, adds_widths, summands, widths
from kvlint.findings import Step

# What a definition holds that may have a width in it; each line is looked for together.
_LITERAL = re.compile(r"\* ?[1248]\b|\* ?\d\d|\d ?\* ?[a-z(]|(?:size|bytes)\w* = \d")
_BYTES = re.compile(
    r"bytes|itemsize|cell_size|element_size|data_ptr|int8|_lens?\b|// ?[\w.]+\)? ?\* ?\d"
)
_CACHE = re.compile(r"kv|cache|page|slot|pool|mem|block_len|state|token")
_SEARCHES = (
    (_LITERAL, _BYTES, _CACHE),
    (re.compile(r"numel\(\)|element_size\b(?!\()|_bytes\b|\w for \w"), re.compile(r"data_ptr\(\)")),
    (re.compile(r"dtype[^\n]* else \d|get\([^()]*, \d\)"), _BYTES, _CACHE),
    (re.compile(r", \d{3,}[,)]"), re.compile(r"zeros|empty"), re.compile(r"int8|float8"), _CACHE),
)


@dataclass(frozen=True, slots=True)
class Place:
    """A width in a number of bytes: at `mark`; `says`: what makes the number bytes; `by_name`:
    only its name does; `of`: the tensor whose address it is about; `tie`: what guards it; `way`:
    where what is multiplied was given its value, if elsewhere."""

    body: Body
    width: Width
    mark: Mark
    says: str
    by_name: bool
    of: Term | None = None
    tie: Step | None = None
    way: tuple[Step, ...] = ()


def byte_places(program: Program) -> Iterator[Place]:
    """Widths that stand as literals in the files that rules start from, each once."""
    seen: set[str] = set()
    for body in (b for patterns in _SEARCHES for b in program.holding(*patterns)):
        key = body.definition.key
        if key in seen or _is_elsewhere(body.definition.name):
            continue
        seen.add(key)
        found: dict[Term, Place] = {}
        for place in _Places(program, body).all():
            known = found.get(place.width.term)
            if known is None or (known.by_name and not place.by_name):
                found[place.width.term] = place
        for place in found.values():
            if any(_holds(other.width, place.width) for other in found.values()):
                continue
            way = given(program, body, place.width.term, place.mark)
            yield replace(place, tie=_tie(program, place), way=way)


def _holds(outer: Width, inner: Width) -> bool:
    """Whether one width is told with another: what a row has, and where the next one starts."""
    same = outer.value == inner.value and outer.term != inner.term
    return same and outer.term.contains(inner.term)


def _tie(program: Program, place: Place) -> Step | None:
    """What guards a width where it stands, or where a field is given it."""
    body, width = place.body, place.width
    _, where = body.place_of(width.term) or (place.mark, Where((0,), 0, ()))
    found = tie(program, body, width, where, place.of)
    for part in operands(width.term) if found is None else ():
        number = only_number(program, body, part)
        if number is not None:
            found = found or tie(program, number.body, width, number.store.where, place.of)
    return found


def _is_elsewhere(name: str) -> bool:
    return bool(set(words(name)) & nouns().not_cache)


def _is_cache(name: str) -> bool:
    known = set(words(name))
    return bool(known & (nouns().region | {"token", "tokens", "cell", "row"})) and not (
        known & nouns().not_cache
    )


class _Places:
    """The numbers of bytes in one body."""

    def __init__(self, program: Program, body: Body) -> None:
        self.program = program
        self.body = body
        self._fixed: dict[Term, int | None] = {}

    def all(self) -> Iterator[Place]:
        yield from self._allocated()
        yield from self._addressed()
        yield from self._summed()
        yield from self._named()

    def _place(
        self, width: Width, says: str, by_name: bool, of: Term | None = None
    ) -> Iterator[Place]:
        found = self.body.place_of(width.term)
        if found is not None:
            yield Place(self.body, width, found[0], says, by_name, of)

    def _widths(self, term: Term, *, stored: bool = False) -> Iterator[Width]:
        return widths(term, self.body, self._only_given, stored=stored)

    def _only_given(self, size: Term) -> int | None:
        """The literal that a field is only ever given."""
        if size not in self._fixed:
            number = only_number(self.program, self.body, size)
            self._fixed[size] = number.value if number else None
        return self._fixed[size]

    def _allocated(self) -> Iterator[Place]:
        """Dimensions of tensors of bytes that something of a cache is kept in."""
        for site in self.body.calls:
            made = allocation(site.call, self.body)
            if made is None or all(isinstance(d, Parameter | Field) for d in made.shape):
                continue
            name = self._kept_as(site.call)
            if not _is_cache(name) or bytes_of(self.program, made.dtype, self.body) != 1:
                continue
            says = f"is a dimension of {name}, a tensor of bytes"
            for dimension in made.shape:
                for width in self._widths(dimension, stored=True):
                    yield from self._place(width, says, False)
            match made.shape:
                case (*_, tokens, Literal(int(value)) as last) if _is_row(value):
                    if unit_of(tokens, self.body) in (Unit.TOKENS, Unit.SLOTS):
                        width = Width(last, value, row=True)
                        yield Place(self.body, width, site.place, says, False)

    def _kept_as(self, call: Call) -> str:
        """The name of what a tensor is kept in."""
        for store in self.body.stores:
            if store.value.contains(call):
                return store.name
        for value, name in self.body.names.items():
            if value.contains(call):
                return name
        return self.body.definition.short

    def _addressed(self) -> Iterator[Place]:
        """What is added to an address, and lengths beside one."""
        text = self.program.text(self.body.definition)
        moves = any(word in text for word in (*nouns().descriptors, *apis().transports))
        for root in [*self.body.roots, *self.body.returns]:
            for part in root.term.walk():
                match part:
                    case Operation("+", left, right) if not joins_lists(left, right):
                        for base, offset in ((left, right), (right, left)):
                            if is_address(base) and not is_address(offset):
                                yield from self._offset(base, offset)
                    case Sequence((address, length, *_)) if is_address(address):
                        of = _pointed(address)
                        if not is_address(length):
                            for width in self._of_length(length, of, moves):
                                yield from self._place(width, _BESIDE, of is None, of)
        for root in self.body.returns:
            for of, length in described(root.term):
                place = self.body.place_of(length) or (root.place, root.where)
                for width in self._of_length(self.program.inline(length, self.body), of, True):
                    yield Place(self.body, width, place[0], _BESIDE, False, of)

    def _offset(self, base: Term, offset: Term) -> Iterator[Place]:
        of = _pointed(base)
        says = f"is added to the address {last_name(base) or 'of a tensor'}"
        for width in self._widths(offset):
            yield from self._place(width, says, of is None, of)

    def _of_length(self, length: Term, of: Term | None, moves: bool) -> Iterator[Width]:
        """`moves`: the length is one because memory is moved or registered; else only because
        it multiplies what is counted of the tensor `of` itself."""
        if not moves and (of is None or not length.contains(of)):
            return
        found = list(self._widths(length))
        yield from found
        if found or not moves:
            return
        parts = summands(length)
        if len(parts) == 1 and is_told(length, self.body, Unit.ELEMENTS):
            yield Width(length, parts[0].coefficient)

    def _summed(self) -> Iterator[Place]:
        """Sums that are bytes by their own arithmetic, in what is told of a cache."""
        definition = self.body.definition
        for name, value in _told(self.body):
            if not any(map(_is_cache, (name, definition.short, definition.class_name))):
                continue
            if any(map(_is_elsewhere, (name, definition.class_name))):
                continue
            for part in value.holding(Operation.bit):
                if not isinstance(part, Operation) or part.symbol != "+":
                    continue
                if adds_to_bytes(part, self.body):
                    for width in self._widths(part):
                        yield from self._place(width, f"is part of {name}, a sum of bytes", False)

    def _named(self) -> Iterator[Place]:
        """Numbers that bear a name of bytes."""
        for name, value in _told(self.body):
            if named(name) is not Unit.BYTES and list_quantity(name) != "item length":
                continue
            if not _is_cache(name):
                continue
            if isinstance(value, Many):
                value = value.element
            if not isinstance(value, Operation | Choice):
                continue
            by_name = not adds_widths(value, self.body) and not self._beside_bytes(name)
            for width in self._widths(value):
                yield from self._place(width, f"is part of {name}, which is bytes", by_name)

    def _beside_bytes(self, name: str) -> bool:
        """Whether what else a method of this name returns, here or in a class of its family, has
        a dtype's size in it."""
        definition = self.body.definition
        if name != definition.short:
            return False
        owner = f"{definition.path}::{definition.class_name}"
        siblings = self.program.overrides(owner, name) if definition.class_name else []
        bodies = [self.body, *(b for d in siblings if (b := self.program.body(d)) is not None)]
        return any(is_told(root.term, one, Unit.BYTES) for one in bodies for root in one.returns)


_BESIDE = "is the length beside an address"


def _is_row(value: int) -> bool:
    """A power of two is a head's dimension as well as a number of bytes."""
    return value >= NARROWEST and value & (value - 1) != 0


def _pointed(address: Term) -> Term | None:
    """The tensor whose address an API tells, if one does."""
    for part in address.holding(Call.bit):
        if isinstance(part, Call) and part.name == "data_ptr":
            return part.receiver
    return None


def _told(body: Body) -> Iterator[tuple[str, Term]]:
    """Values with the names they bear: locals, fields, what a function returns."""
    yield from ((name, value) for value, name in body.names.items())
    yield from ((store.name, store.value) for store in body.stores)
    yield from ((body.definition.short, root.term) for root in body.returns)
