"""Which pages to digest: some slots of each of many regions."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kvlint.runtime_checks.regions import Addresses, Integers
from kvlint.runtime_checks.selection import Selection

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Pages:
    """Pages in B blocks; a block is some slots of one region.

    bases    (B,) bytes, address of the region's slot 0
    strides  (B,) bytes from slot to slot
    lengths  (B,) bytes of each page
    firsts   (B,) where the block's slots begin in `slots`
    counts   (B,) how many they are
    slots    (S,) slot numbers; blocks of one group share theirs
    kind     memory kind as NIXL has it, "DRAM" or "VRAM"
    device   index of the device that holds them all, 0 for host memory
    order    (N,) which page, counted block by block, has each position; None where that is its
             own number
    """

    bases: Addresses
    strides: Integers
    lengths: Integers
    firsts: Integers
    counts: Integers
    slots: Integers
    kind: str
    device: int = 0
    order: Integers | None = None

    def __len__(self) -> int:
        return int(self.counts.sum())

    def blocks(self) -> Iterator[tuple[Addresses, int]]:
        """The (n,) addresses of each block's pages and their length."""
        return map(self.block, range(len(self.lengths)))

    def block(self, block: int) -> tuple[Addresses, int]:
        """Likewise of one block."""
        first = self.firsts[block]
        slots = self.slots[first : first + self.counts[block]]
        addresses = self.bases[block] + (slots * self.strides[block]).astype(np.uint64)
        return addresses, int(self.lengths[block])

    @cached_property
    def addresses(self) -> Addresses:
        """(N,) in the order of positions."""
        found = [addresses for addresses, _ in self.blocks()]
        return self.ordered(np.concatenate(found) if found else np.zeros(0, np.uint64))

    @cached_property
    def page_lengths(self) -> Integers:
        """(N,) bytes of each, likewise."""
        return self.ordered(np.repeat(self.lengths, self.counts))

    def ordered(self, by_block: NDArray[Number]) -> NDArray[Number]:
        """What is there block by block, in the order of positions."""
        return by_block if self.order is None else by_block[self.order]


def pages_at(addresses: Addresses, lengths: Integers, kind: str, device: int = 0) -> Pages:
    """Pages that lie anywhere: (N,) addresses and lengths in bytes."""
    if len(lengths) and bool((lengths == lengths[0]).all()):
        one = np.ones(1, np.int64)
        count = np.array([len(lengths)], np.int64)
        slots = addresses.astype(np.int64)
        return Pages(
            np.zeros(1, np.uint64),
            one,
            lengths[:1].astype(np.int64),
            one - 1,
            count,
            slots,
            kind,
            device,
        )
    kinds, which = np.unique(lengths, return_inverse=True)
    by_length = np.argsort(which, kind="stable")
    counts = np.bincount(which, minlength=len(kinds)).astype(np.int64)
    order = np.empty_like(by_length)
    order[by_length] = np.arange(len(by_length))
    blocks = len(kinds)
    return Pages(
        np.zeros(blocks, np.uint64),
        np.ones(blocks, np.int64),
        kinds.astype(np.int64),
        np.cumsum(counts) - counts,
        counts,
        addresses[by_length].astype(np.int64),
        kind,
        device,
        order if blocks > 1 else None,
    )


def pages_of(selection: Selection) -> Pages | None:
    """What a transfer selects, in its order; None where it lies on several devices."""
    of, regions = selection.of, selection.of.regions
    devices = regions.devices
    if len(devices) and bool((devices != devices[0]).any()):
        return None
    device = int(devices[0]) if len(devices) else 0
    if selection.blocks is None:
        return pages_at(selection.addresses, selection.lengths, of.kind, device)
    chosen, counts = selection.blocks.regions, selection.blocks.counts
    counts = np.asarray(counts, np.int64)
    if selection.loose:
        slots, firsts = selection.slots, np.cumsum(counts) - counts
    else:
        begins: dict[int, int] = {}
        columns, reach = [], 0
        for group, column in selection.columns.items():
            begins[group] = reach
            columns.append(column)
            reach += len(column)
        slots = np.concatenate(columns).astype(np.int64) if columns else np.zeros(0, np.int64)
        groups = selection.grouping.groups[chosen]
        firsts = np.array([begins[group] for group in groups.tolist()], np.int64)
    return Pages(
        regions.addresses[chosen],
        regions.strides[chosen],
        regions.lengths[chosen],
        firsts,
        counts,
        slots,
        of.kind,
        device,
    )
