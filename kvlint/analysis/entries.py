"""Quantities of one entry of a list of regions: where a first or last region is measured."""

from dataclasses import dataclass

from kvlint.analysis.bodies import Body
from kvlint.analysis.roles import Strength, list_quantity, region_list, speaks_of_index
from kvlint.analysis.terms import (
    Call,
    Each,
    Field,
    Item,
    Literal,
    Operation,
    Slice,
    Term,
    last_name,
)
from kvlint.analysis.vocabulary import apis, nouns, words


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
