"""What a term is in the geometry of a cache: an address, a list of regions, a quantity."""

from dataclasses import dataclass
from enum import IntEnum

from kvlint.analysis.bodies import Body
from kvlint.analysis.expressions import is_part
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
    Slice,
    Term,
    free,
    last_name,
    path_of,
)
from kvlint.analysis.vocabulary import apis, nouns, words


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


def region_list(term: Term, body: Body) -> Strength:
    """How sure it is that `term` holds one entry for each region."""
    match term:
        case Choice(_, then, other):
            return max(region_list(then, body), region_list(other, body))
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


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a list of regions that a value was taken from.

    `item`: the entry; `whole`: the largest term that still is a quantity of that entry
    alone (`caches[0].shape[1]`); `quantity`: what it measures.
    """

    item: Item
    whole: Term
    quantity: str
    number: int
    strength: Strength


def entry_number(term: Term) -> int | None:
    match term:
        case Item(_, Literal(bool())):
            return None
        case Item(_, Literal(int(number))) if number in (0, -1):
            return number
    return None


def entries(term: Term, body: Body) -> list[Entry]:
    """Quantities of a first or last entry in `term`, outermost first."""
    known = body.entries.get(term)
    if known is None:
        found: list[Entry] = []
        _collect(term, body, found)
        known = body.entries[term] = tuple(dict.fromkeys(found))
    return [entry for entry in known if isinstance(entry, Entry)]


def _collect(term: Term, body: Body, found: list[Entry]) -> None:
    match term:
        case Operation("//", left, right):
            pair = entries(left, body) + entries(right, body)
            if len(pair) == 2 and [e.quantity for e in pair] == ["region length", "item length"]:
                if pair[0].number == pair[1].number and (left, right) == (
                    pair[0].whole,
                    pair[1].whole,
                ):
                    strength = min(e.strength for e in pair)
                    found.append(Entry(pair[0].item, term, "slots", pair[0].number, strength))
                    return
    own = _quantity_step(term)
    if own is not None:
        inner, quantity = own
        base = inner
        while (step := _quantity_step(base)) is not None:
            base = step[0]
        if _is_row(base) and isinstance(base, Item):
            # `caches[0][0].nbytes`: one row of a region's tensor
            base, quantity = base.of, _ROW.get(quantity, quantity)
        base = _of_entry(base, body)
        number = entry_number(base)
        if number is not None and isinstance(base, Item):
            strength = region_list(base.of, body)
            if strength and _holds_objects(base.of):
                found.append(Entry(base, term, quantity, number, strength))
                return
    if isinstance(term, Call):
        asked = _asked_for_entry(term, body)
        if asked is not None:
            found.append(asked)
            return
    number = entry_number(term)
    if number is not None and isinstance(term, Item):
        strength = region_list(term.of, body)
        counted = list_quantity(last_name(term.of)) if strength else None
        if strength and counted:
            found.append(Entry(term, term, counted, number, strength))
            return
    for child in term.children():
        if child.children():
            found.extend(entries(child, body))


_ROW = {"region length": "item length"}


def _is_row(term: Term) -> bool:
    """Row 0 of the tensor that is an element of a list."""
    match term:
        case Item(Each(), Literal(int())) | Item(Item(_, Literal(int())), Literal(int())):
            return True
    return False


def _of_entry(base: Term, body: Body) -> Term:
    """The entry of a list of regions that `base` is a part of (`xs[0][i]`, its storage)."""
    at = base
    while True:
        match at:
            case Item(of, _) if entry_number(at) is not None and region_list(of, body):
                return at
            case Item(of, _) | Each(of, _) | Slice(of, _, _):
                at = of
            case Call(callee=name, receiver=of) if of is not None and name in apis().same_memory:
                at = of
            case _:
                return base


def _asked_for_entry(call: Call, body: Body) -> Entry | None:
    """`stride_of(caches, layer_idx=0)`: a helper asked about region 0."""
    for keyword, value in call.keywords:
        if value == Literal(0) and speaks_of_index(keyword):
            for given in call.values():
                if region_list(given, body) is Strength.STRONG:
                    return about_entry(call, given)
    return None


def about_entry(call: Call, given: Term) -> Entry | None:
    """The entry a helper is asked about, with the quantity that its name tells."""
    parts = set(words(call.name))
    for quantity, mark in (
        ("stride", {"stride", "strides"}),
        ("element size", {"element", "itemsize", "dtype"}),
        ("slots", {"blocks", "slots", "pages"}),
        ("block size", {"block", "page"}),
        ("head size", {"head", "hidden"}),
        ("shape", {"shape", "size", "layout", "dim"}),
    ):
        if parts & mark:
            return Entry(Item(given, Literal(0)), call, quantity, 0, Strength.STRONG)
    return None


def _holds_objects(of: Term) -> bool:
    """Tensors or objects with a geometry, not a list of numbers or addresses."""
    name = last_name(of)
    return not name or (list_quantity(name) is None and not nouns().address & set(words(name)))


def _quantity_step(term: Term) -> tuple[Term, str] | None:
    """`x.shape`, `x.shape[1]`, `x.stride(0)`, `x.element_size()` -> (x, quantity)."""
    match term:
        case Field(of, name) if name in apis().quantities and name != "size":
            return of, apis().quantities[name]
        case Field(of, "meta" | "metadata" | "data" | "index" | "value" | "tensor" as name):
            step = _quantity_step(of)
            return (of, step[1] if step else name) if name != "index" or step else None
        case Call(callee=name, receiver=of) if of is not None and name in apis().quantities:
            return of, apis().quantities[name]
        case Item(of, _):
            step = _quantity_step(of)
            if step is not None and step[1] in ("shape", "stride"):
                return of, step[1]
        case Slice(of, _, _):
            step = _quantity_step(of)
            if step is not None and step[1] == "shape":
                return of, "shape"
    return None


def quantity_of_element(term: Term, loops: frozenset[int]) -> tuple[Term, str] | None:
    """The quantity of the element of one of `loops` that a term takes: (list, quantity)."""
    for part in term.walk():
        step = _quantity_step(part)
        if step is None:
            continue
        base, quantity = step
        while (inner := _quantity_step(base)) is not None:
            base = inner[0]
        if _is_row(base) and isinstance(base, Item):
            base, quantity = base.of, _ROW.get(quantity, quantity)
        match base:
            case Each(of, loop) if loop in loops:
                return of, quantity
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
