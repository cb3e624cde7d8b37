"""A prepared list against the memory that it lies in: nothing past an end, nothing twice."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from kvlint.geometry import Region
from kvlint.runtime_checks.checks import OUT_OF_REGION, UNREGISTERED, Breach
from kvlint.runtime_checks.extents import Extents
from kvlint.runtime_checks.lists import DescriptorList
from kvlint.runtime_checks.regions import ADDRESS_SPACE, Regions, overlaps
from kvlint.runtime_checks.registrations import Registration

# Together they cannot reach the end: every real list is below all three.
_FEW: Final = 1 << 24
_SHORT: Final = 1 << 38
_LOW: Final = 1 << 63


def beyond_address_space(regions: Regions) -> int | None:
    """The first region whose last slot ends past 64 bits, where addresses would wrap."""
    if not len(regions) or (
        regions.descriptors < _FEW
        and int(regions.strides.view(np.uint64).max()) < _SHORT
        and int(regions.addresses.max()) < _LOW
    ):
        return None
    reach = (regions.slots - 1).astype(float) * regions.strides.view(np.uint64).astype(float)
    for number in np.flatnonzero(regions.addresses.astype(float) + reach > ADDRESS_SPACE * 0.99):
        stride = int(regions.strides.view(np.uint64)[number])
        last = int(regions.addresses[number]) + (int(regions.slots[number]) - 1) * stride
        if last + int(regions.lengths[number]) > ADDRESS_SPACE:
            return int(number)
    return None


def wraps(of: DescriptorList, number: int) -> Breach:
    slots = int(of.regions.slots[number])
    stride = int(of.regions.strides.view(np.uint64)[number])
    return Breach(
        OUT_OF_REGION,
        f"{of.called(number)}: {slots} slots {stride} bytes apart end past the 64-bit address "
        "space, and NIXL lets the addresses wrap",
        {"bytes from the first slot to the last": (slots - 1) * stride, "bytes": ADDRESS_SPACE},
        of.place(number, None),
    )


def unheld(of: DescriptorList, extents: Extents, live: Sequence[Registration]) -> Breach | None:
    """The first slot that no registration holds, with the nearest one."""
    for number in np.flatnonzero(of.pieces() < 0).tolist():
        regions = of.regions
        address, device = int(regions.addresses[number]), int(regions.devices[number])
        length, stride = int(regions.lengths[number]), int(regions.strides[number])
        near = extents.nearest(address, device)
        if near is None:
            return Breach(
                UNREGISTERED,
                f"{of.called(number)} lies in no registered memory: {of.owner} has registered "
                f"none of kind {of.kind} on device {device}",
                {"bytes of the region": int(regions.ends[number]) - address, "registered": 0},
                of.place(number, 0),
            )
        piece = live[near]
        if not piece.address <= address < piece.end:
            away = max(piece.address - address, address - piece.end + 1)
            side = "before" if address < piece.address else "after"
            return Breach(
                UNREGISTERED,
                f"{of.called(number)} lies in no registered memory: it begins {away} bytes {side} "
                f"the nearest, {piece}",
                {"first byte": address - piece.address, "bytes registered": piece.length},
                of.place(number, 0),
            )
        fits = max(0, (piece.end - address - length) // stride + 1)
        slots = int(regions.slots[number])
        return _past_end(of, number, fits, slots, str(piece))
    return None


def _past_end(of: DescriptorList, number: int, fits: int, slots: int, whose: str) -> Breach:
    if slots == 1:
        length = int(of.regions.lengths[number])
        return Breach(
            OUT_OF_REGION,
            f"{of.called(number, 0)}, of {length} bytes, reaches past the end of {whose}",
            {"slots given": 1, "slots that fit": fits},
            of.place(number, 0),
        )
    return Breach(
        OUT_OF_REGION,
        f"{of.called(number)} is given {slots} slots, {whose} ends after {fits}: "
        f"{of.called(number, fits)} is past it",
        {f"slots given for region {number}": slots, f"slots of region {number}": fits},
        of.place(number, fits),
    )


def past_declared(of: DescriptorList) -> Breach | None:
    """The first region with more slots than the adapter's region of that memory has."""
    if not of.named:
        return None
    for number, declared in enumerate(of.declared):
        if declared is None:
            continue
        end, over = declared.address + declared.length, int(of.regions.ends[number])
        if over > end:
            first = int(of.regions.addresses[number])
            length, stride = int(of.regions.lengths[number]), int(of.regions.strides[number])
            fits = max(0, (end - first - length) // stride + 1)
            whose = f"declared region {declared.name!r}"
            return _past_end(of, number, fits, int(of.regions.slots[number]), whose)
    return None


def run_into_next(of: DescriptorList) -> Breach | None:
    """The first region whose last slots are the first of another region of the same list.

    Memory that is shared on purpose is left alone: regions that begin at one byte, and such as
    cut it differently, as attention and state layers of a hybrid model do.
    """
    regions = of.regions
    if not regions.overlapping:
        return None
    for a, b in overlaps(regions, regions):
        first, second = (a, b) if regions.addresses[a] < regions.addresses[b] else (b, a)
        gap = int(regions.addresses[second]) - int(regions.addresses[first])
        length, stride = int(regions.lengths[first]), int(regions.strides[first])
        if gap == 0 or gap % stride or stride != int(regions.strides[second]):
            continue
        fits = max(0, (gap - length) // stride + 1)
        slots = int(regions.slots[first])
        if fits < slots:
            whose = f"the memory before {of.called(second)}"
            return _past_end(of, first, fits, slots, whose)
    return None


def declared_for(
    regions: Regions, kind: str, extents: Extents, declared: Sequence[Region]
) -> list[Region | None]:
    """(R,) the adapter's region in which each region begins and whose stride it has; a single
    slot, which may be several in one, has none.

    Declared regions may lie between each other's slots, or share memory that they cut otherwise:
    then it is the one in whose slot 0 the region's lies, the least of these.
    """
    if not declared:
        return [None] * len(regions)
    found: list[Region | None] = []
    for number in range(len(regions)):
        address, device = int(regions.addresses[number]), int(regions.devices[number])
        length, stride = int(regions.lengths[number]), int(regions.strides[number])
        single = int(regions.slots[number]) == 1
        fitting = [
            region
            for region in (declared[at] for at in extents.all_holding(address, device))
            if region.memory_kind == kind and (single or region.stride == stride)
        ]
        found.append(min(fitting, key=lambda r: _strays(r, address, length), default=None))
    return found


def _strays(region: Region, address: int, length: int) -> tuple[bool, int, int]:
    """How far a slot is from being a slot of the region, for comparison."""
    offset = (address - region.address) % region.stride
    return offset + length > region.transfer_length, region.transfer_length, region.length
