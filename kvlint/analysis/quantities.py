"""What a number counts: bytes, elements, tokens, slots and so on, and how sure that is.

What an API says (`nbytes`, `numel()`, `element_size()`, `shape`) and what arithmetic makes of it
is strong; what only a name says is weak. A number that is none of these has no quantity.
"""

from dataclasses import dataclass
from enum import StrEnum

from kvlint.analysis.bodies import Body
from kvlint.analysis.roles import Strength, counts_regions, is_address, region_list
from kvlint.analysis.terms import (
    Call,
    Choice,
    Each,
    Field,
    Fold,
    Global,
    Item,
    Literal,
    Many,
    Operation,
    Parameter,
    Running,
    Slice,
    Term,
    last_name,
)
from kvlint.analysis.vocabulary import apis, nouns, words


class Unit(StrEnum):
    BYTES = "bytes"
    ELEMENT_SIZE = "bytes an element"
    ELEMENTS = "elements"
    TOKENS = "tokens"
    SLOTS = "slots"
    LAYERS = "layers"
    HEADS = "heads"
    REGIONS = "regions"
    DESCRIPTORS = "descriptors"
    ADDRESS = "address"


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a term counts. `strength`: STRONG from an API or arithmetic on one, WEAK from names."""

    unit: Unit
    strength: Strength


def quantity(term: Term, body: Body) -> Quantity | None:
    """What `term` counts in `body`, None where neither API nor name tells."""
    known = body.quantities.get(term, body)
    if known is body:
        known = body.quantities[term] = _quantity(term, body)
    return known if isinstance(known, Quantity) else None


def _quantity(term: Term, body: Body) -> Quantity | None:
    match term:
        case Operation(symbol, left, right):
            return _of_operation(symbol, left, right, body)
        case Choice(_, then, other):
            return quantity(then, body) or quantity(other, body)
        case Fold("len", of):
            return _strong(Unit.REGIONS) if region_list(of, body) else None
        case Fold("min" | "max" | "sum", of):
            return quantity(of, body)
        case Many(element, _, _):
            return quantity(element, body)
        case Slice(of, _, _):
            return quantity(of, body)
        case Literal():
            return None
    if is_address(term):
        told = isinstance(term, Call) and term.name == "data_ptr"
        return Quantity(Unit.ADDRESS, Strength.STRONG if told else Strength.WEAK)
    return _from_api(term) or _from_name(term, body)


def unit_of(term: Term, body: Body) -> Unit | None:
    """The unit alone, however sure."""
    found = quantity(term, body)
    return found.unit if found else None


def is_told(term: Term, body: Body, *units: Unit) -> bool:
    """Whether more than a name says that `term` counts one of these."""
    found = quantity(term, body)
    return found is not None and found.unit in units and found.strength is Strength.STRONG


def _strong(unit: Unit) -> Quantity:
    return Quantity(unit, Strength.STRONG)


_TOLD = {
    "region length": Unit.BYTES,
    "element size": Unit.ELEMENT_SIZE,
    "element count": Unit.ELEMENTS,
    "stride": Unit.ELEMENTS,
    "shape": Unit.ELEMENTS,
}
# Attributes that only tensors, arrays and dtypes have; the others may be a class's own.
_TENSOR = frozenset({"nbytes", "element_size", "itemsize", "numel", "shape", "stride"})


def _from_api(term: Term) -> Quantity | None:
    match term:
        case Global(name) if name.rpartition(".")[2] == "itemsize":
            return _strong(Unit.ELEMENT_SIZE)
        case Call(callee="size" | "nbytes", receiver=Call(callee="untyped_storage")):
            return _strong(Unit.BYTES)
        case Item(of, _):
            inner = _from_api(of)
            kept = inner is not None and inner.unit in (Unit.ELEMENTS, Unit.BYTES)
            return inner if kept else None
        case Call() as call if call.name in apis().memory:
            return _strong(Unit.BYTES)
        case Call(callee=name, receiver=of) if of is not None and name in _TENSOR | {"size"}:
            told = _TOLD.get(apis().quantities.get(name, ""))
            return _strong(told) if told else None
        case Field(_, name) if name in _TENSOR:
            told = _TOLD.get(apis().quantities[name])
            return _strong(told) if told else None
        case Field(of, "size") if is_dtype(of):
            return _strong(Unit.ELEMENT_SIZE)
        case Call() as call if call.name in apis().element_sizes:
            return _strong(Unit.ELEMENT_SIZE)
        case Call(callee="prod" | "numel") | Call(callee="math.prod" | "numpy.prod" | "torch.prod"):
            return _strong(Unit.ELEMENTS) if _of_shape(term) else None
    # A call such as `get_dtype_size(dtype)` is lowered to its argument.
    return _strong(Unit.ELEMENT_SIZE) if is_dtype(term) else None


def _of_shape(call: Term) -> bool:
    assert isinstance(call, Call)
    parts = [*call.arguments, *([call.receiver] if call.receiver is not None else [])]
    return any("shape" in words(last_name(part)) for part in parts)


def is_dtype(term: Term) -> bool:
    """A data type: by attribute, or by a name that ends so."""
    parts = words(last_name(term))
    return bool(parts) and parts[-1] in ("dtype", "dtypes")


def _from_name(term: Term, body: Body) -> Quantity | None:
    match term:
        case Parameter() | Field() | Running() | Call() | Item() | Each():
            unit = named(body.names.get(term) or last_name(term), body, term)
            return Quantity(unit, Strength.WEAK) if unit else None
    return None


_SIZES = frozenset({"size", "sizes", "bytes", "nbytes", "width", "byte"})
_LENGTH = frozenset({"len", "lens", "length", "lengths"})
_OF_SLOT = frozenset({"item", "block", "page", "slot", "row", "region", "xfer"})
_ONE = frozenset({"element", "elem", "dtype", "itemsize"})


def named(name: str, body: Body | None = None, term: Term | None = None) -> Unit | None:
    """What a name says its value counts."""
    parts = words(name)
    known = set(parts)
    if not known:
        return None
    if known & nouns().element_size or (known & _ONE and known & _SIZES):
        return Unit.ELEMENT_SIZE
    if known & nouns().bytes or (known & _LENGTH and known & _OF_SLOT):
        return Unit.BYTES
    if known & {"cell"} and known & _SIZES:
        return Unit.BYTES
    if known & nouns().elements and parts[0] not in ("num", "n"):
        return Unit.ELEMENTS
    if "head" in known and "size" in known:
        return Unit.ELEMENTS
    if "heads" in known or ("head" in known and known & {"num", "n", "count"}):
        return Unit.HEADS
    if term is not None and body is not None and counts_regions(term, body):
        return Unit.LAYERS
    if (parts[-1] in ("layers", "layer") and known & {"num", "n"}) or known == {"layer", "num"}:
        return Unit.LAYERS
    if known & {"page", "block"} and known & {"size"}:
        return Unit.TOKENS
    if parts[-1] in ("tokens", "token", "pos", "position") or known & {"tokens"}:
        return Unit.TOKENS
    if known & {"pages", "page", "slots", "slot", "blocks", "block", "loc", "locs"}:
        return Unit.SLOTS
    return None


def _of_operation(symbol: str, left: Term, right: Term, body: Body) -> Quantity | None:
    one, other = quantity(left, body), quantity(right, body)
    match symbol:
        case "+" | "-":
            return _sum(one, other)
        case "*":
            return _product(one, other)
        case "//" | "/" | "cdiv":
            if right == Literal(8) and left.contains(_counts_bits):
                return _strong(Unit.BYTES)
            return _quotient(one, other)
        case "<<":
            return one
    return None


def _sum(one: Quantity | None, other: Quantity | None) -> Quantity | None:
    told = [q for q in (one, other) if q is not None]
    for unit in (Unit.ADDRESS, Unit.BYTES):
        of_unit = [q for q in told if q.unit is unit]
        if of_unit:
            return max(of_unit, key=lambda q: q.strength)
    return told[0] if told else None


def _counts_bits(term: Term) -> bool:
    return not {"bit", "bits", "nbits", "bitwidth"}.isdisjoint(words(last_name(term)))


_ITEMS = (Unit.TOKENS, Unit.SLOTS, Unit.LAYERS, Unit.HEADS, Unit.REGIONS, Unit.DESCRIPTORS)


def _product(one: Quantity | None, other: Quantity | None) -> Quantity | None:
    told = [q for q in (one, other) if q is not None]
    for unit in (Unit.ELEMENT_SIZE, Unit.BYTES):
        of_unit = [q for q in told if q.unit is unit]
        if of_unit:
            strongest = max(q.strength for q in of_unit)
            # `page_size * element_size` still is bytes, one token at a time.
            return Quantity(Unit.BYTES if len(told) > 1 else unit, strongest)
    elements = [q for q in told if q.unit is Unit.ELEMENTS]
    if elements:
        return max(elements, key=lambda q: q.strength)
    return min(told, key=lambda q: _ITEMS.index(q.unit) if q.unit in _ITEMS else 9, default=None)


def _quotient(one: Quantity | None, other: Quantity | None) -> Quantity | None:
    if one is None or other is None:
        return one
    if one.unit is other.unit:
        return None  # a plain ratio
    if one.unit is Unit.BYTES:
        if other.unit is Unit.ELEMENT_SIZE:
            return Quantity(Unit.ELEMENTS, one.strength)
        return one
    return one
