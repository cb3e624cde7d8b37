"""What is drawn, whatever it is drawn on: regions of one geometry, or of two side by side.

A `Row` is a region, or several that are alike; a `Lane` is its picture on one side. All lanes of a
scene have one scale: `longest` bytes are the whole width for a region, `widest` for one slot.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import Final

from kvlint.drawing.overlaps import overlaps
from kvlint.drawing.pairing import Numbered, Pair, aligned, fields_of, numbered, pair
from kvlint.drawing.words import spans
from kvlint.geometry import DescriptorTable, Geometry, Region

# Rows are folded beyond so many, and what is still too much is left out in the middle.
UNFOLDED: Final = 12
MOST_ROWS: Final = 40
_MOST_ROLES: Final = 3


class Kind(StrEnum):
    """What a mark says of a slot."""

    MEANT = "meant"
    RIGHT = "right"
    WRONG = "wrong"


# What a legend says of each.
SAYS: Final = {
    Kind.MEANT: "meant, and not reached",
    Kind.RIGHT: "meant, and reached",
    Kind.WRONG: "reached, and not meant",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A slot to point at.

    list, region  the list, and the number of the region in it
    slot          may lie beyond the region's last
    says          for people, one line
    side          of two geometries side by side, which
    """

    list: str
    region: int
    slot: int
    kind: Kind
    says: str = ""
    side: int = 0


@dataclass(frozen=True, slots=True)
class Lane:
    """What a row is on one side.

    members  the regions; those of one lane differ in name, address and layer only
    starts   descriptors of the list before each of them
    marks    of the first, in the order of slots; those of the others are alike
    overlap  bytes that each has in common with a region that begins before it
    """

    members: tuple[Numbered, ...]
    starts: tuple[int, ...]
    marks: tuple[Mark, ...] = ()
    overlap: int = 0

    @property
    def region(self) -> Region:
        """The first."""
        return self.members[0].region

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(at.number for at in self.members)

    @property
    def layers(self) -> tuple[int, ...]:
        found = {at.region.layer for at in self.members if at.region.layer is not None}
        return tuple(sorted(found))

    @property
    def label(self) -> str:
        """A region's name, or what several have in common."""
        return label([at.region for at in self.members])

    @property
    def pointed(self) -> tuple[tuple[int, Kind], ...]:
        """What marks point at, whoever says what."""
        return tuple((mark.slot, mark.kind) for mark in self.marks)

    @property
    def used(self) -> int:
        """Bytes from the region's start to the end of its last slot."""
        region = self.region
        if not region.slots:
            return 0
        end = (region.slots - 1) * region.stride + max(region.stride, region.transfer_length)
        return min(end, region.length)

    @property
    def tail(self) -> int:
        """Bytes that are no slot's."""
        return self.region.length - self.used


@dataclass(frozen=True, slots=True)
class Row:
    """A lane for each side; None where a side has no such region. `changed`: names of the fields
    in which the two sides differ."""

    lanes: tuple[Lane | None, ...]
    changed: tuple[str, ...] = ()

    @property
    def first(self) -> Lane:
        return next(lane for lane in self.lanes if lane is not None)


@dataclass(frozen=True, slots=True)
class Band:
    """The rows of one list, which may have a name on each side. `sizes`: regions and descriptors of
    the list on each side; `left_out`: after how many rows how many regions are not drawn."""

    list: str
    rows: tuple[Row, ...]
    sizes: tuple[tuple[int, int], ...]
    left_out: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    titles: tuple[str, ...]
    bands: tuple[Band, ...]
    longest: int
    widest: int

    @property
    def rows(self) -> list[Row]:
        return [row for band in self.bands for row in band.rows]


def scene(
    geometry: Geometry,
    other: Geometry | None = None,
    *,
    titles: Sequence[str] = (),
    lists: Iterable[str] | None = None,
    marks: Iterable[Mark] = (),
    unfolded: int = UNFOLDED,
    most_rows: int = MOST_ROWS,
) -> Scene:
    """All of it, or these lists, by their names in the first. `titles` name the sides, where labels
    of engine and process do not. Regions that are alike, marks included, are one row where there
    are more than `unfolded` rows."""
    called: dict[str, str] = {}
    if other is not None:
        other, called = aligned(geometry, other)
    sides = (geometry,) if other is None else (geometry, other)
    named = [*titles, *(_title(side) for side in sides[len(titles) :])]
    wanted = None if lists is None else set(lists)
    pairs = [p for p in _pairs(sides) if wanted is None or p.list in wanted]
    marked: dict[tuple[int, str, int], list[Mark]] = {}
    for mark in marks:
        name = called.get(mark.list, mark.list) if mark.side else mark.list
        marked.setdefault((mark.side, name, mark.region), []).append(mark)
    builder = _Builder(sides, marked)
    fold = len(pairs) > unfolded
    bands = []
    for name, of in groupby(pairs, key=lambda p: p.list):
        rows = builder.rows(list(of), fold)
        kept, left_out = _middle_left_out(rows, most_rows)
        sizes = tuple(builder.sizes(side, name) for side in range(len(sides)))
        theirs = next((there for there, here in called.items() if here == name), None)
        bands.append(Band(f"{name} | {theirs}" if theirs else name, kept, sizes, left_out))
    drawn = [lane for band in bands for row in band.rows for lane in row.lanes if lane]
    return Scene(
        tuple(named),
        tuple(bands),
        longest=max((lane.region.length for lane in drawn), default=0),
        widest=max((max(_slot(lane)) for lane in drawn), default=0),
    )


def _slot(lane: Lane) -> tuple[int, int]:
    return lane.region.stride, lane.region.transfer_length


def _title(geometry: Geometry) -> str:
    return ", ".join(label for label in (geometry.engine, geometry.process) if label)


def _pairs(sides: Sequence[Geometry]) -> list[Pair]:
    found = pair(*sides) if len(sides) == 2 else [Pair((one,)) for one in numbered(sides[0])]
    order = {name: at for at, name in enumerate(dict.fromkeys(p.list for p in found))}
    return sorted(found, key=lambda p: order[p.list])


def _middle_left_out(
    rows: Sequence[Row], most: int
) -> tuple[tuple[Row, ...], tuple[int, int] | None]:
    if len(rows) <= most:
        return tuple(rows), None
    head = most // 2
    tail = len(rows) - (most - head)
    gone = sum(len(row.first.numbers) for row in rows[head:tail])
    return (*rows[:head], *rows[tail:]), (head, gone)


@dataclass
class _Builder:
    sides: Sequence[Geometry]
    marked: Mapping[tuple[int, str, int], list[Mark]]
    _tables: dict[tuple[int, str], DescriptorTable] = field(default_factory=dict)
    _overlaps: list[dict[str, int]] = field(init=False)

    def __post_init__(self) -> None:
        self._overlaps = [overlaps(side) for side in self.sides]

    def table(self, side: int, name: str) -> DescriptorTable:
        if (side, name) not in self._tables:
            self._tables[side, name] = DescriptorTable(self.sides[side].regions_of(name))
        return self._tables[side, name]

    def sizes(self, side: int, name: str) -> tuple[int, int]:
        table = self.table(side, name)
        return len(table.regions), len(table)

    def rows(self, pairs: Sequence[Pair], fold: bool) -> list[Row]:
        if not fold:
            return [self._row([one]) for one in pairs]
        alike: dict[Hashable, list[Pair]] = {}
        for one in pairs:
            alike.setdefault(self._key(one), []).append(one)
        return [self._row(members) for members in alike.values()]

    def _key(self, one: Pair) -> Hashable:
        return tuple(
            at
            and (
                fields_of(at.region),
                self._overlaps[side].get(at.region.name, 0),
                tuple((mark.slot, mark.kind) for mark in self._marks(side, at)),
            )
            for side, at in enumerate(one.sides)
        )

    def _marks(self, side: int, at: Numbered) -> list[Mark]:
        found = self.marked.get((side, at.region.list, at.number), [])
        return sorted(found, key=lambda mark: mark.slot)

    def _row(self, members: Sequence[Pair]) -> Row:
        lanes = []
        for side in range(len(self.sides)):
            there = [at for one in members if (at := one.sides[side])]
            lanes.append(self._lane(side, there) if there else None)
        return Row(tuple(lanes), members[0].changed)

    def _lane(self, side: int, there: Sequence[Numbered]) -> Lane:
        region = there[0].region
        starts = self.table(side, region.list).starts
        return Lane(
            tuple(there),
            tuple(starts[at.number] for at in there),
            tuple(self._marks(side, there[0])),
            self._overlaps[side].get(region.name, 0),
        )


def label(regions: Sequence[Region]) -> str:
    """What people call these: by layers and roles where they have them, else by name."""
    first, last = regions[0], regions[-1]
    layers = sorted({region.layer for region in regions if region.layer is not None})
    roles = list(dict.fromkeys(region.role for region in regions if region.role is not None))
    if len(regions) == 1:
        return first.name
    if not layers or not roles:
        return f"{first.name}{', ' if len(regions) == 2 else ' ... '}{last.name}"
    more = ", ..." if len(roles) > _MOST_ROLES else ""
    called = ", ".join(roles[:_MOST_ROLES]) + more
    return f"{'layer' if len(layers) == 1 else 'layers'} {spans(layers)} {called}"
