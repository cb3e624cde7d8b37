"""The numbers of bytes in one function, and which of their literals are widths.

Something says that a number is bytes: it is a dimension of a tensor of bytes, it is added to an
address, it is the length beside one, or, with arithmetic that only makes sense in bytes, it bears
a name that says so. A name alone is said to be one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kvlint.analysis.bodies import Body, CallSite, Mark, Where
from kvlint.analysis.item_lengths import described
from kvlint.analysis.link import Program
from kvlint.analysis.outline import Definition
from kvlint.analysis.quantities import Unit, is_told, named, unit_of
from kvlint.analysis.roles import is_address, list_quantity
from kvlint.analysis.tensors import allocation, bytes_of, given_values, tensors
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
    This,
    last_name,
)
from kvlint.analysis.ties import tie
from kvlint.analysis.vocabulary import apis, nouns, words
from kvlint.analysis.widths import (
    NARROWEST,
    Width,
    adds_to_bytes,
    adds_widths,
    is_sized,
    summands,
    sums_in,
    widths,
)
from kvlint.findings import Step


@dataclass(frozen=True, slots=True)
class Place:
    """A width in a number of bytes: at `mark`; `says`: what makes the number bytes; `by_name`:
    only its name does; `of`: the tensor whose address it is about; `tie`: what guards it; `way`:
    where what is multiplied was given its value, if elsewhere; `holds`: the distant making of the
    tensor by which the width is right today."""

    body: Body
    width: Width
    mark: Mark
    says: str
    by_name: bool
    of: Term | None = None
    tie: Step | None = None
    holds: str | None = None
    way: tuple[Step, ...] = ()


def is_elsewhere(name: str) -> bool:
    return bool(set(words(name)) & nouns().not_cache)


def _is_cache(name: str) -> bool:
    known = set(words(name))
    return bool(known & (nouns().region | {"token", "tokens", "cell", "row"})) and not (
        known & nouns().not_cache
    )


class Told:
    """The numbers of bytes in one body."""

    def __init__(self, program: Program, body: Body) -> None:
        self.program = program
        self.body = body
        self._given: dict[Term, int | Unit | None] = {}

    def all(self) -> Iterator[Place]:
        yield from self._allocated()
        yield from self._addressed()
        yield from self._summed()
        yield from self._named()
        yield from self._budgeted()

    def _place(
        self, width: Width, says: str, by_name: bool, of: Term | None = None
    ) -> Iterator[Place]:
        found = self.body.place_of(width.term)
        if found is not None:
            yield Place(self.body, width, found[0], says, by_name or width.doubtful, of)

    def _widths(self, term: Term, *, stored: bool = False) -> Iterator[Width]:
        return widths(term, self.body, self._only_given, stored=stored)

    def _only_given(self, field: Term) -> int | Unit | None:
        """The one literal that a field is ever given, or that it is an element's size."""
        if not isinstance(field, Field):
            return None
        if field not in self._given:
            values = list(given_values(self.program, field.of, field.name, self.body))
            found: int | Unit | None = None
            match list({value for value, _ in values}):
                case [Literal(int(only))] if only > 0:
                    found = only
                case _ if values and all(is_told(v, b, Unit.ELEMENT_SIZE) for v, b in values):
                    found = Unit.ELEMENT_SIZE
            self._given[field] = found
        return self._given[field]

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
                    # Before the last one, what is counted may well be rows of a page.
                    if not width.row or dimension is made.shape[-1]:
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
        seen: set[Term] = set()
        # What a value grows to tells of what it grew from.
        for root in reversed([*self.body.roots, *self.body.returns]):
            for total in sums_in(root.term, seen):
                yield from self._offsets(total, root.where)
            for part in root.term.holding(Sequence.bit):
                match part:
                    case Sequence((address, length, *others)) if is_address(address):
                        of = _pointed(address)
                        if not is_address(length) and not self._has_size(others):
                            for width in self._of_length(_element(length), of, moves):
                                yield from self._place(width, _BESIDE, of is None, of)
        for site in self.body.calls:
            yield from self._handed(site)
        for root in self.body.returns:
            for of, length in described(root.term):
                place = self.body.place_of(length) or (root.place, root.where)
                for width in self._of_length(self.program.inline(length, self.body), of, True):
                    yield Place(self.body, width, place[0], _BESIDE, width.doubtful, of)

    def _has_size(self, others: list[Term]) -> bool:
        """Whether what stands beside a count is the size of what is counted."""
        return any(is_told(one, self.body, Unit.ELEMENT_SIZE) for one in others)

    def _handed(self, site: CallSite) -> Iterator[Place]:
        """Lengths that a transport is handed, and those that a call is given by name beside an
        address."""
        roles = apis().transports.get(site.call.name, {})
        position, address = roles.get("length"), roles.get("address")
        given = site.call.arguments
        of = _pointed(given[address]) if isinstance(address, int) and address < len(given) else None
        lengths = list(site.call.arguments[position:][:1]) if isinstance(position, int) else []
        if any(_pointed(value) is not None for value in site.call.values()):
            lengths += [v for name, v in site.call.keywords if _is_length(name)]
        for length in lengths:
            for width in self._of_length(_element(length), of, True):
                says = f"is the length that {site.call.name} is handed"
                yield from self._place(width, says, False, of)

    def _offsets(self, total: Term, where: Where) -> Iterator[Place]:
        """What a sum adds to an address."""
        parts = [part.term for part in summands(total)]
        base = next((part for part in parts if is_address(part)), None)
        if base is None or any(isinstance(part, Sequence) for part in parts):
            return
        of = _pointed(base)
        says = f"is added to the address {last_name(base) or 'of a tensor'}"
        for part in parts:
            if not is_address(part):
                for width in self._widths(part):
                    yield from self._place(width, says, of is None, of)
                yield from self._behind(part, says, of, where)

    def _behind(self, term: Term, says: str, of: Term | None, where: Where) -> Iterator[Place]:
        """Widths in what fields of the object, properties and helpers bring into bytes: told
        where they are written, if that is in this file. `where` the bytes are used."""
        for part in summands(term):
            for factor in part.factors:
                if is_sized((f for f in part.factors if f is not factor), self.body):
                    continue
                for value, body in self._brought(factor):
                    if body.definition.path == self.body.definition.path:
                        other = Told(self.program, body)
                        for width in other._widths(value):
                            used = tie(self.program, self.body, width, where, of)
                            for place in other._place(width, says, of is None):
                                yield replace(place, tie=used)

    def _brought(self, factor: Term) -> Iterator[tuple[Term, Body]]:
        match factor:
            case Field(This(owner), name):
                computed = self.program.overrides(owner, name)
                for definition in computed:
                    yield from self._returned(definition)
                if not computed:
                    yield from given_values(self.program, factor.of, name, self.body)
            case Call():
                found, by_name = self.program.callees(factor, self.body)
                for definition in found if not by_name else ():
                    yield from self._returned(definition)

    def _returned(self, definition: Definition) -> Iterator[tuple[Term, Body]]:
        body = self.program.body(definition)
        if body is not None:
            yield from ((root.term, body) for root in body.returns)

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
        if length.contains(lambda t: is_told(t, self.body, Unit.ELEMENT_SIZE, Unit.BYTES)):
            return  # a size is in it, however deep
        if len(parts) == 1 and is_told(length, self.body, Unit.ELEMENTS):
            # A field may hold bytes, where nobody sees what is kept in it.
            hidden = isinstance(of, Field) and not tensors(self.program, of, self.body)
            yield Width(length, parts[0].coefficient, doubtful=hidden)

    def _summed(self) -> Iterator[Place]:
        """Sums that are bytes by their own arithmetic, in what is told of a cache."""
        definition = self.body.definition
        seen: set[Term] = set()
        for name, value in reversed(list(_told(self.body))):
            if not any(map(_is_cache, (name, definition.short, definition.class_name))):
                continue
            if any(map(is_elsewhere, (name, definition.class_name))):
                continue
            for total in sums_in(value, seen):
                if adds_to_bytes(total, self.body):
                    for width in self._widths(total):
                        yield from self._place(width, f"is part of {name}, a sum of bytes", False)

    def _named(self) -> Iterator[Place]:
        """Numbers that bear a name of bytes."""
        for name, value in _told(self.body):
            if named(name) is not Unit.BYTES and list_quantity(name) != "item length":
                continue
            if not _is_cache(name):
                continue
            value = _element(value)
            if not isinstance(value, Operation | Choice):
                continue
            by_name = not adds_widths(value, self.body) and not self._beside_bytes(name)
            for width in self._widths(value):
                yield from self._place(width, f"is part of {name}, which is bytes", by_name)

    def _budgeted(self) -> Iterator[Place]:
        """What free memory is divided by."""
        for root in [*self.body.roots, *self.body.returns]:
            for part in root.term.holding(Operation.bit):
                match part:
                    case Operation("//" | "/", left, right) if is_told(left, self.body, Unit.BYTES):
                        if left.contains(_is_memory):
                            for width in self._widths(right):
                                yield from self._place(width, "divides memory that is free", False)

    def _beside_bytes(self, name: str) -> bool:
        """Whether what else a method of this name returns, here or in a class of its family, has
        a dtype's size in it."""
        definition = self.body.definition
        if name != definition.short:
            return False
        owner = definition.owner
        family = self.program.family(owner) if definition.class_name else ()
        siblings = [d for key in family for d in self.program.overrides(key, name)]
        bodies = [self.body, *(b for d in siblings if (b := self.program.body(d)) is not None)]
        return any(is_told(root.term, one, Unit.BYTES) for one in bodies for root in one.returns)


_BESIDE = "is the length beside an address"


def _is_length(name: str) -> bool:
    """A name of bytes: `size` alone counts as well."""
    return list_quantity(name) in ("item length", "region length") and not {"size", "sizes"} & {
        *words(name)
    }


def _element(length: Term) -> Term:
    return length.element if isinstance(length, Many) else length


def _is_memory(term: Term) -> bool:
    return isinstance(term, Call) and term.name in apis().memory


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
