"""Pages of a transfer, as pages of pools: which slots of which regions. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kvlint.runtime_checks.digests.pages import Pages
from kvlint.runtime_checks.regions import Addresses, Integers
from kvlint.runtime_checks.stages.memory import Memory
from kvlint.runtime_checks.stages.notes import Owned


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """
    slots      (n,) of the pool
    positions  (R, n) where each page of each region is among those asked about, -1 for regions
               that are not among them
    """

    memory: Memory
    slots: Integers
    positions: Integers

    def owned(self, owners: Iterable[Owned]) -> list[Owned]:
        """Owners by position among the transfer's pages, as owners by position in `slots`."""
        row = int(np.flatnonzero(self.positions[:, 0] >= 0)[0]) if len(self.slots) else 0
        found = []
        for one in owners:
            _, ours, theirs = np.intersect1d(
                self.positions[row], one.positions, return_indices=True
            )
            if len(ours):
                ordinals = one.ordinals[theirs]
                found.append(Owned(one.owner, ours.astype(np.int64), ordinals, one.request))
        return found

    def spread(self, owned: Owned) -> list[Owned]:
        """The other way round, once a region."""
        return [
            Owned(owned.owner, row[owned.positions], owned.ordinals, owned.request)
            for row in self.positions
            if len(row) and row[0] >= 0
        ]


def located(pages: Pages, memories: Sequence[Memory]) -> Iterator[Located]:
    """Blocks that select the same slots of one pool go together; what lies in no pool, or is cut
    otherwise there, is left out."""
    # Of each page, counted block by block, its position.
    places = np.arange(len(pages))
    if pages.order is not None:
        places[pages.order] = np.arange(len(pages))
    begins = np.cumsum(pages.counts) - pages.counts
    blocks = _Blocks.of(pages)
    found: dict[tuple[int, bytes], list[tuple[int, Integers, Integers]]] = {}
    for number, memory in enumerate(memories):
        whole, others = blocks.in_regions_of(memory)
        for block, (region, slots, name) in whole.items():
            here = places[begins[block] : begins[block] + len(slots)]
            found.setdefault((number, name), []).append((region, slots, here))
        for block in others:
            addresses, length = pages.block(block)
            here = places[begins[block] : begins[block] + len(addresses)]
            for region, slots, there in _in_regions(addresses, length, memory):
                key = number, slots.tobytes()
                found.setdefault(key, []).append((region, slots, here[there]))
    for (number, _), parts in found.items():
        memory, slots = memories[number], parts[0][1]
        positions = np.full((len(memory.regions), len(slots)), -1, np.int64)
        for region, _, there in parts:
            positions[region] = there
        yield Located(memory, slots, positions)


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """The B blocks of a transfer; there are many, and most are slots of one region.

    runs         different arrays of slots
    which        (B,) which of them a block has
    first, last  (B,) addresses of its first and its last page
    """

    pages: Pages
    runs: Sequence[Integers]
    which: Integers
    first: Integers
    last: Integers

    @classmethod
    def of(cls, pages: Pages) -> "_Blocks":
        spans: dict[tuple[int, int], int] = {}
        each = zip(pages.firsts.tolist(), pages.counts.tolist(), strict=True)
        which = np.array([spans.setdefault(span, len(spans)) for span in each], np.int64)
        runs = [pages.slots[first : first + count].astype(np.int64) for first, count in spans]
        ends = [(run.min(), run.max()) if len(run) else (0, -1) for run in runs]
        least, most = np.array(ends, np.int64).reshape(-1, 2)[which].T
        bases = pages.bases.astype(np.int64)
        return cls(pages, runs, which, bases + least * pages.strides, bases + most * pages.strides)

    def in_regions_of(
        self, memory: Memory
    ) -> tuple[dict[int, tuple[int, Integers, bytes]], list[int]]:
        """Numbers of blocks. First those that one region holds as a whole, cut as the region is:
        the region, the slots, and these as bytes. Then those of which only looking page by page
        tells; of all others it has nothing."""
        pages, order = self.pages, memory.in_order
        some = pages.counts > 0
        if order is None:
            return {}, np.flatnonzero(some).tolist()
        if not len(order):
            return {}, []
        starts = memory.bases.astype(np.int64)[order]
        near = np.searchsorted(starts, self.first, side="right") - 1
        at = order[np.maximum(near, 0)]
        start, stride = memory.bases.astype(np.int64)[at], memory.strides[at]
        in_one = near == np.searchsorted(starts, self.last, side="right") - 1
        some &= ~in_one | ((near >= 0) & (self.first < memory.ends[at]))
        slot, rest = np.divmod(self.first - start, stride)
        fits = some & (near >= 0) & (rest == 0) & (pages.strides == stride)
        fits &= (pages.lengths == memory.lengths[at]) & (self.last - start < memory.slots * stride)
        made: dict[tuple[int, int], tuple[Integers, bytes]] = {}
        whole = {}
        for block in np.flatnonzero(fits).tolist():
            key = int(self.which[block]), int(slot[block])
            if key not in made:
                run = self.runs[key[0]]
                slots = run - run.min() + slot[block]
                made[key] = slots, slots.tobytes()
            whole[block] = (int(at[block]), *made[key])
        return whole, np.flatnonzero(some & ~fits).tolist()


def _in_regions(
    addresses: Addresses, length: int, memory: Memory
) -> Iterator[tuple[int, Integers, Integers]]:
    """Region, slots, and which of the addresses begin these."""
    if not len(addresses):
        return
    first, last = int(addresses.min()), int(addresses.max())
    for number, region in enumerate(memory.regions):
        if region.transfer_length != length or not (
            first < region.address + region.length and last >= region.address
        ):
            continue
        offsets = addresses.astype(np.int64) - region.address
        slots, rest = np.divmod(offsets, region.stride)
        inside = np.flatnonzero((rest == 0) & (slots >= 0) & (slots < memory.slots))
        if len(inside):
            yield number, slots[inside], inside
