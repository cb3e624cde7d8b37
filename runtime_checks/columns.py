"""The column check: every region of a group gets the same slots.

A group is a column of one page through all its regions. Where some region gets other slots, the
page's parts do not belong together any more; most often the indices were made with one stride
for all regions, which the values then show.
"""

from collections import Counter

import numpy as np

from kvlint.assumptions import Number, Own, Relation, Starts, breaks_on
from kvlint.geometry import Case
from kvlint.runtime_checks.checks import COLUMN, Breach, Place
from kvlint.runtime_checks.lists import Blocks, DescriptorList, in_words
from kvlint.runtime_checks.regions import Integers
from kvlint.runtime_checks.selection import Selection

CONSTANT_STRIDE = "KV103"


def uneven(selection: Selection, other: Selection | None) -> Breach | None:
    """The first region that does not get what its group gets.

    That regions of equally many slots are one group is a guess. Where the other side keeps some
    of them apart they are several groups, unless both sides were made with one stride. Groups
    that an adapter has declared are no guess.

    other  the other side of the transfer, which shows where one region's indices end and what
           was meant, if it is in order
    """
    if selection.columns or not len(selection.indices):
        return None
    found = _first_uneven(selection, selection.of.groups)
    if found is None:
        return None
    stride = _constant_stride(selection, other)
    if stride is None and other is not None:
        found = _first_uneven(selection, _kept_apart(selection, other))
    return None if found is None else _breach(selection, other, *found, stride)


def uneven_runs(of: DescriptorList) -> Breach | None:
    """The same for what one transfer alone describes: any rows, in regions that an adapter has
    declared. Those of a group that have any pages must have the same."""
    rows = of.regions.apart()
    held = of.known.extents.holding_all(rows)
    for at in np.flatnonzero(held < 0).tolist():
        begin = int(rows.addresses[at])
        if of.known.extents.holding(begin, begin + 1, int(rows.devices[at])) is not None:
            # It goes on from one region into the next: who knows what of.
            return None
    slots: dict[object, dict[int, set[int]]] = {}
    for at in np.flatnonzero(held >= 0).tolist():
        number = int(held[at])
        region = of.known.regions[number]
        begin = int(rows.addresses[at]) - region.address
        pages = range(begin // region.stride, -(-(begin + int(rows.lengths[at])) // region.stride))
        group = slots.setdefault((region.list, region.group), {})
        group.setdefault(number, set()).update(pages)
    for group in slots.values():
        times = Counter(frozenset(found) for found in group.values())
        wanted = times.most_common(1)[0][0]
        for number, found in group.items():
            strays = sorted(found - wanted) or sorted(wanted - found)
            if strays:
                region, slot = of.known.regions[number], strays[0]
                place = Place(
                    of.side, number, region.name, region.layer, slot, slot * region.stride
                )
                what = (
                    "is moved, and not so in the other regions of its group"
                    if slot in found
                    else "is not moved, unlike in the other regions of its group"
                )
                return Breach(
                    COLUMN,
                    f"{in_words(place)} {what}",
                    {"slots of the group": len(wanted), f"of {region.name}": len(found)},
                    place,
                )
    return None


def settle(one: Selection, other: Selection) -> None:
    """Both sides are right. If their regions make other groups than their lists were thought to
    have, the next transfer is read by these at once, not index by index. A group of one region
    proves nothing, so then it is not."""
    for selection, against in ((one, other), (other, one)):
        if not selection.columns and len(selection.indices):
            groups = _kept_apart(selection, against)
            _, times = np.unique(groups[groups >= 0], return_counts=True)
            if len(times) and times.min() > 1:
                selection.of.shows(_with_rest(groups, selection.of.groups))


def as_guessed(one: Selection, other: Selection) -> Selection:
    """The selection, read index by index if it was read by groups that right transfers have
    shown and the other side was not read by the same."""
    if one.grouping is one.of.guess or np.array_equal(one.grouping.groups, other.grouping.groups):
        return one
    return Selection(one.of, one.indices, {}, None, one.of.guess)


def _with_rest(finer: Integers, groups: Integers) -> Integers:
    """What the transfer did not select stays together as before."""
    rest = (finer < 0) & (groups >= 0)
    return np.where(rest, groups + finer.max(initial=-1) + 1, finer)


def _first_uneven(
    selection: Selection, groups: Integers
) -> tuple[Integers, int, Integers, Integers] | None:
    """The regions of its group, its number, the slots wanted of it and the slots that it gets."""
    sets = _sets(selection)
    for group in range(int(groups.max(initial=-1)) + 1):
        members = np.flatnonzero(groups == group)
        wanted = _usual([sets.get(int(member)) for member in members])
        if wanted is None:
            continue
        for member in members.tolist():
            found = sets.get(member, wanted[:0])
            if not np.array_equal(found, wanted):
                return members, member, wanted, found
    return None


def _kept_apart(selection: Selection, other: Selection) -> Integers:
    """(R,) the groups, regions kept apart that meet different slots of the other side. Only if
    each region meets one, else what is where says nothing."""
    of, groups = selection.of, selection.of.groups
    if len(other.of.regions) == 1:
        # A staging buffer: what it holds of which region nobody can tell from here.
        chosen = np.isin(np.arange(len(groups)), selection.regions)
        return np.where(chosen | np.array([d is not None for d in of.declared]), groups, -1)
    here, there = _positions(selection.regions), _positions(other.regions)
    if {part.tobytes() for part in here} != {part.tobytes() for part in there}:
        return groups
    met = {int(selection.regions[part[0]]): other.slots[part].tobytes() for part in here}
    finer = np.full(len(groups), -1, np.int64)
    keys: dict[tuple[int, bytes | None], int] = {}
    for region, group in enumerate(groups.tolist()):
        known = of.declared[region] is not None
        if group >= 0 and (known or region in met):
            key = group, None if known else met[region]
            finer[region] = keys.setdefault(key, len(keys))
    return finer


def _positions(regions: Integers) -> list[Integers]:
    """The positions of each region that stands there, ascending."""
    order = np.argsort(regions, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(regions[order])) + 1)


def _sets(selection: Selection) -> dict[int, Integers]:
    """The slots of each selected region, ascending."""
    order = np.lexsort((selection.slots, selection.regions))
    regions, slots = selection.regions[order], selection.slots[order]
    present, firsts = np.unique(regions, return_index=True)
    parts = np.split(slots, firsts[1:])
    return {int(region): part for region, part in zip(present, parts, strict=True)}


def _usual(found: list[Integers | None]) -> Integers | None:
    """What most regions get, the first of them where several sets are as common; None where
    none gets anything."""
    given = [slots for slots in found if slots is not None]
    if not given:
        return None
    times = Counter(slots.tobytes() for slots in given)
    return max(given, key=lambda slots: times[slots.tobytes()])


def _breach(
    selection: Selection,
    other: Selection | None,
    members: Integers,
    member: int,
    wanted: Integers,
    found: Integers,
    stride: int | None,
) -> Breach:
    of = selection.of
    position = _first_stray(selection, members, wanted)
    if stride is not None:
        return _displaced(selection, _blocks(selection, other), stride, position)
    if position is None:
        lacking = np.setdiff1d(wanted, found)
        slot = int(lacking[0]) if len(lacking) else int(wanted[0])
        return Breach(
            COLUMN,
            f"{of.called(member, slot)} is not selected, its group selects {len(wanted)} slots of "
            f"each region and {len(found)} of this one",
            {"slots selected of the group": len(wanted), f"of region {member}": len(found)},
            of.place(member, slot),
        )
    hit = selection.at(position)
    index = int(selection.indices[position])
    return Breach(
        COLUMN,
        f"{of.side} index {index} (at {position}) is {of.called(*hit)}, a slot that the other "
        f"regions of its group do not get{_meant(selection, other, position)}",
        {"slots selected of the group": len(wanted), f"of region {member}": len(found)},
        of.place(*hit),
    )


def _displaced(selection: Selection, blocks: Blocks, stride: int, stray: int | None) -> Breach:
    """The stray index, or the first one, that one stride for all regions puts elsewhere."""
    of, ends = selection.of, np.cumsum(blocks.counts)
    starts = of.regions.starts[blocks.regions]
    if stray is None:
        block = int(np.flatnonzero(starts != blocks.regions * stride)[0])
        position = int(ends[block] - blocks.counts[block])
    else:
        position, block = stray, int(np.searchsorted(ends, stray, side="right"))
    meant, start = int(blocks.regions[block]), int(starts[block])
    hit, index = selection.at(position), int(selection.indices[position])
    page = index - meant * stride
    return Breach(
        COLUMN,
        f"{of.side} index {index} (at {position}) is {meant} * {stride} + {page} and meant for "
        f"region {meant} slot {page}, but {of.side} region {meant} starts at {start}: it is "
        f"{of.called(*hit)}",
        {f"descriptors before region {meant}": start, f"{meant} * {stride}": meant * stride},
        of.place(*hit),
        CONSTANT_STRIDE,
        f"descriptors before region i = i * {stride}",
        of.place(meant, page),
    )


def _first_stray(selection: Selection, members: Integers, wanted: Integers) -> int | None:
    """The first position whose index is in a region of the group, but in no slot of it that
    the group gets, or once more in one that it gets."""
    mine = np.isin(selection.regions, members)
    stray = mine & ~np.isin(selection.slots, wanted)
    if not stray.any():
        again = np.ones(len(stray), bool)
        again[np.unique(selection.indices, return_index=True)[1]] = False
        stray = mine & again
    at = np.flatnonzero(stray)
    return int(at[0]) if len(at) else None


def _meant(selection: Selection, other: Selection | None, position: int) -> str:
    if other is None or not other.columns or position >= len(other.indices):
        return ""
    return f"; the {other.of.side} side has {other.call(position)} there"


def _blocks(selection: Selection, other: Selection | None) -> Blocks:
    """Where one region's indices end, by the other side if that is in order, else evenly."""
    count = len(selection.of.regions)
    if other is not None and other.blocks is not None and len(other.of.regions) == count:
        return other.blocks
    each = len(selection.indices) // count
    return Blocks(np.arange(count), np.full(count, each))


def _constant_stride(selection: Selection, other: Selection | None) -> int | None:
    """S, if the indices are i * S + p for one S and the list does not have that many slots in
    each region."""
    of, blocks = selection.of, _blocks(selection, other)
    if int(blocks.counts.sum()) != len(selection.indices) or len(blocks.regions) < 2:
        return None
    indices = selection.indices.astype(np.int64)
    parts = np.split(indices, np.cumsum(blocks.counts)[:-1])
    if not all(len(part) for part in parts):
        return None
    steps = _steps(of, parts, blocks)
    if len(steps) != 1:
        return None
    (stride,) = steps
    if stride <= 0:
        return None
    case = Case(len(of.regions), {"slots": tuple(of.regions.slots.tolist())}, {})
    broken = breaks_on(Relation(Starts(Own("slots")), "=", Starts(Number(stride))), case)
    return stride if broken else None


def _steps(of: DescriptorList, parts: list[Integers], blocks: Blocks) -> set[int]:
    """Distances from one region's indices to the next region's, where both select one set."""
    steps: set[int] = set()
    last: dict[int, tuple[int, Integers]] = {}
    for region, part in zip(blocks.regions.tolist(), parts, strict=True):
        before = last.get(int(of.groups[region])) if of.groups[region] >= 0 else None
        if before is not None:
            if len(part) != len(before[1]) or region <= before[0]:
                return set()
            apart = np.unique(part - before[1])
            if len(apart) != 1 or int(apart[0]) % (region - before[0]):
                return set()
            steps.add(int(apart[0]) // (region - before[0]))
        last[int(of.groups[region])] = (region, part)
    return steps
