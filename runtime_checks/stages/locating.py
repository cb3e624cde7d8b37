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
    found: dict[tuple[int, bytes], list[tuple[int, Integers, Integers]]] = {}
    for number, memory in enumerate(memories):
        whole = _whole_blocks(pages, memory)
        for block in np.flatnonzero(pages.counts).tolist():
            here = places[begins[block] : begins[block] + pages.counts[block]]
            if (at := whole.get(block)) is not None:
                region, slots, name = at
                found.setdefault((number, name), []).append((region, slots, here))
                continue
            addresses, length = pages.block(block)
            for region, slots, there in _in_regions(addresses, length, memory):
                key = number, slots.tobytes()
                found.setdefault(key, []).append((region, slots, here[there]))
    for (number, _), parts in found.items():
        memory, slots = memories[number], parts[0][1]
        positions = np.full((len(memory.regions), len(slots)), -1, np.int64)
        for region, _, there in parts:
            positions[region] = there
        yield Located(memory, slots, positions)


def _whole_blocks(pages: Pages, memory: Memory) -> dict[int, tuple[int, Integers, bytes]]:
    """By number of a block that one region holds as a whole, cut as the region is: the region, the
    slots, and the slots as bytes. Most blocks of most transfers are such, and there are many."""
    order = memory.in_order
    if order is None or not len(order) or not len(pages.bases):
        return {}
    spans, which = np.unique(
        np.stack((pages.firsts, pages.counts), axis=1), axis=0, return_inverse=True
    )
    runs = [pages.slots[first : first + count] for first, count in spans.tolist()]
    least = np.array([run.min() if len(run) else 0 for run in runs], np.int64)[which.ravel()]
    most = np.array([run.max() if len(run) else -1 for run in runs], np.int64)[which.ravel()]
    bases = pages.bases.astype(np.int64)
    starts = memory.bases.astype(np.int64)[order]
    near = np.searchsorted(starts, bases + least * pages.strides, side="right") - 1
    at = order[np.maximum(near, 0)]
    stride = memory.strides[at]
    shift, rest = np.divmod(bases - memory.bases.astype(np.int64)[at], stride)
    fits = (near >= 0) & (least <= most) & (rest == 0) & (pages.strides == stride)
    fits &= pages.lengths == memory.lengths[at]
    fits &= most + shift < memory.slots
    made: dict[tuple[int, int], tuple[Integers, bytes]] = {}
    found = {}
    for block in np.flatnonzero(fits).tolist():
        key = int(which.ravel()[block]), int(shift[block])
        if key not in made:
            slots = (runs[key[0]] + shift[block]).astype(np.int64)
            made[key] = slots, slots.tobytes()
        found[block] = (int(at[block]), *made[key])
    return found


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
