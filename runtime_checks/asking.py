"""What a transfer selects against what its engine had meant by the indices.

A column through all regions can be the wrong one: where all regions of a group are a constant
off, or the group is one region. Then only the engine knows which slots it asked for.
"""

from collections.abc import Callable, Mapping

import numpy as np

from kvlint.runtime_checks.checks import UNASKED_SLOT, Breach
from kvlint.runtime_checks.lists import DescriptorList
from kvlint.runtime_checks.regions import Integers
from kvlint.runtime_checks.selection import Selection

Asked = Mapping[tuple[str, str | None] | int, Integers]
"""The slots asked for: of the regions of a (list, group), as they are declared, or of one region
of the descriptor list, by its number."""
Ask = Callable[[], Asked]


def unasked(selection: Selection, asked: Asked) -> Breach | None:
    """The first region that gets a slot that was not asked for, or does not get one that was;
    regions of which nobody knows what was asked for are left alone."""
    if not len(selection.indices) or _alike(selection, asked):
        return None
    return _first_stray(selection, _wanted(selection.of, asked))


def all_known(of: DescriptorList, asked: Asked) -> bool:
    """Whether it is known of each region what was asked for."""
    return all(slots is not None for slots in _wanted(of, asked))


def _first_stray(selection: Selection, wanted: list[Integers | None]) -> Breach | None:
    order = np.lexsort((selection.slots, selection.regions))
    regions = selection.regions[order]
    for region, slots in enumerate(wanted):
        if slots is None:
            continue
        low, high = np.searchsorted(regions, [region, region + 1])
        positions = order[low:high]
        found, its = selection.slots[positions], np.unique(slots)
        strays = np.flatnonzero(~np.isin(found, its))
        if len(strays):
            return _stray(selection, int(positions[strays].min()), its)
        missing = np.setdiff1d(its, found)
        if len(missing):
            return _missing(selection.of, region, int(missing[0]), its, found)
    return None


def _wanted(of: DescriptorList, asked: Asked) -> list[Integers | None]:
    """(R,) what was asked for of each region, None for what is not known."""
    return [
        asked[number] if number in asked else asked.get(key) if key is not None else None
        for number, key in enumerate(of.keys)
    ]


def _alike(selection: Selection, asked: Asked) -> bool:
    """Whether each column is just what was asked for, in this order."""
    if not selection.columns:
        return False
    groups = selection.grouping.groups.tolist()
    for group, key in set(zip(groups, selection.of.keys, strict=True)):
        column, slots = selection.columns.get(group), asked.get(key) if key is not None else None
        if column is None or slots is None or not np.array_equal(column, slots):
            return False
    return True


def _stray(selection: Selection, position: int, wanted: Integers) -> Breach:
    index, (_, slot) = int(selection.indices[position]), selection.at(position)
    return Breach(
        UNASKED_SLOT,
        f"{selection.of.side} index {index} (at {position}) is {selection.call(position)}, which "
        f"was not asked for: {_some(wanted)} of it were",
        {"slot selected": slot, "slots asked for": len(wanted)},
        selection.place(position),
    )


def _missing(
    of: DescriptorList, region: int, slot: int, wanted: Integers, found: Integers
) -> Breach:
    return Breach(
        UNASKED_SLOT,
        f"{of.called(region, slot)} was asked for and is not selected: {len(found)} slots of it "
        f"are, {len(wanted)} were asked for",
        {"slots selected": len(found), "slots asked for": len(wanted)},
        of.place(region, slot),
    )


def _some(wanted: Integers) -> str:
    """The slots in words, the first few."""
    few = ", ".join(map(str, wanted[:6].tolist()))
    return f"slots {few}{', ...' if len(wanted) > 6 else ''}" if len(wanted) else "no slots"
