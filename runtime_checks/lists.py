"""A prepared descriptor list, as the checks see it: regions with names and groups."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kvlint.geometry import Region
from kvlint.runtime_checks.checks import Breach, Place, Side
from kvlint.runtime_checks.known import NOTHING, Known
from kvlint.runtime_checks.regions import Integers, Regions


@dataclass(frozen=True, eq=False)
class Blocks:
    """Indices written region by region: (B,) which region, and how many of its slots.

    each  that number, if these are all regions of a list in order, with equally many slots
    """

    regions: Integers
    counts: Integers
    each: int | None = None


@dataclass(frozen=True, eq=False)
class Grouping:
    """Which regions of a list are selected by one set of slots.

    groups  (R,) number of each region's group, -1 for none
    counts  (R,) slots of each region
    """

    groups: Integers
    counts: Integers

    def members(self, group: int) -> Integers:
        """Numbers of the regions of a group."""
        return np.flatnonzero(self.groups == group)

    @cached_property
    def whole(self) -> bool:
        """Whether every region is in a group."""
        return bool((self.groups >= 0).all())

    @cached_property
    def stretches(self) -> list[int]:
        """(R,) number of the first region after each that no longer continues its group."""
        groups = self.groups.tolist()
        ends = list(range(1, len(groups) + 1))
        for number in range(len(groups) - 2, -1, -1):
            if groups[number] >= 0 and groups[number] == groups[number + 1]:
                ends[number] = ends[number + 1]
        return ends

    @cached_property
    def _followers(self) -> list[Integers]:
        found: list[Integers] = []
        for number, group in enumerate(self.groups.tolist()):
            members = self.members(group) if group >= 0 else np.array([number])
            found.append(members[members >= number])
        return found

    def followers(self, region: int) -> Integers:
        """The region and those of its group after it."""
        return self._followers[region]

    @cached_property
    def even(self) -> list[int | None]:
        """(R,) slots of each region of the stretch that begins here, None where they differ."""
        found: list[int | None] = []
        for number, end in enumerate(self.stretches):
            one = int(self.counts[number])
            found.append(one if bool((self.counts[number:end] == one).all()) else None)
        return found

    def fewest(self, first: int, end: int) -> int:
        """The least slot count of the regions from first to before end."""
        if first == 0 and end == len(self.counts):
            return self._fewest_of_all
        return int(self.counts[first:end].min())

    @cached_property
    def _fewest_of_all(self) -> int:
        return int(self.counts.min())


@dataclass(frozen=True, eq=False)
class DescriptorList:
    """What one `prep_xfer_dlist`, or one side of an `initialize_xfer`, was given.

    number    counts the lists of a process, for people
    side      whose memory it is, seen from the agent that moves the bytes
    owner     name of the agent whose memory it is
    kind      memory kind as NIXL has it: "DRAM", "VRAM", "FILE", ...
    regions   the rows, folded
    declared  (R,) the adapter's region for each, None where there is none
    pieces    (R,) which registration holds each region, -1 where none is known; asked for once,
              since for a peer it takes a question to NIXL per region
    breaches  what was found while preparing
    known     all regions that the adapter has declared of this memory
    shown     the groups of the last right transfer that had others than were expected
    """

    number: int
    side: Side
    owner: str
    kind: str
    regions: Regions
    declared: Sequence[Region | None]
    pieces: Callable[[], Integers]
    breaches: list[Breach] = field(default_factory=list)
    known: Known = NOTHING
    shown: "list[Grouping]" = field(default_factory=list)

    @cached_property
    def groups(self) -> Integers:
        """(R,) the group of each region: regions of one group are selected by one set of slots.

        As the adapter declared it; else regions of equally many slots are one group, provided
        that each is all that the list has of its registration. Where several lie in one
        registration nothing says that they are regions at all: -1, as for single slots, and for
        files and objects, which are no parts of one page.
        """
        keys: dict[object, int] = {}
        in_memory = self.kind in ("DRAM", "VRAM")
        _, inverse, times = np.unique(self.pieces(), return_inverse=True, return_counts=True)
        alone = (times[inverse] == 1) & (self.pieces() >= 0)
        numbers = np.full(len(self.regions), -1, np.int64)
        for number, declared in enumerate(self.declared):
            slots = int(self.regions.slots[number])
            key: object = None
            if declared is not None:
                key = (declared.list, declared.group)
            elif in_memory and alone[number] and slots > 1:
                key = slots
            if key is not None:
                numbers[number] = keys.setdefault(key, len(keys))
        return numbers

    @cached_property
    def guess(self) -> "Grouping":
        return Grouping(self.groups, self.regions.slots)

    @property
    def grouping(self) -> "Grouping":
        """The groups that right transfers have shown, if any has, else `groups`."""
        return self.shown[-1] if self.shown else self.guess

    @cached_property
    def comparable(self) -> bool:
        """Whether each region has another one in its group, which must get the same slots."""
        return bool((np.unique(self.groups, return_counts=True)[1] > 1).all()) and self.guess.whole

    def shows(self, groups: Integers) -> None:
        """A right transfer selects by these groups."""
        self.shown[:] = [Grouping(groups, self.regions.slots)]

    def in_order(self, each: int) -> Blocks:
        """Equally many slots of every region, region after region."""
        return Blocks(self._numbers, np.full(len(self.regions), each), each)

    @cached_property
    def length(self) -> int | None:
        """Bytes moved of each slot, None where regions differ."""
        lengths = self.regions.lengths
        same = len(lengths) > 0 and bool((lengths == lengths[0]).all())
        return int(lengths[0]) if same else None

    @cached_property
    def most(self) -> int:
        """The greatest slot count of any region."""
        return int(self.regions.slots.max(initial=0))

    @cached_property
    def _numbers(self) -> Integers:
        return np.arange(len(self.regions))

    @cached_property
    def named(self) -> bool:
        """Whether an adapter has said anything about any region."""
        return any(known is not None for known in self.declared)

    @cached_property
    def layered(self) -> bool:
        """Whether an adapter has said the layer of each region."""
        return all(known is not None and known.layer is not None for known in self.declared)

    @cached_property
    def keys(self) -> list[tuple[str, str | None] | None]:
        """(R,) list and group of each region, as an adapter has declared it; None for others, and
        for what begins within a declared region, where slots count otherwise."""
        addresses = [int(address) for address in self.regions.addresses]
        return [
            (known.list, known.group)
            if known is not None and address < known.address + known.stride
            else None
            for address, known in zip(addresses, self.declared, strict=True)
        ]

    @cached_property
    def bounds(self) -> list[int]:
        """`regions.starts`, for bisection one index at a time."""
        return [int(start) for start in self.regions.starts]

    def place(self, region: int, slot: int | None) -> Place:
        """The slot with its names; the byte is counted from the region's first, as declared or
        as the list has it."""
        declared = self.declared[region]
        byte = index = None
        if slot is not None:
            byte = slot * int(self.regions.strides[region])
            index = int(self.regions.starts[region]) + slot
            if declared is not None:
                offset = int(self.regions.addresses[region]) - declared.address
                slot, byte = slot + offset // declared.stride, byte + offset
        name = declared.name if declared else None
        layer = declared.layer if declared else None
        return Place(self.side, region, name, layer, slot, byte, self.number, index)

    def called(self, region: int, slot: int | None = None) -> str:
        """The same in words: "remote region 3 'layer 1 key' (layer 1) slot 7 (byte 1792)"."""
        return in_words(self.place(region, slot))


def in_words(place: Place) -> str:
    words = f"{place.side} region {place.region}"
    if place.name is not None:
        words += f" {place.name!r}"
    if place.layer is not None:
        words += f" (layer {place.layer})"
    if place.slot is not None:
        words += f" slot {place.slot}"
    if place.byte is not None:
        words += f" (byte {place.byte})"
    return words
