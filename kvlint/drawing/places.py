"""An index set: which slots it means, and where its indices go in the list that was made.

A transfer selects the same slots of every region of one list. It numbers them (`stride`: the index
of region i, slot p is i * S + p, or the cumulative start + p) and a list was made, with so many
descriptors for each region (`counts`). Where both agree on every region, each index goes where it
was meant to.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import Final, Literal

from kvlint.drawing.scene import Kind, Mark
from kvlint.drawing.words import count, fit, number
from kvlint.geometry import Geometry, Region

# How many slots one takes a region to have: its own, the first one's, the least of all, or so many.
Way = Literal["own", "first", "least"] | int
_NAME: Final = 48
_MOST_UNDER: Final = 3


@dataclass(frozen=True, slots=True)
class IndexSet:
    """slots   of every region
    stride  the index of region i, slot p: "own" is the sum of the own slots before region i, plus
            p; all others are i * S + p
    counts  descriptors that the list has for each region; where they are more than the region's
            slots, they go on beyond it
    group   means the slots of these regions only; None: of all
    """

    slots: tuple[int, ...]
    stride: Way = "first"
    counts: Way = "own"
    group: str | None = None


class Fate(StrEnum):
    """Where an index goes: to the slot meant, to another, to bytes that are no slot of the region
    whose descriptor it is, or to no descriptor at all."""

    RIGHT = "right"
    WRONG = "wrong"
    PAST = "past the end"
    NONE = "no descriptor"


@dataclass(frozen=True, slots=True)
class Under:
    """What lies at bytes that a descriptor reaches past its region: a region by its number in its
    list, and where its first such byte is, from the start of the region; slot None for a tail."""

    list: str
    region: int
    name: str
    slot: int | None
    byte: int


@dataclass(frozen=True, slots=True)
class Place:
    """One index.

    region, slot  meant; `exists`: whether the region has that slot
    index         that stands for it
    byte          of the slot meant, from the start of its region
    hit           number of the region whose descriptor it is, and, from that region's start, the
                  slot and byte; None for no descriptor
    past          bytes moved that lie beyond the end of the region hit
    under         what lies there, where it is captured
    """

    region: int
    slot: int
    index: int
    byte: int
    exists: bool
    fate: Fate
    hit: tuple[int, int, int] | None = None
    past: int = 0
    under: tuple[Under, ...] = ()


def counts_by(way: Way, regions: Sequence[Region]) -> list[int]:
    """How many slots one takes each region to have."""
    slots = [region.slots for region in regions]
    if way == "own" or not slots:
        return slots
    one = slots[0] if way == "first" else min(slots) if way == "least" else way
    return [one] * len(slots)


def starts_by(way: Way, regions: Sequence[Region]) -> list[int]:
    """What one takes for the number of descriptors before each region, and for all."""
    return list(accumulate(counts_by(way, regions), initial=0))


class List:
    """One list of a geometry, and an index set on it; `meant`: the numbers of the regions whose
    slots it means."""

    def __init__(self, geometry: Geometry, name: str, index_set: IndexSet) -> None:
        self.name, self.index_set = name, index_set
        self.regions = geometry.regions_of(name)
        self.counts = counts_by(index_set.counts, self.regions)
        self.starts = starts_by(index_set.counts, self.regions)
        self.taken = starts_by(index_set.stride, self.regions)
        group = index_set.group
        self.meant = [at for at, r in enumerate(self.regions) if group in (None, r.group)]
        self._memory = _Memory(geometry)

    def __len__(self) -> int:
        """Descriptors."""
        return self.starts[-1]

    def places(self) -> Iterator[Place]:
        """Region by region, in the order of the set's slots."""
        for number_ in self.meant:
            region = self.regions[number_]
            for slot in self.index_set.slots:
                yield self.place(number_, region, slot)

    def place(self, at: int, region: Region, slot: int) -> Place:
        index = self.taken[at] + slot
        byte, exists = slot * region.stride, slot < region.slots
        if index >= len(self):
            return Place(at, slot, index, byte, exists, Fate.NONE)
        hit = bisect_right(self.starts, index) - 1
        there, landed = self.regions[hit], index - self.starts[hit]
        where = (hit, landed, landed * there.stride)
        if landed < there.slots:
            fate = Fate.RIGHT if (hit, landed) == (at, slot) else Fate.WRONG
            return Place(at, slot, index, byte, exists, fate, where)
        start = there.address + where[2]
        end = start + there.transfer_length
        past = end - max(start, there.address + there.length)
        under = tuple(self._memory.under(there, start, end))
        return Place(at, slot, index, byte, exists, Fate.PAST, where, past, under)


def goes(of: List, place: Place) -> str:
    """Where an index goes."""
    if place.hit is None:
        return f"no descriptor: the list has {number(len(of))}"
    hit, slot, byte = place.hit
    where = f"region {hit} slot {number(slot)}, byte {number(byte)}"
    if place.fate is not Fate.PAST:
        return where
    lies = " and ".join(_lies(under) for under in place.under[:_MOST_UNDER])
    return (
        f"{where}, which is none of its slots ({number(of.regions[hit].slots)}): "
        f"{count(place.past, 'byte')} beyond its end, "
        f"{f'in {lies}' if lies else 'in no captured region'}"
    )


def says(of: List, place: Place) -> str:
    """What an index means, and where it goes."""
    index = f"region {place.region} slot {number(place.slot)}: index {number(place.index)}"
    return f"{index} goes {'right' if place.fate is Fate.RIGHT else f'to {goes(of, place)}'}"


def marks(of: List, side: int = 0) -> Iterator[Mark]:
    """Of every place: where it was meant to go, where it goes."""
    for place in of.places():
        words = says(of, place)
        if place.fate is Fate.RIGHT:
            yield Mark(of.name, place.region, place.slot, Kind.RIGHT, words, side)
            continue
        if place.exists:
            yield Mark(of.name, place.region, place.slot, Kind.MEANT, words, side)
        if place.hit is not None:
            hit, slot, _ = place.hit
            yield Mark(of.name, hit, slot, Kind.WRONG, words, side)


def _lies(under: Under) -> str:
    where = "after its last slot" if under.slot is None else f"slot {number(under.slot)}"
    name = fit(under.name, _NAME)
    return f"{under.list} region {under.region} {name!r} {where}, byte {number(under.byte)}"


class _Memory:
    """The regions of a process by address, to be asked what lies at some bytes."""

    def __init__(self, geometry: Geometry) -> None:
        seen: dict[str, int] = {}
        found: dict[tuple[str, int], list[tuple[int, int, Region]]] = {}
        for region in geometry.regions:
            seen[region.list] = at = seen.get(region.list, -1) + 1
            memory = found.setdefault((region.memory_kind, region.device), [])
            memory.append((region.address, at, region))
        self._by_address = {key: sorted(of, key=lambda e: e[0]) for key, of in found.items()}
        # The farthest end of all that begin no later.
        self._reach = {
            key: list(accumulate((a + r.length for a, _, r in of), max))
            for key, of in self._by_address.items()
        }

    def under(self, region: Region, start: int, end: int) -> Iterator[Under]:
        key = (region.memory_kind, region.device)
        entries, reach = self._by_address[key], self._reach[key]
        last = bisect_left(entries, end, key=lambda entry: entry[0]) - 1
        found = []
        for at in range(last, -1, -1):
            if reach[at] <= start:
                break
            address, number_, other = entries[at]
            if other is not region and other.length and address + other.length > start:
                found.append((number_, other, max(start - address, 0)))
        for number_, other, byte in reversed(found):
            slot = byte // other.stride
            inside = slot < other.slots
            yield Under(other.list, number_, other.name, slot if inside else None, byte)
