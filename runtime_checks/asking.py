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

Asked = Mapping[tuple[str, str | None], Integers]
"""The slots asked for, of the regions of a (list, group), as they are declared."""
Ask = Callable[[], Asked]


def unasked(selection: Selection, asked: Asked) -> Breach | None:
    """The first region that is known by name and gets a slot that was not asked for, or does not
    get one that was."""
    of = selection.of
    if not of.named or not len(selection.indices):
        return None
    keys = _keys(of)
    if selection.columns and _alike(selection, keys, asked):
        return None
    order = np.lexsort((selection.slots, selection.regions))
    regions = selection.regions[order]
    for region, key in enumerate(keys):
        if key is None or key not in asked:
            continue
        low, high = np.searchsorted(regions, [region, region + 1])
        positions = order[low:high]
        found, wanted = selection.slots[positions], np.unique(asked[key])
        strays = np.flatnonzero(~np.isin(found, wanted))
        if len(strays):
            return _stray(selection, int(positions[strays].min()), wanted)
        missing = np.setdiff1d(wanted, found)
        if len(missing):
            return _missing(of, region, int(missing[0]), wanted, found)
    return None


def _keys(of: DescriptorList) -> list[tuple[str, str | None] | None]:
    """(R,) what each region is asked for by; None for what is not known, or known to begin within
    a declared region, where slots count otherwise."""
    return [
        (known.list, known.group)
        if known is not None and int(of.regions.addresses[number]) < known.address + known.stride
        else None
        for number, known in enumerate(of.declared)
    ]


def _alike(selection: Selection, keys: list[tuple[str, str | None] | None], asked: Asked) -> bool:
    """Whether each column is just what was asked for, in this order."""
    groups = selection.grouping.groups
    firsts = np.unique(groups, return_index=True)[1]
    for first in firsts.tolist():
        column, key = selection.columns.get(int(groups[first])), keys[first]
        members = np.flatnonzero(groups == groups[first]).tolist()
        if column is None or key not in asked or any(keys[member] != key for member in members):
            return False
        if not np.array_equal(column, asked[key]):
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
