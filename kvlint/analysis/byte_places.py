"""Where a number is bytes of cache memory, and which of its literals are widths.

A place is looked at because something says that a number is bytes: it is a dimension of a tensor
of bytes, it is added to an address, it is the length beside an address, or, with arithmetic that
only makes sense in bytes, it bears a name that says so. A name alone is said to be one.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kvlint.analysis.bodies import Body, Mark, Where
from kvlint.analysis.item_lengths import described
from kvlint.analysis.link import Program
from kvlint.analysis.quantities import Unit, named, quantity
from kvlint.analysis.roles import Strength, is_address, joins_lists, list_quantity
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

_LITERAL = re.compile(r"\* ?\d|\d ?\* ?[\w(]|numel\(|else \d|get\([^()]*, \d\)|, \d{3,}[,)]")
_BYTES = re.compile(
    r"bytes|itemsize|cell_size|element_size|data_ptr|int8|_lens?\b|// ?[\w.]+\)? ?\* ?\d"
)


@dataclass(frozen=True, slots=True)
class Place:
    """A width in a number of bytes: at `mark`; `says`: what makes the number bytes; `by_name`:
    only its name does; `of`: the tensor whose address it is about; `tie`: what guards it."""

    body: Body
    width: Width
    mark: Mark
    says: str
    by_name: bool
    of: Term | None = None
    tie: Step | None = None


def byte_places(program: Program) -> Iterator[Place]:
    """Widths that stand as literals in the files that rules start from, each once."""
    for body in program.holding(_LITERAL, _BYTES):
        found: dict[Term, Place] = {}
        for place in _of_body(program, body):
            known = found.get(place.width.term)
            if known is None or (known.by_name and not place.by_name):
                found[place.width.term] = place
        for place in found.values():
            _, where = body.place_of(place.width.term) or (place.mark, Where((0,), 0, ()))
            yield replace(place, tie=tie(program, body, place.width, where, place.of))


def _of_body(program: Program, body: Body) -> Iterator[Place]:
    if _is_elsewhere(body.definition.name):
        return
    text = program.text(body.definition)
    moves = any(word in text for word in (*nouns().descriptors, *apis().transports))
    yield from _allocated(program, body)
    yield from _addressed(body, moves)
    yield from _summed(program, body)
    yield from _named(program, body)


def _place(
    body: Body, width: Width, says: str, by_name: bool, of: Term | None = None
) -> Iterator[Place]:
    found = body.place_of(width.term)
    if found is not None:
        yield Place(body, width, found[0], says, by_name, of)


def _is_elsewhere(name: str) -> bool:
    return bool(set(words(name)) & nouns().not_cache)


def _is_cache(name: str) -> bool:
    known = set(words(name))
    return bool(known & (nouns().region | {"token", "tokens", "cell", "row"})) and not (
        known & nouns().not_cache
    )


def _allocated(program: Program, body: Body) -> Iterator[Place]:
    """Dimensions of tensors of bytes that something of a cache is kept in."""
    for site in body.calls:
        made = allocation(site.call, body)
        if made is None or all(isinstance(d, Parameter | Field) for d in made.shape):
            continue
        name = _kept_as(body, site.call)
        if not _is_cache(name) or bytes_of(program, made.dtype, body) != 1:
            continue
        says = f"is a dimension of {name}, a tensor of bytes"
        for dimension in made.shape:
            for width in widths(dimension, body, bytes_=True, stored=True):
                yield from _place(body, width, says, False)
        match made.shape:
            case (*_, tokens, Literal(int(value)) as last) if _is_row(value):
                told = quantity(tokens, body)
                if told is not None and told.unit in (Unit.TOKENS, Unit.SLOTS):
                    yield Place(body, Width(last, value, row=True), site.place, says, False)


def _is_row(value: int) -> bool:
    """A power of two is a head's dimension as well as a number of bytes."""
    return value >= NARROWEST and value & (value - 1) != 0


def _kept_as(body: Body, call: Call) -> str:
    """The name of what a tensor is kept in."""
    for store in body.stores:
        if store.value.contains(call):
            return store.name
    for value, name in body.names.items():
        if value.contains(call):
            return name
    return body.definition.short


def _addressed(body: Body, moves: bool) -> Iterator[Place]:
    """What is added to an address and, where memory is moved or registered, lengths beside one."""
    for root in [*body.roots, *body.returns]:
        for part in root.term.walk():
            match part:
                case Operation("+", left, right) if not joins_lists(left, right):
                    for base, offset in ((left, right), (right, left)):
                        if is_address(base) and not is_address(offset):
                            of = _pointed(base)
                            says = f"is added to the address {last_name(base) or 'of a tensor'}"
                            for width in widths(offset, body, bytes_=True):
                                yield from _place(body, width, says, of is None, of)
                case Sequence((address, length, *_)) if moves and is_address(address):
                    if not is_address(length):
                        of = _pointed(address)
                        for width in _of_length(length, body):
                            yield from _place(body, width, _BESIDE, of is None, of)
    for root in body.returns:
        for of, length in described(root.term):
            for width in _of_length(length, body):
                yield from _place(body, width, _BESIDE, False, of)


_BESIDE = "is the length beside an address"


def _of_length(length: Term, body: Body) -> Iterator[Width]:
    found = list(widths(length, body, bytes_=True))
    yield from found
    parts = summands(length)
    if found or len(parts) != 1:
        return
    told = quantity(length, body)
    if told is not None and told.unit is Unit.ELEMENTS and told.strength is Strength.STRONG:
        yield Width(length, parts[0].coefficient)


def _pointed(address: Term) -> Term | None:
    """The tensor whose address an API tells, if one does."""
    for part in address.holding(Call.bit):
        if isinstance(part, Call) and part.name == "data_ptr":
            return part.receiver
    return None


def _summed(program: Program, body: Body) -> Iterator[Place]:
    """Sums that are bytes by their own arithmetic, in what is told of a cache."""
    definition = body.definition
    for name, value in _told(body):
        if not any(map(_is_cache, (name, definition.short, definition.class_name))):
            continue
        if any(map(_is_elsewhere, (name, definition.class_name))):
            continue
        for part in value.holding(Operation.bit):
            if isinstance(part, Operation) and part.symbol == "+" and adds_to_bytes(part, body):
                for width in widths(part, body, bytes_=True):
                    yield from _place(body, width, f"is part of {name}, a sum of bytes", False)


def _told(body: Body) -> Iterator[tuple[str, Term]]:
    """Values with the names they bear: locals, fields, what a function returns."""
    yield from ((name, value) for value, name in body.names.items())
    yield from ((store.name, store.value) for store in body.stores)
    yield from ((body.definition.short, root.term) for root in body.returns)


def _named(program: Program, body: Body) -> Iterator[Place]:
    """Numbers that bear a name of bytes."""
    for name, value in _told(body):
        if named(name) is not Unit.BYTES and list_quantity(name) != "item length":
            continue
        if not _is_cache(name):
            continue
        if isinstance(value, Many):
            value = value.element
        if not isinstance(value, Operation | Choice):
            continue
        by_name = not adds_widths(value, body) and not _beside_bytes(program, body, name)
        for width in widths(value, body, bytes_=True):
            yield from _place(body, width, f"is part of {name}, which is bytes", by_name)


def _beside_bytes(program: Program, body: Body, name: str) -> bool:
    """Whether what else a method of this name returns, here or in a class of its family, has a
    dtype's size in it."""
    definition = body.definition
    if name != definition.short:
        return False
    owner = f"{definition.path}::{definition.class_name}"
    siblings = program.overrides(owner, name) if definition.class_name else []
    bodies = [body, *(b for d in siblings if (b := program.body(d)) is not None)]
    return any(_is_told_bytes(root.term, one) for one in bodies for root in one.returns)


def _is_told_bytes(term: Term, body: Body) -> bool:
    told = quantity(term, body)
    return told is not None and told.unit is Unit.BYTES and told.strength is Strength.STRONG
