"""What a term is in the geometry of a cache: an address, a list of regions, a quantity."""

from enum import IntEnum

from kvlint.analysis.bodies import Body
from kvlint.analysis.forms import is_part
from kvlint.analysis.showing import path_of
from kvlint.analysis.terms import (
    Arange,
    Call,
    Choice,
    Each,
    Field,
    Fold,
    Index,
    Item,
    Literal,
    Many,
    Operation,
    Parameter,
    Sequence,
    Slice,
    Term,
    free,
    last_name,
)
from kvlint.analysis.vocabulary import nouns, words


class Strength(IntEnum):
    """How sure a name makes us that a list holds one value for each region."""

    NONE = 0
    WEAK = 1
    STRONG = 2


_PER = frozenset({"layer", "region", "buffer", "group"})
_COUNTED = frozenset({"num", "len", "lens", "size", "stride", "blocks", "slots"})


def is_address(term: Term, depth: int = 0) -> bool:
    """A place in memory: a pointer by name or by `data_ptr()`, plus any offset."""
    match term:
        case Call(callee="data_ptr") | Call(callee="untyped_storage"):
            return True
        case Operation("+" | "-", left, right):
            return is_address(left, depth + 1) or is_address(right, depth + 1)
        case Choice(_, then, other):
            return is_address(then, depth + 1) or is_address(other, depth + 1)
        case Many(element, _, _):
            return is_address(element, depth + 1)
        case Item(of, _) | Each(of, _) | Slice(of, _, _) if depth < 6:
            return is_address(of, depth + 1)
        case Parameter() | Field():
            return bool(nouns().address & set(words(last_name(term))))
        case Call() as call:
            return bool(nouns().address & set(words(call.name)))
    return False


def names_regions(name: str) -> Strength:
    """Whether a name speaks of one value for each region."""
    parts = words(name)
    known = set(parts)
    if not parts or known & nouns().not_region:
        return Strength.NONE
    if "per" in known and known & _PER:
        return Strength.STRONG
    if parts[0] in ("region", "layer") and known & _COUNTED and len(parts) > 2:
        return Strength.STRONG
    if not known & nouns().many:
        return (
            Strength.WEAK
            if parts[-1] in ("buffer", "pool") and known & nouns().firm
            else Strength.NONE
        )
    if parts[-1] in ("caches", "kvcaches"):
        return Strength.STRONG
    rest = set(parts) - {w for w in parts if w in nouns().weak}
    if parts[-1] in nouns().weak or parts[-1] in ("strides", "nbytes"):
        firm = rest & nouns().firm
        if parts[-1] == "strides" and not rest & nouns().strided:
            return Strength.NONE
        return Strength.STRONG if firm else Strength.WEAK
    if len(parts) == 1:
        return Strength.WEAK if parts[-1] in nouns().many else Strength.NONE
    return Strength.STRONG if known & nouns().region else Strength.NONE


def joins_lists(left: Term, right: Term) -> bool:
    """`regions + [one]` has a longer list, where `base + offset` has a place in memory."""
    return isinstance(left, Sequence) or isinstance(right, Sequence)


def region_list(term: Term, body: Body) -> Strength:
    """How sure it is that `term` holds one entry for each region."""
    match term:
        case Choice(_, then, other):
            return max(region_list(then, body), region_list(other, body))
        case Operation("+", left, Sequence()):
            return region_list(left, body)  # grown by more of the same
        case Operation("+", left, right):
            return min(region_list(left, body), region_list(right, body))
        case Many(element, over, loop):
            if isinstance(over, Arange) and not element.contains(_is_position):
                return Strength.NONE
            found = Strength.STRONG if is_address(element) else region_list(over, body)
            for part in element.walk():
                if isinstance(part, Each) and part.loop == loop and found < Strength.STRONG:
                    found = max(found, region_list(part.of, body))
            return found
        case Slice(of, _, _):
            return region_list(of, body)
        case Call():
            return names_regions(body.names.get(term, ""))
        case Item(_, Literal(str(key))):
            return names_regions(key)
        case Item(of, key) if is_part(key) is not None:
            return names_regions(body.names.get(term, ""))
        case Item(of, key) if not _is_lookup(key):
            return Strength.NONE
        case Parameter() | Field() | Item():
            found = names_regions(last_name(term))
            if found is Strength.WEAK and _walked(term, body):
                return Strength.STRONG
            return found
    return Strength.NONE


def _is_lookup(key: Term) -> bool:
    """A key that chooses a peer or an engine, not a region."""
    match key:
        case Parameter() | Field():
            return bool(set(words(last_name(key))) & {"engine", "peer", "agent", "rank", "name"})
    return False


def _is_position(term: Term) -> bool:
    return isinstance(term, Each | Index)


def _walked(term: Term, body: Body) -> bool:
    """Elsewhere in this body the elements' addresses are taken, so they are regions."""
    for root in body.roots:
        for part in root.term.walk():
            match part:
                case Call(callee="data_ptr", receiver=receiver) if receiver is not None:
                    if any(isinstance(p, Each | Item) and p.of == term for p in receiver.walk()):
                        return True
    return False


_LIST_QUANTITIES = (
    ("stride", frozenset({"stride", "strides"})),
    ("device", frozenset({"device", "devices", "dev"})),
    ("dtype", frozenset({"dtype", "dtypes"})),
    ("slots", frozenset({"slots", "num", "counts", "capacities"})),
)


def list_quantity(name: str) -> str | None:
    """What the entries of a list of values count; None for lists of tensors and addresses."""
    parts = set(words(name))
    if parts & nouns().address:
        return None
    for quantity, mark in _LIST_QUANTITIES:
        if parts & mark:
            return quantity
    if parts & nouns().length:
        if parts & {"item", "block", "page", "slot", "row", "stride", "xfer"}:
            return "item length"
        return "region length"
    return None


def invariant(term: Term, loop: int) -> bool:
    """Whether `term` is the same at each turn of `loop`."""
    return all(part.loop != loop for part in free(term))


def counts_regions(term: Term, body: Body) -> bool:
    """`len(xs)` of a list of regions, or a name like `num_layers`."""
    match term:
        case Fold("len", of):
            return region_list(of, body) is not Strength.NONE or is_address(of)
        case Parameter() | Field():
            parts = words(last_name(term))
            return len(parts) > 1 and parts[0] in ("num", "n") and bool(nouns().index & set(parts))
        case Operation("//" | "*", left, Literal(2)):
            return counts_regions(left, body)
        case Choice(_, then, other):
            return counts_regions(then, body) or counts_regions(other, body)
        case Operation("-", left, right):
            return {"start", "end"} <= set(words(last_name(left)) + words(last_name(right)))
    return False


def numbers_region(term: Term, body: Body) -> bool:
    """A term that is the number of a region: a loop index over regions, `layer_id`."""
    match term:
        case Arange(count):
            return counts_regions(count, body)
        case Index(over, _):
            return (
                numbers_region(over, body)
                if isinstance(over, Arange)
                else region_list(over, body) is not Strength.NONE or is_address(over)
            )
        case Each(of, _):
            return numbers_region(of, body) or speaks_of_index(last_name(of))
        case Parameter() | Field():
            return speaks_of_index(last_name(term))
        case Choice(_, then, other):
            return numbers_region(then, body) or numbers_region(other, body)
    return False


def speaks_of_index(name: str) -> bool:
    parts = words(name)
    return (
        len(parts) > 1
        and parts[-1] in ("id", "idx", "index", "ids", "indices", "i", "no")
        and bool(nouns().index & set(parts[:-1]))
    )


def numbers_slot(term: Term) -> bool:
    """A page, block or slot number, or an array of them."""
    match term:
        case Parameter() | Field():
            parts = words(last_name(term))
            if not parts or parts[0] in ("num", "n", "max", "total"):
                return False
            return parts[-1] in ("pages", "slots", "blocks", "loc", "locs") or (
                parts[-1] in ("id", "ids", "idx", "index", "indices", "starts", "start", "page")
                and bool(
                    set(parts) & {"kv", "page", "pages", "slot", "block", "dst", "src", "prefill"}
                )
                and not set(parts) & nouns().index
            )
        case Each(of, _) | Slice(of, _, _):
            return numbers_slot(of)
        case Item(of, key) if is_part(key) is None:
            return numbers_slot(of)
        case Operation("+" | "-", left, right):
            return numbers_slot(left) or numbers_slot(right)
    return False


def is_byte_buffer(term: Term) -> bool:
    """Flat memory cut by byte offsets (`staging_view[a:b]`)."""
    parts = set(words(path_of(term) or last_name(term)))
    return bool(parts & {"staging", "raw", "arena", "storage"}) or (
        bool(parts & {"buffer", "buf"}) and bool(parts & {"flat", "send", "recv", "bytes"})
    )
