"""Whether a hypothesis holds on one captured geometry, and where it breaks.

Three answers. *holds*: for every list of the kinds it speaks of. *broken*: with the first region
that breaks it. *not exercised*: this geometry has no such list, does not say the quantity, or is
one that a guard never lets through.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate
from typing import Final

from kvlint.assumptions import (
    AssumptionError,
    Entry,
    Expression,
    Least,
    Most,
    Own,
    Relation,
    Starts,
    breaks_at,
    nodes,
    values,
)
from kvlint.findings import counted
from kvlint.geometry import Geometry, Region
from kvlint.hypotheses import Hypothesis, Place

# Regions of one byte an element that nobody has told more of: what lies in them is not known.
OPAQUE = frozenset({"uint8", "torch.uint8", "int8", "torch.int8"})
# Of lists that it holds on, so many are told.
TOLD: Final = 4

_SOME: Final = "holds for some regions and not for others; which are meant is not known"


class Outcome(StrEnum):
    HOLDS = "holds"
    BROKEN = "broken"
    NOT_EXERCISED = "not exercised"


@dataclass(frozen=True, slots=True)
class Broken:
    """The first region for which a relation breaks.

    list         as the geometry names it
    region       number in that list, from 0; `name` and `layer` as captured
    slot, byte   the first that goes wrong there, and its offset from the region's first byte;
                 None where the relation is about no slot
    left, right  the values of the relation's sides
    by           by how much, in words
    regions      how many regions of the list break it
    """

    list: str
    region: int
    name: str
    layer: int | None
    slot: int | None
    byte: int | None
    left: int
    right: int
    by: str
    regions: int

    def __str__(self) -> str:
        layer = (
            ""
            if self.layer is None or f"layer {self.layer}" in self.name
            else (f" (layer {self.layer})")
        )
        slot = "" if self.slot is None else f" slot {self.slot}"
        byte = "" if self.byte is None else f" (byte {self.byte:,})"
        more = f"; {self.regions} regions break it" if self.regions > 1 else ""
        where = f"{self.list} region {self.region} {self.name!r}{layer}{slot}{byte}"
        return f"{where}: {self.by}{more}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`why` is one line: what was looked at, or why nothing was decided."""

    outcome: Outcome
    why: str
    broken: Broken | None = None


def verdict(hypothesis: Hypothesis, geometry: Geometry) -> Verdict:
    """Decide one hypothesis on one geometry."""
    lists = [name for name in geometry.lists if name.partition(".")[0] in hypothesis.lists]
    if not lists:
        kinds = " or ".join(hypothesis.lists) or "known"
        return Verdict(Outcome.NOT_EXERCISED, f"there is no {kinds} list")
    found = [_on_list(hypothesis, name, geometry.regions_of(name)) for name in lists]
    held = [one.why for one in found if one.outcome is Outcome.HOLDS]
    broken = next((one for one in found if one.outcome is Outcome.BROKEN), None)
    if broken is not None and held and not hypothesis.every:
        return Verdict(Outcome.NOT_EXERCISED, f"{held[0].partition(':')[0]} and others: {_SOME}")
    if broken is not None:
        return broken
    # What a guard refuses never comes to this code; what nobody can decide may.
    unknown = next((one.why for one in found if one.outcome is not Outcome.HOLDS), None)
    may_come = next((one.why for one in found if one.may_come), None)
    if held and may_come is None:
        more = f"; {counted(len(held) - TOLD, 'list')} more" if len(held) > TOLD else ""
        return Verdict(Outcome.HOLDS, "; ".join(held[:TOLD]) + more)
    also = f"; holds on {held[0]}" if held else ""
    return Verdict(Outcome.NOT_EXERCISED, f"{may_come or unknown}{also}")


@dataclass(frozen=True, slots=True)
class _OnList(Verdict):
    """may_come  whether this list, on which nothing is decided, may come to the code"""

    may_come: bool = False


def _on_list(hypothesis: Hypothesis, name: str, regions: Sequence[Region]) -> _OnList:
    def undecided(why: str, *, may_come: bool = True) -> _OnList:
        return _OnList(Outcome.NOT_EXERCISED, f"{name}: {why}", may_come=may_come)

    relation, settled = hypothesis.relation, hypothesis.guard
    try:
        if _hidden(relation, regions):
            return undecided("nothing says what elements are in these bytes")
        breaks = breaks_at(relation, regions)
        by_parts = _rests_on_parts(relation, regions, broken=bool(breaks))
    except AssumptionError as error:
        return undecided(str(error).removeprefix(f"{relation}: "))
    if not breaks and not by_parts:
        also = f"; {settled.place} settles it" if settled else ""
        return _OnList(Outcome.HOLDS, f"{name}: {counted(len(regions), 'region')}{also}")
    unknown: Place | None = None
    for guard in hypothesis.guards:
        try:
            refused = breaks_at(guard.relation, regions) if guard.relation else {}
        except AssumptionError:
            unknown = guard.place
            continue
        if refused and guard.relation and _of_each_alone(guard.relation):
            breaks = {i: sides for i, sides in breaks.items() if i not in refused}
            if not breaks:
                return undecided(f"{guard.place} lets no such region through", may_come=False)
        elif refused:
            return undecided(f"{guard.place} lets no such list through", may_come=False)
    if settled is not None and any(guard.relation is None for guard in hypothesis.guards):
        return _OnList(Outcome.HOLDS, f"{name}: {settled.place} settles it")
    if settled is not None and unknown is not None:
        return undecided(f"what {unknown} lets through is not known here")
    if by_parts:
        return undecided("it depends on whether slots count that are there in part")
    if not hypothesis.every and len(breaks) < len(regions):
        return undecided(_SOME)
    broken = _broken(relation, name, regions, breaks)
    return _OnList(Outcome.BROKEN, str(broken), broken)


def _rests_on_parts(relation: Relation, regions: Sequence[Region], *, broken: bool) -> bool:
    """Whether it makes a difference to count slots as most code does, region length // item length:
    where less than an item is moved of each slot, the last one may be shorter."""
    if not any(getattr(node, "quantity", None) == "slots" for node in _parts(relation)):
        return False
    if all(region.transfer_length == region.stride for region in regions):
        return False
    whole = [replace(region, transfer_length=region.stride) for region in regions]
    return bool(breaks_at(relation, whole)) != broken


def _of_each_alone(relation: Relation) -> bool:
    """Whether it speaks of each region for itself: then it keeps regions away, not lists."""
    return not any(isinstance(node, Entry | Least | Most | Starts) for node in _parts(relation))


def _hidden(relation: Relation, regions: Sequence[Region]) -> bool:
    about = {getattr(node, "quantity", None) for node in _parts(relation)}
    return "element size" in about and any(region.dtype in OPAQUE for region in regions)


def _parts(relation: Relation) -> Iterator[Expression]:
    yield from nodes(relation.left)
    yield from nodes(relation.right)


def _broken(
    relation: Relation,
    name: str,
    regions: Sequence[Region],
    breaks: Mapping[int, tuple[int, int]],
) -> Broken:
    number = next(iter(breaks))
    slot: int | None = None
    byte: int | None = None
    if isinstance(relation.left, Starts):
        # Nothing of a region without slots can go wrong.
        number = next((i for i in breaks if regions[i].slots), number)
        if regions[number].slots:
            slot, byte = 0, 0
        by = _index(relation.left, regions, *breaks[number])
    else:
        region = regions[number]
        own, other = _own_and_other(relation, *breaks[number])
        match _quantity(relation):
            case "slots":
                slot = min(own, other)
                byte = slot * region.stride
                by = _slots(region, own, other)
            case "item length" if region.slots > 1:
                slot, byte = 1, region.stride
                by = (
                    f"slots lie {own:,} bytes apart, taken is {other:,}: slot p is looked for "
                    f"{abs(own - other):,} * p bytes {'early' if other < own else 'late'}"
                )
            case "item length" | "transfer length" as quantity if region.slots:
                slot, byte = 0, min(own, other)
                moved = "are moved" if quantity == "transfer length" else "are its one item"
                by = f"{own:,} bytes of a slot {moved}, taken is {other:,}"
            case quantity:
                by = f"{quantity or 'its value'} is {own:,}, taken is {other:,}"
    region, (left, right) = regions[number], breaks[number]
    return Broken(name, number, region.name, region.layer, slot, byte, left, right, by, len(breaks))


def _index(start: Starts, regions: Sequence[Region], left: int, right: int) -> str:
    """Where the index of a region's slot 0 goes instead, in a list that begins each region at
    `start`; `left` is where this one begins."""
    off = f"{abs(right - left):,} {'too far' if right > left else 'short'}"
    says = f"index {right:,} is taken for its slot 0, which is {left:,}: {off}"
    begins = list(accumulate(values(start.count, regions), initial=0))
    if right >= begins[-1]:
        return f"{says}, beyond the list of {begins[-1]:,} descriptors"
    hit = bisect_right(begins, right) - 1
    if right < 0 or begins != sorted(begins):
        return says
    slot = right - begins[hit]
    byte = slot * regions[hit].stride
    return f"{says}, slot {slot} (byte {byte:,}) of region {hit} {regions[hit].name!r}"


def _slots(region: Region, own: int, other: int) -> str:
    if other <= own:
        return f"it has {own:,} slots, taken are {other:,}: {own - other:,} are left out"
    past = (other - 1) * region.stride + region.transfer_length - region.length
    beyond = f", {past:,} bytes past its end" if past > 0 else ""
    return f"it has {own:,} slots, taken are {other:,}: {other - own:,} too many{beyond}"


def _own_and_other(relation: Relation, left: int, right: int) -> tuple[int, int]:
    """The region's own value, and the one that stands in for it."""
    return (right, left) if isinstance(relation.right, Own) else (left, right)


def _quantity(relation: Relation) -> str | None:
    """What both sides speak of, as far as one side says it."""
    for side in (relation.right, relation.left):
        if isinstance(side, Own):
            return side.quantity
    return _first(relation.left) or _first(relation.right)


def _first(side: Expression) -> str | None:
    return side.quantity if isinstance(side, Entry | Least | Most) else None
