"""Pieces of memory, registrations or declared regions, and lists cut where these begin.

Buffers that happen to lie beside each other look like one in the rows of a list; the memory tells
them apart, and tells what has run past an end.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from kvlint.runtime_checks.regions import ADDRESS_SPACE, Addresses, Integers, Regions


@dataclass(frozen=True, eq=False)
class Extents:
    """Pieces of memory in ascending order of address: registrations, or declared regions.

    They may touch, nest and overlap. `numbers` says which each is, for whoever made them.
    """

    starts: Addresses
    ends: Addresses
    devices: Integers
    numbers: Integers

    @classmethod
    def of(cls, pieces: Sequence[tuple[int, int, int]]) -> "Extents":
        """Of (address, length in bytes, device), numbered from 0."""
        if not pieces:
            return NOTHING
        order = sorted(range(len(pieces)), key=lambda number: pieces[number])
        starts = [pieces[number][0] for number in order]
        ends = [min(pieces[n][0] + pieces[n][1], ADDRESS_SPACE - 1) for n in order]
        return cls(
            np.array(starts, np.uint64),
            np.array(ends, np.uint64),
            np.array([pieces[number][2] for number in order], np.int64),
            np.array(order, np.int64),
        )

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def _furthest(self) -> Addresses:
        return np.maximum.accumulate(self.ends) if len(self) else self.ends

    def holding(self, address: int, end: int, device: int) -> int | None:
        """The number of the smallest piece that holds all bytes from address to end."""
        best: tuple[int, int] | None = None
        for at in self._around(address):
            if int(self.devices[at]) == device and int(self.ends[at]) >= end:
                size = int(self.ends[at]) - int(self.starts[at])
                if best is None or size < best[0]:
                    best = (size, int(self.numbers[at]))
        return best[1] if best else None

    def all_holding(self, address: int, device: int) -> list[int]:
        """The numbers of all pieces that hold a byte."""
        return [
            int(self.numbers[at]) for at in self._around(address) if int(self.devices[at]) == device
        ]

    @cached_property
    def _apart(self) -> bool:
        return bool((self.ends[:-1] <= self.starts[1:]).all())

    def holding_all(self, regions: Regions) -> Integers:
        """(R,) the number of the smallest piece that holds all bytes of each region, or -1."""
        if not len(self) or not len(regions):
            return np.full(len(regions), -1, np.int64)
        if not self._apart:
            each = zip(regions.addresses, regions.ends, regions.devices, strict=True)
            found = [self.holding(int(a), int(e), int(d)) for a, e, d in each]
            return np.array([-1 if number is None else number for number in found], np.int64)
        at = np.searchsorted(self.starts, regions.addresses, side="right") - 1
        held = (at >= 0) & (regions.ends <= self.ends[at]) & (regions.devices == self.devices[at])
        return np.where(held, self.numbers[at], -1)

    def nearest(self, address: int, device: int) -> int | None:
        """The number of the piece that holds the byte, else of the one least far from it."""
        held = self.holding(address, address + 1, device)
        if held is not None:
            return held
        here = np.flatnonzero(self.devices == device)
        if not len(here):
            return None
        far = [
            max(int(self.starts[at]) - address, address - int(self.ends[at]) + 1, 0) for at in here
        ]
        return int(self.numbers[here[int(np.argmin(far))]])

    def _around(self, address: int) -> Iterator[int]:
        """Positions of the pieces that begin at or before the byte and may reach it."""
        at = int(np.searchsorted(self.starts, np.uint64(address), side="right")) - 1
        while at >= 0 and int(self._furthest[at]) > address:
            if int(self.ends[at]) > address:
                yield at
            at -= 1

    def seams(self, regions: Regions, number: int) -> tuple[list[int], bool]:
        """Slots of the region with which a piece begins, if the slots before fill the one before
        it, up to less than a stride; and whether the last piece is filled likewise."""
        address, end = int(regions.addresses[number]), int(regions.ends[number])
        length, stride = int(regions.lengths[number]), int(regions.strides[number])
        device, slot = int(regions.devices[number]), 0
        found: list[int] = []
        holding = [at for at in self._around(address) if int(self.devices[at]) == device]
        while holding:
            if slot:
                found.append(slot)
            nearest = min(int(self.ends[piece]) for piece in holding)
            if nearest >= end:
                return found, nearest < end + stride
            slot = -((address - nearest) // stride)
            if address + (slot - 1) * stride + length > nearest:
                break
            at = address + slot * stride
            holding = [
                piece
                for piece in np.flatnonzero(self.starts == np.uint64(at)).tolist()
                if int(self.devices[piece]) == device and int(self.ends[piece]) > at
            ]
        return found, False


NOTHING: Final = Extents(
    np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.int64)
)


Seams = Callable[[int], tuple[list[int], bool]]
"""Of a region's number what `Extents.seams` says."""


def cut(regions: Regions, extents: Extents, *, listed: bool = True) -> Regions:
    """The same list with a new region wherever a piece of memory begins, for regions that go
    over several pieces: buffers that happen to lie beside each other, or evenly apart, look like
    one, also where the last of them is not listed to its end.

    A piece with which another region of the list begins is that region's: what reaches into it
    has run past its own end, and is left as it is. Unless it fills that piece, and what comes
    next in the list is something else, or a whole piece after several: then the piece is listed
    twice. Where they are not `listed` regions but any runs of slots, no piece is another's.
    """
    if not len(extents) or not len(regions):
        return regions
    inner = np.searchsorted(extents.starts, regions.ends, side="left") - np.searchsorted(
        extents.starts, regions.addresses, side="right"
    )
    several = np.flatnonzero((inner > 0) & (regions.slots > 1)).tolist()
    return cut_at(regions, several, lambda number: extents.seams(regions, number), listed=listed)


def cut_at(
    regions: Regions, numbers: Sequence[int], seams: Seams, *, listed: bool = True
) -> Regions:
    """`cut`, of the regions of these numbers, where `seams` says that pieces begin."""
    if not numbers:
        return regions
    begun: set[tuple[int, int]] = set()
    if listed:
        begun = set(zip(regions.addresses.tolist(), regions.devices.tolist(), strict=True))
    new: list[int] = []
    for number in numbers:
        address, stride = int(regions.addresses[number]), int(regions.strides[number])
        device, start = int(regions.devices[number]), int(regions.starts[number])
        slots, filled = seams(number)
        edges = [address + slot * stride for slot in slots]
        twice = filled and (
            not _follows(edges, regions, number) or (len(edges) > 1 and _whole(seams(number + 1)))
        )
        new += [
            start + slot
            for slot, edge in zip(slots, edges, strict=True)
            if twice or (edge, device) not in begun
        ]
    return started(regions, np.array(new, np.int64))


def _follows(edges: list[int], regions: Regions, number: int) -> bool:
    """Whether the region after that number begins at one of the edges."""
    return number + 1 < len(regions) and int(regions.addresses[number + 1]) in edges


def _whole(seams: tuple[list[int], bool]) -> bool:
    """Whether a region is one piece, and all of it."""
    slots, filled = seams
    return filled and not slots


def started(regions: Regions, new: Integers) -> Regions:
    """The same list with further regions that begin at these indices."""
    if not len(new):
        return regions
    starts = np.union1d(regions.starts, new)
    owners = np.searchsorted(regions.starts, starts[:-1], side="right") - 1
    slots = starts[:-1] - regions.starts[owners]
    return Regions(
        starts,
        regions.addresses_of(owners, slots),
        regions.lengths[owners],
        regions.strides[owners],
        regions.devices[owners],
    )


def joined(regions: Regions, pieces: Integers) -> Regions:
    """The same list with neighbours made one where they go on evenly in one piece of memory.

    pieces  (R,) which piece each region lies in, -1 for none

    Folding cannot see that a single slot and what follows belong together, or that two slots of
    two buffers do not; the memory can. So regions are cut first, then joined.
    """
    single = regions.slots == 1
    if len(regions) < 2 or not single.any():
        return regions
    same = (pieces[1:] == pieces[:-1]) & (pieces[1:] >= 0)
    same &= (regions.lengths[1:] == regions.lengths[:-1]) & (
        regions.devices[1:] == regions.devices[:-1]
    )
    if not (same & (single[1:] | single[:-1])).any():
        return regions
    starts, addresses, lengths, strides, devices = ([] for _ in range(5))  # type: ignore[var-annotated]
    slots: list[int] = []
    for number in range(len(regions)):
        address, count = int(regions.addresses[number]), int(regions.slots[number])
        stride = int(regions.strides[number])
        if number and same[number - 1]:
            last = addresses[-1] + (slots[-1] - 1) * strides[-1]
            step = address - last
            if (
                step > 0
                and (slots[-1] == 1 or step == strides[-1])
                and (count == 1 or step == stride)
            ):
                strides[-1] = step
                slots[-1] += count
                continue
        starts.append(int(regions.starts[number]))
        addresses.append(address)
        slots.append(count)
        strides.append(stride)
        lengths.append(int(regions.lengths[number]))
        devices.append(int(regions.devices[number]))
    return Regions(
        np.array([*starts, regions.descriptors], np.int64),
        np.array(addresses, np.uint64),
        np.array(lengths, np.int64),
        np.array(strides, np.int64),
        np.array(devices, np.int64),
    )
