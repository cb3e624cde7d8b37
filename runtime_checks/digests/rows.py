"""What a transfer moves, row by row, as either side can say it to the other."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from kvlint.geometry import Region
from kvlint.runtime_checks.digests.identity import identity
from kvlint.runtime_checks.digests.reference import Digests
from kvlint.runtime_checks.lists import DescriptorList
from kvlint.runtime_checks.regions import Addresses, Flags, Integers
from kvlint.runtime_checks.selection import Selection

DECLARED: Final = 1 << 63
"""Set in identities that a declaration tells; what else there is to go by is the order."""


# Above it no program has memory, and ends of regions do not run over.
_HALF: Final = np.uint64(1 << 63)


@dataclass(frozen=True, eq=False)
class Rows:
    """The target's rows of one transfer, in its order.

    addresses   (N,) bytes, in the target's memory
    lengths     (N,) bytes
    identities  (N,) of the initiator's region that each is paired with
    """

    addresses: Addresses
    lengths: Integers
    identities: Digests

    def __len__(self) -> int:
        return len(self.addresses)

    def within(self, most: int) -> bool:
        """Whether these are pages in an address space, and of so many bytes at most together."""
        lengths = self.lengths
        each = bool(((lengths > 0) & (lengths <= most)).all())
        return each and int(lengths.sum()) <= most and bool((self.addresses < _HALF).all())

    def touched(self, other: "Rows") -> Flags:
        """(N,) which of these share a byte with one of the other's."""
        if not len(other):
            return np.zeros(len(self), np.bool_)
        order = np.argsort(other.addresses, kind="stable")
        begins = other.addresses[order]
        ends = np.maximum.accumulate(begins + other.lengths[order].astype(np.uint64))
        last = np.searchsorted(begins, self.addresses + self.lengths.astype(np.uint64)) - 1
        found: Flags = (last >= 0) & (ends[last] > self.addresses)
        return found

    @cached_property
    def regions(self) -> Integers:
        """(N,) number of each row's region, in the order in which they first appear."""
        # Rows of one region mostly stand together, so few are to be sorted.
        begins, counts = self._runs
        _, firsts, which = np.unique(
            self.identities[begins], return_index=True, return_inverse=True
        )
        numbers = np.empty(len(firsts), np.int64)
        numbers[np.argsort(firsts)] = np.arange(len(firsts))
        return np.repeat(numbers[which], counts)

    @cached_property
    def ordinals(self) -> Integers:
        """(N,) which page of its region each row is, from 0."""
        begins, counts = self._runs
        if len(begins) and len(begins) == int(self.regions.max()) + 1:
            return np.arange(len(self)) - np.repeat(begins, counts)
        return counted(self.regions)

    @cached_property
    def _runs(self) -> tuple[Integers, Integers]:
        """Where rows of one region begin that stand together, and how many they are."""
        other = np.flatnonzero(self.identities[1:] != self.identities[:-1]) + 1
        begins = np.concatenate(([0], other)) if len(self) else other
        return begins, np.diff(np.append(begins, len(self)))


def rows_of(initiator: Selection, target: Selection) -> Rows:
    """What the pairs of one transfer are."""
    return Rows(target.addresses, target.lengths, _identities(initiator.of)[initiator.regions])


def identity_of(region: Region | None, number: int, length: int) -> int:
    """Of a region by its layer and role, where they are declared, else by its number in its list.

    length  bytes moved of each slot
    """
    if region is None or region.layer is None or region.role is None:
        return identity("", number, "", "", length) & ~DECLARED
    said = identity(region.list, region.layer, region.role, region.dtype or "", length)
    return said | DECLARED


_IDENTITIES: Final[WeakKeyDictionary[DescriptorList, Digests]] = WeakKeyDictionary()


def _identities(of: DescriptorList) -> Digests:
    """(R,) of the regions of a list; asked for with each transfer."""
    known = _IDENTITIES.get(of)
    if known is None:
        lengths = of.regions.lengths.tolist()
        said = [
            identity_of(region, number, length)
            for number, (region, length) in enumerate(zip(of.declared, lengths, strict=True))
        ]
        known = _IDENTITIES[of] = np.array(said, np.uint64)
    return known


def counted(regions: Integers) -> Integers:
    """(N,) how many rows of the same region stand before each."""
    order = np.argsort(regions, kind="stable")
    sorted_ = regions[order]
    begins = np.flatnonzero(np.r_[True, sorted_[1:] != sorted_[:-1]]) if len(order) else order
    counts = np.diff(np.r_[begins, len(order)])
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order)) - np.repeat(begins, counts)
    return found
