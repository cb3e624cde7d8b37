"""The regions of a descriptor list, as arrays: what an index means, and which slots share bytes.

A region here is what a `kvlint.geometry.Region` is, as the list shows it: equally spaced slots of
one length on one device. Pure: arrays in, arrays out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Addresses = NDArray[np.uint64]
Flags = NDArray[np.bool_]

ADDRESS_SPACE: Final = 1 << 64


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
