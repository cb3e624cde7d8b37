"""The two sides of one transfer against each other: counts, lengths, and which region meets which.

Descriptor k of one side is moved to descriptor k of the other, whatever they are.
"""

import numpy as np

from kvlint.runtime_checks.checks import (
    PAIRING,
    UNEQUAL_COUNTS,
    UNEQUAL_LENGTHS,
    Breach,
)
from kvlint.runtime_checks.lists import DescriptorList
from kvlint.runtime_checks.regions import Integers
from kvlint.runtime_checks.selection import Selection


def unequal_counts(local: Selection, remote: Selection) -> Breach | None:
    here, there = len(local.indices), len(remote.indices)
    if here == there:
        return None
    longer = local if here > there else remote
    unpaired = min(here, there)
    return Breach(
        UNEQUAL_COUNTS,
        f"{here} local indices and {there} remote ones: nothing is paired with "
        f"{longer.call(unpaired)} (at {unpaired})",
        {"local indices": here, "remote indices": there},
        longer.place(unpaired),
    )


def mispaired(local: Selection, remote: Selection, *, by_number: bool) -> Breach | None:
    """The first region that meets the wrong one, or one with slots of another length.

    by_number  whether region i of one list belongs to region i of the other, if they have
               equally many, else every region must meet just one. A single region, which may be a
               staging buffer, and runs of slots of which nothing says that they are regions may
               meet any. Where adapters have said what the regions are, each belongs to the one of
               its layer and role in either case.
    """
    if by_number and _alike(local, remote):
        return None
    here, there, firsts = _pairs(local, remote)
    ours, theirs = local.of.regions.lengths[here], remote.of.regions.lengths[there]
    if not np.array_equal(ours, theirs):
        number = int(np.flatnonzero(ours != theirs)[0])
        return _unequal_lengths(local, remote, int(firsts[number]))
    wrong = _wrong(local.of, remote.of, here, there, by_number=by_number)
    return None if wrong is None else _mispaired(local, remote, int(firsts[wrong]))


def _alike(local: Selection, remote: Selection) -> bool:
    """Whether both sides are all regions of one length in the order of their numbers."""
    ours, theirs = local.blocks, remote.blocks
    if ours is None or theirs is None or ours.each is None or ours.each != theirs.each:
        return False
    one, other = local.of, remote.of
    return (
        len(one.regions) == len(other.regions)
        and one.length is not None
        and one.length == other.length
        and not (one.layered and other.layered)
    )


def _unequal_lengths(local: Selection, remote: Selection, at: int) -> Breach:
    (here, _), (there, _) = local.at(at), remote.at(at)
    ours, theirs = int(local.of.regions.lengths[here]), int(remote.of.regions.lengths[there])
    return Breach(
        UNEQUAL_LENGTHS,
        f"{local.call(at)} of {ours} bytes is paired with {remote.call(at)} of {theirs} bytes "
        f"(at {at})",
        {"bytes of the local slot": ours, "bytes of the remote slot": theirs},
        remote.place(at),
    )


def _mispaired(local: Selection, remote: Selection, at: int) -> Breach:
    (here, _), (there, _) = local.at(at), remote.at(at)
    return Breach(
        PAIRING,
        f"{local.call(at)} is paired with {remote.call(at)} (at {at}), not with a slot of "
        f"{_partner(local.of, remote.of, here)}",
        {"local region": here, "remote region": there},
        remote.place(at),
    )


def _partner(ours: DescriptorList, theirs: DescriptorList, here: int) -> str:
    """What the local region belongs to, in words."""
    if ours.layered and theirs.layered:
        for number in range(len(theirs.regions)):
            if _belonging(theirs, number) == _belonging(ours, here):
                return theirs.called(number)
    if len(ours.regions) == len(theirs.regions):
        return theirs.called(here)
    return "the region that it was paired with before"


def _pairs(local: Selection, remote: Selection) -> tuple[Integers, Integers, Integers]:
    """(M,) the local regions, the remote ones that they meet, and where they first do."""
    ours, theirs = local.blocks, remote.blocks
    if ours is not None and theirs is not None and np.array_equal(ours.counts, theirs.counts):
        firsts = np.cumsum(ours.counts) - ours.counts
        return ours.regions, theirs.regions, firsts
    both = np.stack((local.regions, remote.regions), axis=1)
    width = len(remote.of.regions)
    firsts = np.sort(np.unique(both[:, 0] * width + both[:, 1], return_index=True)[1])
    return both[firsts, 0], both[firsts, 1], firsts.astype(np.int64)


def _belonging(of: DescriptorList, region: int) -> tuple[int | None, str | None]:
    known = of.declared[region]
    return (known.layer, known.role) if known else (None, None)


def _wrong(
    ours: DescriptorList,
    theirs: DescriptorList,
    here: Integers,
    there: Integers,
    *,
    by_number: bool,
) -> int | None:
    """The number of the first pair that does not belong together."""
    if len(ours.regions) and ours.layered and theirs.layered:
        for number, (a, b) in enumerate(zip(here.tolist(), there.tolist(), strict=True)):
            if _belonging(ours, a) != _belonging(theirs, b):
                return number
        return None
    if not by_number or 1 in (len(ours.regions), len(theirs.regions)):
        return None
    if len(ours.regions) == len(theirs.regions) and ours.guess.whole and theirs.guess.whole:
        differ = np.flatnonzero(here != there)
        return int(differ[0]) if len(differ) else None
    partner: dict[int, int] = {}
    owner: dict[int, int] = {}
    for number, (a, b) in enumerate(zip(here.tolist(), there.tolist(), strict=True)):
        if ours.groups[a] < 0 or theirs.groups[b] < 0:
            continue
        if partner.setdefault(a, b) != b or owner.setdefault(b, a) != a:
            return number
    return None
