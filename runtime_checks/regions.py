"""Descriptor rows folded back into the regions they were made of.

NIXL gets a list of (address, length, device) rows and forgets what they were: slot p of region
i. Folding finds that again, so that an index has a name. Pure: arrays in, arrays out.

A region here is what a `kvlint.geometry.Region` is, as the list shows it: equally spaced slots of
one length on one device. Where one ends shows in the rows (another distance, length or device)
and in the memory (another registration, or another declared region, begins there).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvlint.runtime_checks.scratch import scratch

Integers = NDArray[np.int64]
Addresses = NDArray[np.uint64]
Flags = NDArray[np.bool_]

ADDRESS_SPACE: Final = 1 << 64
_NX3: Final = 3
_NX5: Final = 5
_PIECE: Final = 1 << 16
_NO_LENGTH: Final = "a descriptor has no bytes, or more than 2^63"
_MOST: Final = 1 << 40


class RowsError(ValueError):
    """Rows that are no descriptors: one line, why. NIXL refuses them by itself."""


@dataclass(frozen=True, eq=False)
class Regions:
    """The regions of one list, one array entry a region.

    starts     (R + 1,) index of slot 0; the last entry is the length of the list
    addresses  (R,) bytes, of slot 0
    lengths    (R,) bytes moved of each slot
    strides    (R,) bytes from slot to slot; the length, where there is one slot only
    devices    (R,)
    """

    starts: Integers
    addresses: Addresses
    lengths: Integers
    strides: Integers
    devices: Integers

    def __len__(self) -> int:
        return len(self.addresses)

    @property
    def descriptors(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def slots(self) -> Integers:
        """(R,) how many slots each region has."""
        return np.diff(self.starts)

    @cached_property
    def ends(self) -> Addresses:
        """(R,) address of the byte after each region's last."""
        reach = (self.slots - 1) * self.strides + self.lengths
        return self.addresses + reach.astype(np.uint64)

    @cached_property
    def narrow_starts(self) -> NDArray[np.int32] | None:
        """(R,) `starts` without the last in 32 bits, or None where they do not fit."""
        fits = self.descriptors < 1 << 31
        return self.starts[:-1].astype(np.int32) if fits else None

    @cached_property
    def key(self) -> bytes:
        """Equal for lists of the same slots of the same memory."""
        columns = (self.starts, self.addresses, self.lengths, self.strides, self.devices)
        return b"".join(column.tobytes() for column in columns)

    def locate(self, index: int) -> tuple[int, int]:
        """Region number and slot of an index that is in the list."""
        region = int(np.searchsorted(self.starts, index, side="right")) - 1
        return region, index - int(self.starts[region])

    def regions_of(self, indices: Integers) -> Integers:
        """The region number of each index; all are in the list."""
        return np.searchsorted(self.starts, indices, side="right").astype(np.int64) - 1

    def addresses_of(self, regions: Integers, slots: Integers) -> Addresses:
        return self.addresses[regions] + (slots * self.strides[regions]).astype(np.uint64)

    def apart(self) -> "Regions":
        """Each slot as a region of its own."""
        numbers = np.repeat(np.arange(len(self)), self.slots)
        indices = np.arange(self.descriptors)
        lengths = self.lengths[numbers]
        addresses = self.addresses_of(numbers, indices - self.starts[numbers])
        starts = np.arange(self.descriptors + 1)
        return Regions(starts, addresses, lengths, lengths, self.devices[numbers])

    @cached_property
    def overlapping(self) -> bool:
        """Whether any two slots of the list share a byte."""
        if bool((self.strides < self.lengths)[self.slots > 1].any()):
            return True
        if bool((self.ends[:-1] <= self.addresses[1:]).all()):
            return False
        order = np.argsort(self.addresses)
        if bool((self.ends[order][:-1] <= self.addresses[order][1:]).all()):
            return False
        return next(overlaps(self, self), None) is not None

    def taken(self, numbers: Sequence[int] | Integers) -> "Regions":
        """The list of some of the regions only."""
        chosen = np.asarray(numbers, dtype=np.int64)
        starts = np.concatenate(([0], np.cumsum(self.slots[chosen])))
        return Regions(
            starts,
            self.addresses[chosen],
            self.lengths[chosen],
            self.strides[chosen],
            self.devices[chosen],
        )


def fold(rows: NDArray[np.generic]) -> Regions:
    """Regions of an Nx3 array of (address, length, device) or an Nx5 array of (address, length,
    device, stride, count), as NIXL takes them. Raises `RowsError`."""
    if rows.ndim != 2 or rows.shape[1] not in (_NX3, _NX5):
        raise RowsError(f"descriptors of shape {rows.shape} are neither Nx3 nor Nx5")
    if rows.dtype not in (np.dtype(np.uint64), np.dtype(np.int64)):
        raise RowsError(f"descriptors are {rows.dtype}, not uint64 or int64")
    if not len(rows):
        nothing = np.zeros(0, np.int64)
        return Regions(np.zeros(1, np.int64), nothing.view(np.uint64), *[nothing] * 3)
    whole = rows.view(np.int64)
    if rows.shape[1] == _NX3:
        return _fold_rows(*whole.T)
    addresses, lengths, devices, strides, counts = (column.copy() for column in whole.T)
    if bool((lengths < 1).any()):
        raise RowsError(_NO_LENGTH)
    if bool((strides.view(np.uint64) < lengths.view(np.uint64)).any()):
        raise RowsError("slots of a region overlap")
    if bool(((counts < 1) | (counts > _MOST)).any()):
        raise RowsError("a region has no slots, or more than there is memory")
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    return Regions(starts, addresses.view(np.uint64), lengths, strides, devices)


def _fold_rows(addresses: Integers, lengths: Integers, devices: Integers) -> Regions:
    """Lists are long, and most are of one length and one device, with few regions."""
    count = len(addresses)
    steps: Integers = scratch("steps", "q", count - 1)
    inside: Flags = scratch("inside", "?", count - 1)
    one_length, one_device = _look(addresses, lengths, devices, steps, inside)
    if one_length:
        if lengths[0] < 1:
            raise RowsError(_NO_LENGTH)
        if not inside.any():
            np.equal(steps, _usual(steps, int(lengths[0])), out=inside)
    else:
        if bool((lengths < 1).any()):
            raise RowsError(_NO_LENGTH)
        inside[:] = False
        alike = lengths[1:] == lengths[:-1]
        for length in np.unique(lengths):
            of_length = alike & (lengths[1:] == length)
            inside |= of_length & (steps == _usual(steps[of_length], int(length)))
    if not one_device:
        inside &= devices[1:] == devices[:-1]
    ends = _mark_overlapping(inside, steps, lengths, devices)
    firsts = np.concatenate((np.zeros(1, np.int64), ends + 1))
    starts = np.concatenate((firsts, [count]))
    has_step = np.diff(starts) > 1
    strides = lengths[firsts].copy()
    strides[has_step] = steps[firsts[has_step]]
    return Regions(
        starts, addresses[firsts].view(np.uint64), lengths[firsts], strides, devices[firsts]
    )


def _look(
    addresses: Integers, lengths: Integers, devices: Integers, steps: Integers, inside: Flags
) -> tuple[bool, bool]:
    """Fills in the distances from row to row, and which are the first row's length; says whether
    all rows have its length, and its device. In pieces, so that each row is fetched once."""
    equal = scratch("equal", "?", _PIECE)
    one_length = one_device = True
    for first in range(0, len(addresses), _PIECE):
        end = min(first + _PIECE, len(addresses))
        last = min(end, len(steps))
        np.subtract(addresses[first + 1 : last + 1], addresses[first:last], out=steps[first:last])
        np.equal(steps[first:last], lengths[0], out=inside[first:last])
        piece = equal[: end - first]
        one_length = one_length and bool(np.equal(lengths[first:end], lengths[0], out=piece).all())
        one_device = one_device and bool(np.equal(devices[first:end], devices[0], out=piece).all())
    return one_length, one_device


def _outside(inside: Flags) -> Integers:
    return np.flatnonzero(np.logical_not(inside, out=scratch("equal", "?", len(inside))))


def _mark_overlapping(
    inside: Flags, steps: Integers, lengths: Integers, devices: Integers
) -> Integers:
    """Positions where a region ends. Evenly spaced rows that share bytes are one region as well,
    with too small a stride: no two buffers lie like that."""
    rest = _outside(inside)
    shared = (steps[rest] > 0) & (steps[rest] < lengths[rest])
    shared &= (lengths[rest] == lengths[rest + 1]) & (devices[rest] == devices[rest + 1])
    for at in rest[shared].tolist():
        if at == 0 or not inside[at - 1] or steps[at - 1] == steps[at]:
            inside[at] = True
            if at + 1 < len(steps) and steps[at + 1] != steps[at]:
                inside[at + 1] = False
    return _outside(inside) if shared.any() else rest


def _usual(steps: Integers, length: int) -> int:
    """The distance from slot to slot: dense where any two rows are, else the commonest."""
    if bool((steps == length).any()):
        return length
    distances, times = np.unique(steps[steps > 0], return_counts=True)
    return int(distances[times.argmax()]) if len(distances) and times.max() > 1 else length


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


def overlaps(one: Regions, other: Regions) -> Iterator[tuple[int, int]]:
    """Pairs of regions that share a byte: a of `one`, b of `other`; of one list with itself each
    pair once."""
    itself = one is other
    order = np.argsort(other.addresses, kind="stable")
    begins = other.addresses[order]
    furthest = np.maximum.accumulate(other.ends[order]) if len(order) else begins
    for a in range(len(one)):
        address, end = one.addresses[a], one.ends[a]
        at = int(np.searchsorted(begins, end, side="left")) - 1
        while at >= 0 and furthest[at] > address:
            b = int(order[at])
            at -= 1
            if (
                other.ends[b] > address
                and one.devices[a] == other.devices[b]
                and not (itself and b <= a)
                and _share_a_byte(one, a, other, b)
            ):
                yield a, b


def _share_a_byte(one: Regions, a: int, other: Regions, b: int) -> bool:
    """Whether slots of two regions, which begin and end across each other, share a byte: evenly
    spaced slots may pass between each other, as halves of one page do."""
    lengths = int(one.lengths[a]), int(other.lengths[b])
    strides = int(one.strides[a]), int(other.strides[b])
    apart = int(one.addresses[a]) - int(other.addresses[b])
    if strides[0] == strides[1]:
        shift = -apart % strides[0]
        return not lengths[0] <= shift <= strides[0] - lengths[1]
    begins = apart + np.arange(int(one.slots[a])) * strides[0]
    first = np.maximum((begins - lengths[1]) // strides[1] + 1, 0)
    last = np.minimum((begins + lengths[0] - 1) // strides[1], int(other.slots[b]) - 1)
    return bool((first <= last).any())
