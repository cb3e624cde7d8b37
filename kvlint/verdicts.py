"""Whether a hypothesis holds on one captured geometry, and where it breaks.

Three answers. *holds*: for every list of the kinds it speaks of. *broken*: with the first region
that breaks it. *not exercised*: this geometry has no such list, does not say the quantity, or is
one that a guard never lets through.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

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
    holds,
)
from kvlint.findings import counted
from kvlint.geometry import DescriptorTable, Geometry, Region
from kvlint.hypotheses import Guard, Hypothesis

# Regions of one byte an element that nobody has told more of: what lies in them is not known.
OPAQUE = frozenset({"uint8", "torch.uint8", "int8", "torch.int8"})


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
    names = dict.fromkeys(region.list for region in geometry.regions)
    wanted = [name for name in names if name.partition(".")[0] in hypothesis.lists]
    if not wanted:
        kinds = " or ".join(hypothesis.lists) or "known"
        return Verdict(Outcome.NOT_EXERCISED, f"there is no {kinds} list")
    found = [_on_list(hypothesis, name, geometry.regions_of(name)) for name in wanted]
    for outcome in (Outcome.BROKEN, Outcome.HOLDS):
        for one in found:
            if one.outcome is outcome:
                return one
    return found[0]


def _on_list(hypothesis: Hypothesis, name: str, regions: Sequence[Region]) -> Verdict:
    relation = hypothesis.relation
    try:
        if _hidden(relation, regions):
            return Verdict(
                Outcome.NOT_EXERCISED,
                f"{name}: nothing says what elements are in these bytes",
            )
        breaks = breaks_at(relation, regions)
    except AssumptionError as error:
        reason = str(error).removeprefix(f"{relation}: ")
        return Verdict(Outcome.NOT_EXERCISED, f"{name}: {reason}")
    settled = hypothesis.guard
    if not breaks:
        also = f"; {settled.place} settles it" if settled else ""
        return Verdict(Outcome.HOLDS, f"{name}: {counted(len(regions), 'region')}{also}")
    stops = next((g for g in hypothesis.guards if _stops(g, regions)), None)
    if stops is not None:
        return Verdict(Outcome.NOT_EXERCISED, f"{name}: {stops.place} lets no such list through")
    if settled is not None and any(guard.relation is None for guard in hypothesis.guards):
        return Verdict(Outcome.HOLDS, f"{name}: {settled.place} settles it")
    if not hypothesis.every and len(breaks) < len(regions):
        return Verdict(
            Outcome.NOT_EXERCISED,
            f"{name}: holds for some regions and not for others; which are meant is not known",
        )
    broken = _broken(relation, name, regions, breaks)
    return Verdict(Outcome.BROKEN, str(broken), broken)


def _stops(guard: Guard, regions: Sequence[Region]) -> bool:
    """Whether a guard refuses this list."""
    try:
        return guard.relation is not None and not holds(guard.relation, regions)
    except AssumptionError:
        return False


def _hidden(relation: Relation, regions: Sequence[Region]) -> bool:
    about = {getattr(side, "quantity", None) for side in (relation.left, relation.right)}
    return "element size" in about and all(region.dtype in OPAQUE for region in regions)


def _broken(
    relation: Relation,
    name: str,
    regions: Sequence[Region],
    breaks: Mapping[int, tuple[int, int]],
) -> Broken:
    number, (left, right) = next(iter(breaks.items()))
    region = regions[number]
    slot: int | None = None
    byte: int | None = None
    if isinstance(relation.left, Starts) or isinstance(relation.right, Starts):
        slot, byte = 0, 0
        by = _index(regions, number, left, right)
    else:
        own, other = _own_and_other(relation, left, right)
        match _quantity(relation):
            case "slots":
                slot = min(own, other)
                byte = slot * region.stride
                by = _slots(region, own, other, relation)
            case "item length":
                slot, byte = 1, region.stride
                by = (
                    f"slots lie {own:,} bytes apart, taken is {other:,}: slot p is looked for "
                    f"{abs(own - other):,} * p bytes {'early' if other < own else 'late'}"
                )
            case "transfer length":
                slot, byte = 0, min(own, other)
                by = f"{own:,} bytes of a slot are moved, taken is {other:,}"
            case quantity:
                by = f"{quantity or 'its value'} is {own:,}, taken is {other:,}"
    return Broken(name, number, region.name, region.layer, slot, byte, left, right, by, len(breaks))


def _index(regions: Sequence[Region], number: int, left: int, right: int) -> str:
    """Where the index of a region's slot 0 goes instead; `left` is where the region starts."""
    table = DescriptorTable(tuple(regions))
    off = f"{abs(right - left):,} {'too far' if right > left else 'short'}"
    starts = f"index {right:,} is taken for its slot 0, which is {left:,}: {off}"
    if left != table.starts[number]:
        return starts
    if right >= len(table):
        return f"{starts}, beyond the list of {len(table):,} descriptors"
    hit, slot = table.locate(right)
    byte = slot * regions[hit].stride
    return f"{starts}, slot {slot} (byte {byte:,}) of region {hit} {regions[hit].name!r}"


def _slots(region: Region, own: int, other: int, relation: Relation) -> str:
    if other <= own:
        return f"it has {own:,} slots, taken are {other:,}: {own - other:,} are left out"
    past = other * region.stride - region.length
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
