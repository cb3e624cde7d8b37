"""The indices of one side of a transfer, read against the list they select from.

Engines write them region by region: the slots of region 0, the same slots of region 1, and so
on. That every region of a group got the same slots is then one comparison of the whole array,
exact and without a loop; only what is not written so, or is wrong, is looked at index by index.
"""

import operator
from bisect import bisect_right
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kvlint.runtime_checks.checks import INDEX_DTYPE, INDEX_RANGE, INDEX_WIDTH, Breach, Place
from kvlint.runtime_checks.lists import Blocks, DescriptorList, Grouping
from kvlint.runtime_checks.regions import Addresses, Integers
from kvlint.runtime_checks.scratch import scratch

Indices = NDArray[np.int32] | NDArray[np.int64]

_TAKEN = 1 << 32
_SOME = 4096


@dataclass(frozen=True, eq=False)
class Selection:
    """Which slots of which regions are selected, in order.

    columns   slots of each group (by its number) where every region of it has just these, in
              this order; empty where they were not written region by region
    blocks    that order, or None
    grouping  what the numbers of groups are of
    """

    of: DescriptorList
    indices: Indices
    columns: dict[int, Indices]
    blocks: Blocks | None
    grouping: Grouping

    @property
    def loose(self) -> bool:
        """Whether some of what is selected is in no column."""
        if not self.columns:
            return True
        if self.blocks is None or self.grouping.whole:
            return False
        return bool((self.grouping.groups[self.blocks.regions] < 0).any())

    @cached_property
    def regions(self) -> Integers:
        """(N,) region number of each index."""
        if self.blocks is not None:
            return np.repeat(self.blocks.regions, self.blocks.counts)
        return self.of.regions.regions_of(self.indices.astype(np.int64))

    @cached_property
    def slots(self) -> Integers:
        """(N,) slot of each index in its region."""
        slots: Integers = self.indices.astype(np.int64) - self.of.regions.starts[self.regions]
        return slots

    @property
    def addresses(self) -> Addresses:
        """(N,) where each selected slot begins."""
        return self.of.regions.addresses_of(self.regions, self.slots)

    @property
    def lengths(self) -> Integers:
        """(N,) bytes moved of each."""
        return self.of.regions.lengths[self.regions]

    @property
    def devices(self) -> Integers:
        return self.of.regions.devices[self.regions]

    def at(self, position: int) -> tuple[int, int]:
        """Region and slot of the index at a position."""
        return self.of.regions.locate(int(self.indices[position]))

    def call(self, position: int) -> str:
        """The same in words."""
        return self.of.called(*self.at(position))

    def place(self, position: int) -> Place:
        return self.of.place(*self.at(position))


def select(of: DescriptorList, indices: object) -> Selection | Breach | None:
    """Read the indices as NIXL would. None where they are nothing that NIXL takes either."""
    given = _as_array(indices)
    if given is None or given.ndim != 1:
        return None
    if given.dtype.kind not in "iu":
        return _not_integers(of, given)
    narrow = given.dtype == np.int32 and of.regions.narrow_starts is not None
    if not narrow and given.dtype.kind == "u" and given.dtype.itemsize == 8:
        over = np.flatnonzero(given > np.uint64(np.iinfo(np.int64).max))
        if len(over):
            return _not_taken(of, int(given[over[0]]), int(over[0]))
    whole: Indices
    whole = given.astype(np.int32, copy=False) if narrow else given.astype(np.int64, copy=False)
    read = _by_region(of, whole) or _by_slot(of, whole)
    if read is not None:
        return read
    if len(whole) and not (whole.min() >= 0 and whole.max() < of.regions.descriptors):
        wrong = np.flatnonzero((whole < 0) | (whole >= of.regions.descriptors))
        return _not_taken(of, int(whole[wrong[0]]), int(wrong[0]))
    return Selection(of, whole, {}, None, of.guess)


def everything(of: DescriptorList) -> Selection:
    """All that the list has, in its order, and no claim that it has columns."""
    return Selection(of, np.arange(of.regions.descriptors), {}, None, of.guess)


def _as_array(indices: object) -> NDArray[np.generic] | None:
    """As NIXL reads them: an array, or anything that holds whole numbers, each below 2^31."""
    if isinstance(indices, np.ndarray):
        return _as_array(indices.tolist()) if indices.dtype.kind == "O" else indices
    if isinstance(indices, (str, bytes)) or not isinstance(indices, (Sequence, Set)):
        return None
    whole = list(indices)
    with suppress(TypeError, OverflowError):
        if not all(map(_is_whole, whole)):
            # Arrays and tensors of no dimension, say.
            whole = list(map(operator.index, whole))
        return np.array(whole, np.int64)
    return None


def _is_whole(index: object) -> bool:
    return isinstance(index, (int, np.integer))


def _not_integers(of: DescriptorList, given: NDArray[np.generic]) -> Breach | None:
    if given.dtype.kind not in "fcb":
        # Python integers beyond 64 bits, text: NIXL cannot cast them either.
        return None
    position, taken = _changed_by_cast(given)
    place, what = None, "there are none"
    if position is not None:
        what = f"{given[position].item()} (at {position}) is taken as {taken}"
        if 0 <= taken < of.regions.descriptors:
            hit = of.regions.locate(taken)
            place, what = of.place(*hit), f"{what}, {of.called(*hit)}"
    return Breach(
        INDEX_DTYPE,
        f"{of.side} indices are {given.dtype}, NIXL casts them to uint32: {what}",
        {"dtype given": str(given.dtype), "dtype taken": "uint32"},
        place,
    )


def _changed_by_cast(given: NDArray[np.generic]) -> tuple[int | None, int]:
    """The first position whose value is not kept, else the first, and what is taken there."""
    if not len(given):
        return None, 0
    with np.errstate(invalid="ignore"):
        whole = given.real.astype(np.int64)
        changed = np.flatnonzero(whole != given)
    position = int(changed[0]) if len(changed) else 0
    return position, int(whole[position])


def _not_taken(of: DescriptorList, index: int, position: int) -> Breach:
    descriptors, taken = of.regions.descriptors, index % _TAKEN
    if taken != index and taken < descriptors:
        hit = of.regions.locate(taken)
        return Breach(
            INDEX_WIDTH,
            f"{of.side} index {index} (at {position}) does not fit 32 bits: NIXL takes {taken}, "
            f"{of.called(*hit)}",
            {"index given": index, "index taken": taken},
            of.place(*hit),
        )
    last = len(of.regions) - 1
    beyond = index - of.bounds[last] if last >= 0 and index >= descriptors else None
    meant = ""
    if beyond is not None:
        meant = f"; it would be {of.called(last, beyond)}, of {of.regions.slots[last]} slots"
    return Breach(
        INDEX_RANGE,
        f"{of.side} index {index} (at {position}) is not in the list of {descriptors} "
        f"descriptors{meant}",
        {"index": index, "descriptors": descriptors},
        of.place(last, beyond) if beyond is not None else None,
    )


def _by_region(of: DescriptorList, indices: Indices) -> Selection | None:
    """The selection, if it is written region by region and each group's regions agree."""
    bounds, grouping, count = of.bounds, of.grouping, len(indices)
    columns: dict[int, Indices] = {}
    regions: list[int] = []
    counts: list[int] = []
    at = 0
    while at < count:
        first = int(indices[at])
        if not 0 <= first < bounds[-1]:
            return None
        region = bisect_right(bounds, first) - 1
        group = int(grouping.groups[region])
        slots = columns.get(group)
        is_new = slots is None
        if slots is None:
            slots = _first_column(of, indices, at, region)
            if slots is None:
                return None
        each, left = len(slots), count - at
        together = min(grouping.stretches[region] - region, left // each)
        if not together:
            return None
        chosen: Sequence[int] = range(region, region + together)
        fewest = grouping.fewest(region, region + together)
        if together == 1 and left > each:
            # Perhaps group by group, where the regions of a group do not lie side by side.
            members = grouping.followers(region)
            if len(members) > 1 and int(indices[at + each]) in range(*_bounds(of, members[1])):
                together = min(len(members), left // each)
                chosen = members[:together].tolist()
                fewest = int(grouping.counts[chosen].min())
        if _most(slots) >= fewest:
            return None
        block = indices[at : at + together * each]
        if not _repeats(of, block, chosen, slots, is_new=is_new):
            return None
        if group >= 0:
            columns[group] = slots
        if together == len(of.regions):
            if together * each != count:
                return None
            return Selection(of, indices, columns, of.in_order(each), grouping)
        regions += chosen
        counts += [each] * together
        at += together * each
    if not _each_once(grouping, regions):
        return None
    blocks = Blocks(np.array(regions, np.int64), np.array(counts, np.int64))
    return Selection(of, indices, columns, blocks, grouping)


def _bounds(of: DescriptorList, region: int) -> tuple[int, int]:
    return of.bounds[region], of.bounds[region + 1]


def _most(slots: Indices) -> int:
    """The greatest slot; more than any list has where one is negative."""
    return int(slots.view(np.uint32 if slots.itemsize == 4 else np.uint64).max())


def _repeats(
    of: DescriptorList, block: Indices, regions: Sequence[int], slots: Indices, *, is_new: bool
) -> bool:
    """Whether a block of indices selects these slots of each of the regions in turn.

    is_new  whether the slots are those of the first of them
    """
    each, together, first = len(slots), len(regions), regions[0]
    apart = of.grouping.even[first] if isinstance(regions, range) else None
    if apart is None and together > 1:
        starts = of.regions.starts[np.asarray(regions), None]
        return np.array_equal((starts + slots).ravel(), block)
    # Regions of equally many slots: every index is as far from its like in the region before, so
    # that all follow, one by one, from the first region's. int32 that wraps wraps back.
    if not is_new and not np.array_equal(block[:each] - of.bounds[first], slots):
        return False
    return together == 1 or apart is None or _all_apart(block, each, apart)


def _all_apart(block: Indices, each: int, apart: int) -> bool:
    """Whether every index is `apart` more than the one `each` places before it."""
    count = len(block) - each
    distances = scratch("distances", block.dtype.char, count)
    right = scratch("right", "?", count)
    np.subtract(block[each:], block[:count], out=distances)
    return bool(np.equal(distances, apart, out=right).all())


def _first_column(of: DescriptorList, indices: Indices, at: int, region: int) -> Indices | None:
    """The slots of the first region of a group: those up to where another region begins."""
    low, high = of.bounds[region], of.bounds[region + 1]
    left = len(indices) - at
    if of.grouping.stretches[region] - region == len(of.regions) and left % len(of.regions) == 0:
        each = left // len(of.regions)
    else:
        each = 0
        while each < left:
            some = indices[at + each : at + each + _SOME]
            outside = (some < low) | (some >= high)
            if outside.any():
                each += int(outside.argmax())
                break
            each += len(some)
    slots = indices[at : at + each] - low
    return slots if each else None


def _each_once(grouping: Grouping, regions: list[int]) -> bool:
    """Whether no region stands twice and no group is there in part."""
    if len(set(regions)) != len(regions):
        return False
    groups = grouping.groups
    chosen = groups[regions]
    return all(
        np.count_nonzero(groups == group) == np.count_nonzero(chosen == group)
        for group in set(chosen.tolist()) - {-1}
    )


def _by_slot(of: DescriptorList, indices: Indices) -> Selection | None:
    """The selection, if it is written slot by slot: slot a of every region, then slot b."""
    count, grouping = len(of.regions), of.grouping
    if not count or grouping.stretches[0] != count or len(indices) % count:
        return None
    starts = of.regions.starts[:-1]
    slots = indices[::count] - of.bounds[0]
    if not len(slots) or slots.min() < 0 or slots.max() >= grouping.fewest(0, count):
        return None
    if not np.array_equal((slots[:, None] + starts).ravel(), indices):
        return None
    columns = {int(grouping.groups[0]): slots}
    return Selection(of, indices, columns, None, grouping)
