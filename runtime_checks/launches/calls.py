"""What Triton's own functions make of terms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from kvlint.runtime_checks.launches.terms import OTHER, Access, Term, Terms, UnreadableError
from kvlint.runtime_checks.launches.values import (
    NOTHING,
    Block,
    Element,
    Function,
    Known,
    Nothing,
    Number,
    Pointer,
    PointerTo,
    Value,
    spread,
)

MOST_ACCESSES: Final = 1000
_SAME: Final = frozenset(
    {"multiple_of", "max_contiguous", "max_constancy", "constexpr", "static_assert", "int"}
)
_REDUCED: Final = frozenset(
    {"sum", "max", "min", "argmax", "argmin", "reduce", "xor_sum", "reduce_or"}
)
Named = Mapping[str, Value]


class Calls:
    """
    accesses  in the order of the source
    unread    accesses of which nothing is known
    when      what holds where the reading is
    file      of the function that is read
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.accesses: list[Access] = []
        self.unread = 0
        self.when: tuple[Term, ...] = ()
        self.file = ""

    def language(self, name: str, given: Sequence[Value], named: Named, place: str) -> Value:
        """A function of Triton's, or a method of a value, which comes first; "" for what is
        neither."""
        if name.startswith("atomic_"):
            mask = _nth(given, named, 3 if name == "atomic_cas" else 2, "mask")
            return self._touch(name, _nth(given, named, 0, "pointer"), mask, NOTHING, place)
        if name in _SAME:
            return given[0] if given else NOTHING
        if name in _REDUCED:
            return self._reduced(given, named)
        make: Callable[[Sequence[Value], Named], Value] | None = getattr(self, f"_of_{name}", None)
        if make is not None:
            return make(given, named)
        match name:
            case "load":
                return self._load(given, named, place)
            case "store":
                pointer, mask = _nth(given, named, 0, "pointer"), _nth(given, named, 2, "mask")
                if isinstance(pointer, Block) and pointer.checked:
                    pointer, mask = self._at(pointer, _nth(given, named, 1, "offsets")), NOTHING
                checked = _nth(given, named, 3, "boundary_check")
                self._touch("store", pointer, mask, checked, place)
                return Known(None)
        rank = max([v.rank for v in given if isinstance(v, Number | Pointer)], default=0)
        return Number(self.terms.unknown(), rank)

    def constant(self, value: object) -> Value:
        """A constant of Python's, or what a scope has."""
        if isinstance(value, bool | int):
            return Number(self.terms.number(int(value)))
        if isinstance(value, Function | Nothing | Element | PointerTo):
            return value
        if isinstance(value, tuple | list):
            return tuple(self.constant(part) for part in value)
        return Known(value) if value is None or isinstance(value, str | float) else NOTHING

    def pointer_to(self, element: Element) -> PointerTo:
        return PointerTo(element)

    def element_of(self, value: Value) -> Element | None:
        if isinstance(value, PointerTo):
            return value.element
        return value if isinstance(value, Element) else None

    # Accesses.

    def _load(self, given: Sequence[Value], named: Named, place: str) -> Value:
        pointer, mask = _nth(given, named, 0, "pointer"), _nth(given, named, 1, "mask")
        if isinstance(pointer, Block) and pointer.checked:
            pointer, mask = self._at(pointer, mask), NOTHING
        other, checked = _nth(given, named, 2, "other"), _nth(given, named, 3, "boundary_check")
        return self._touch("load", pointer, mask, checked, place, other)

    def _at(self, block: Block, offsets: Value) -> Value:
        """Of a descriptor, where it is loaded or stored."""
        found = _terms_in(offsets)
        if found is None or len(found) != len(block.offsets):
            return NOTHING
        return replace(block, offsets=found)

    def _touch(
        self,
        call: str,
        pointer: Value,
        mask: Value,
        checked: Value,
        place: str,
        other: Value = NOTHING,
    ) -> Value:
        when = list(self.when)
        if isinstance(mask, Number):
            when.extend(_parts(mask.term))
        elif not (isinstance(mask, Nothing) or (isinstance(mask, Known) and mask.value is None)):
            when.append(self.terms.unknown("i1"))
        if isinstance(pointer, Block):
            bounds = _numbers(checked) if isinstance(checked, tuple | Number) else set()
            offset, inside = pointer.access(self.terms, bounds)
            when.extend(inside)
            pointer = replace(pointer.base, offset=offset, rank=len(pointer.sizes))
        if not isinstance(pointer, Pointer):
            self.unread += 1
            return Number(self.terms.unknown(), getattr(mask, "rank", 0))
        fallback = other.term if isinstance(other, Number) and other.term.kind != OTHER else None
        element = pointer.element
        access = Access(
            pointer.argument, pointer.offset, element.width, tuple(when), call, place, fallback
        )
        if len(self.accesses) >= MOST_ACCESSES:
            raise UnreadableError("too many accesses")
        self.accesses.append(access)
        # What an atomic operation gives back is another number for each who asks.
        loaded = call == "load" and element.kind != OTHER
        kind = element.kind
        term = self.terms.loaded(access, kind) if loaded else self.terms.unknown(kind)
        return Number(term, pointer.rank)

    # Numbers.

    def _of_program_id(self, given: Sequence[Value], named: Named) -> Value:
        axis = _constant(_nth(given, named, 0, "axis"))
        return NOTHING if axis is None else Number(self.terms.program(axis))

    def _of_num_programs(self, given: Sequence[Value], named: Named) -> Value:
        axis = _constant(_nth(given, named, 0, "axis"))
        return NOTHING if axis is None else Number(self.terms.size(axis))

    def _of_arange(self, given: Sequence[Value], named: Named) -> Value:
        start, end = _nth(given, named, 0, "start"), _nth(given, named, 1, "end")
        first, last = _constant(start), _constant(end)
        if first is None or last is None or last <= first:
            return Number(self.terms.unknown("i32"), 1)
        lane = self.terms.lane(1, last - first)
        return Number(self.terms.of("+", lane, self.terms.number(first)), 1)

    def _of_cdiv(self, given: Sequence[Value], named: Named) -> Value:
        x, div = _nth(given, named, 0, "x"), _nth(given, named, 1, "div")
        if not isinstance(x, Number) or not isinstance(div, Number):
            return Number(self.terms.unknown())
        most = self.terms.of("-", div.term, self.terms.number(1))
        total = self.terms.of("+", x.term, most)
        return Number(self.terms.of("//", total, div.term), max(x.rank, div.rank))

    def _of_next_power_of_2(self, given: Sequence[Value], named: Named) -> Value:
        number = _constant(given[0]) if given else None
        if number is None or number < 1:
            return Number(self.terms.unknown())
        return self.constant(1 << (number - 1).bit_length())

    def _pairwise(self, op: str, given: Sequence[Value]) -> Value:
        result: Number | None = None
        for value in given:
            if not isinstance(value, Number):
                return Number(self.terms.unknown())
            if result is None:
                result = value
            else:
                term = self.terms.of(op, result.term, value.term)
                result = Number(term, max(result.rank, value.rank))
        return result or NOTHING

    def _of_minimum(self, given: Sequence[Value], named: Named) -> Value:
        return self._pairwise("min", given)

    def _of_maximum(self, given: Sequence[Value], named: Named) -> Value:
        return self._pairwise("max", given)

    def _of_clamp(self, given: Sequence[Value], named: Named) -> Value:
        if len(given) != 3:
            return Number(self.terms.unknown())
        return self._pairwise("min", [self._pairwise("max", given[:2]), given[2]])

    def _of_where(self, given: Sequence[Value], named: Named) -> Value:
        parts = [v for v in given if isinstance(v, Number)]
        rank = max([v.rank for v in parts], default=0)
        if len(given) != 3 or len(parts) != 3 or parts[0].term.kind == OTHER:
            return Number(self.terms.unknown(), rank)
        return Number(self.terms.of("where", *(part.term for part in parts)), rank)

    def _of_cast(self, given: Sequence[Value], named: Named) -> Value:
        held = _nth(given, named, 0, "input")
        kind = _nth(given, named, 1, "dtype")
        match held, kind:
            case Pointer(), PointerTo(element=element):
                return replace(held, element=element)
            case Number(term=term, rank=rank), Element(kind=name) if name != OTHER:
                return Number(self.terms.cast(term, name), rank)
            case Number(rank=rank), Element() | Nothing():
                return Number(self.terms.unknown(), rank)
        return NOTHING

    _of_to = _of_cast

    def _of_pointer_type(self, given: Sequence[Value], named: Named) -> Value:
        element = _nth(given, named, 0, "element_ty")
        return PointerTo(element) if isinstance(element, Element) else NOTHING

    # Tiles.

    def _of_full(self, given: Sequence[Value], named: Named) -> Value:
        shape, value = _nth(given, named, 0, "shape"), _nth(given, named, 1, "value")
        kind = _nth(given, named, 2, "dtype")
        rank = len(shape) if isinstance(shape, tuple) else 1
        if isinstance(value, Number) and isinstance(kind, Element) and kind.kind != OTHER:
            return Number(self.terms.cast(value.term, kind.kind), rank)
        return Number(self.terms.unknown(), rank)

    def _of_zeros(self, given: Sequence[Value], named: Named) -> Value:
        kind = _nth(given, named, 1, "dtype")
        return self._of_full([_nth(given, named, 0, "shape"), self.constant(0), kind], {})

    def _of_expand_dims(self, given: Sequence[Value], named: Named) -> Value:
        held, axis = _nth(given, named, 0, "input"), _constant(_nth(given, named, 1, "axis"))
        if not isinstance(held, Number | Pointer) or axis is None:
            return NOTHING
        rank = held.rank + 1
        new = rank - (axis if axis >= 0 else axis + rank)
        axes = {old: old if old < new else old + 1 for old in range(1, rank)}
        return spread(self.terms, held, axes, rank)

    def _of_broadcast_to(self, given: Sequence[Value], named: Named) -> Value:
        held = given[0] if given else NOTHING
        if not isinstance(held, Number | Pointer):
            return NOTHING
        shape = given[1] if len(given) > 1 else named.get("shape", NOTHING)
        rank = len(shape) if isinstance(shape, tuple) else len(given) - 1
        return replace(held, rank=max(rank, held.rank))

    def _of_trans(self, given: Sequence[Value], named: Named) -> Value:
        held = given[0] if given else NOTHING
        if not isinstance(held, Number | Pointer) or held.rank != 2 or len(given) > 1:
            return Number(self.terms.unknown(), getattr(held, "rank", 0))
        return spread(self.terms, held, {1: 2, 2: 1}, 2)

    def _of_reshape(self, given: Sequence[Value], named: Named) -> Value:
        shape = given[1] if len(given) > 1 else named.get("shape", NOTHING)
        rank = len(shape) if isinstance(shape, tuple) else max(len(given) - 1, 1)
        held = given[0] if given else NOTHING
        return NOTHING if isinstance(held, Pointer) else Number(self.terms.unknown(), rank)

    _of_view = _of_reshape

    def _reduced(self, given: Sequence[Value], named: Named) -> Value:
        held = given[0] if given else NOTHING
        axis = _nth(given, named, 1, "axis")
        rank = getattr(held, "rank", 0) if not isinstance(axis, Nothing) else 0
        kind = held.term.kind if isinstance(held, Number) else OTHER
        return Number(self.terms.unknown(kind or "i32"), max(rank - 1, 0))

    # Blocks.

    def _of_make_block_ptr(self, given: Sequence[Value], named: Named) -> Value:
        base = _nth(given, named, 0, "base")
        parts = [
            _nth(given, named, at, name)
            for at, name in enumerate(("shape", "strides", "offsets", "block_shape"), 1)
        ]
        return self._block(base, parts, checked=False)

    def _of_make_tensor_descriptor(self, given: Sequence[Value], named: Named) -> Value:
        base = _nth(given, named, 0, "base")
        shape, strides = _nth(given, named, 1, "shape"), _nth(given, named, 2, "strides")
        sizes = _nth(given, named, 3, "block_shape")
        zero = tuple(self.constant(0) for _ in sizes) if isinstance(sizes, tuple) else NOTHING
        return self._block(base, [shape, strides, zero, sizes], checked=True)

    def _block(self, base: Value, parts: Sequence[Value], *, checked: bool) -> Value:
        shape, strides, offsets, sizes = (_terms_in(part) for part in parts)
        if not isinstance(base, Pointer) or None in (shape, strides, offsets, sizes):
            return NOTHING
        assert shape is not None
        assert strides is not None
        assert offsets is not None
        assert sizes is not None
        counts = [size.value for size in sizes if size.op == "number"]
        whole = tuple(count for count in counts if isinstance(count, int))
        if not len(whole) == len(sizes) == len(shape) == len(strides) == len(offsets):
            return NOTHING
        return Block(base, shape, strides, offsets, whole, checked)

    def _of_advance(self, given: Sequence[Value], named: Named) -> Value:
        block, by = _nth(given, named, 0, "base"), _terms_in(_nth(given, named, 1, "offsets"))
        if not isinstance(block, Block) or by is None or len(by) != len(block.offsets):
            return NOTHING
        return block.moved(self.terms, by)


def _nth(given: Sequence[Value], named: Named, at: int, name: str) -> Value:
    return given[at] if len(given) > at else named.get(name, NOTHING)


def _constant(value: Value) -> int | None:
    if isinstance(value, Number) and value.term.op == "number":
        number = value.term.value
        return number if isinstance(number, int) else None
    return None


def _numbers(value: Value) -> set[int]:
    parts = value if isinstance(value, tuple) else (value,)
    return {number for part in parts if (number := _constant(part)) is not None}


def _terms_in(value: Value) -> tuple[Term, ...] | None:
    parts = value if isinstance(value, tuple) else (value,)
    found = [part.term for part in parts if isinstance(part, Number) and part.term.kind != OTHER]
    return tuple(found) if len(found) == len(parts) else None


def _parts(term: Term) -> list[Term]:
    """What must hold for the whole to hold."""
    if term.op == "and":
        return [part for operand in term.operands for part in _parts(operand)]
    return [term]
