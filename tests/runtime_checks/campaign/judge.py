"""What the companion said about one call, against what it should have."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kvlint.runtime_checks import arming
from tests.runtime_checks.campaign.calls import Call, Run, Side
from tests.runtime_checks.campaign.memory import Memory
from tests.runtime_checks.campaign.oracle import hits, listed, taken

Record = Mapping[str, Any]
Place = tuple[str, int, int | None]


class Ear:
    """Records since the last time it was asked. Nothing at all where the companion is off."""

    @property
    def hears(self) -> bool:
        return arming._armed is not None

    def said(self) -> list[Record]:
        companion = arming._armed
        if companion is None:
            return []
        records = list(companion.policy.violations)
        companion.policy.violations.clear()
        return records


def wrong_places(right: Call, faulty: Call, mine: Memory, theirs: Memory) -> frozenset[Place]:
    """Where the faulty call goes otherwise than the right one: as (side, region, slot) the slots
    meant and the slots hit, these both as memory has them and as the list counts them.

    What is seen is that two things do not agree, and not always which of them is wrong. So at
    such a position both sides' slots are named, and where half of a group or more is wrong, the
    slots of the rest.
    """
    memories = {"local": mine, "remote": theirs}
    differ: dict[str, set[int]] = {}
    for side in memories:
        both = zip(_addresses(right.side(side)), _addresses(faulty.side(side)), strict=True)
        differ[side] = {at for at, (was, is_) in enumerate(both) if was != is_}
    found: set[Place] = set()
    for side, memory in memories.items():
        one = faulty.side(side)
        wrong = differ["local"] | differ["remote"] | _rest(memory, one, differ[side])
        for places in (one.meant, hits(one, memory), listed(one), _owned(one, memory)):
            found |= {(side, *place) for at in wrong if (place := places[at]) is not None}
    for side, memory in memories.items():
        found |= _lacking(side, found, memory, faulty.side(side))
    return frozenset(found)


def _together(memory: Memory, runs: Sequence[Run]) -> list[list[int]]:
    """What may pass for a group: regions of one, and those that the list gives as many slots."""
    groups = [memory.group(number) for number in {cut.group for cut in memory.regions}]
    counts = {run.count for run in runs}
    return groups + [[n for n, run in enumerate(runs) if run.count == count] for count in counts]


def _lacking(side: str, found: set[Place], memory: Memory, one: Side) -> set[Place]:
    """A slot that one region of a group gets in error is one that the others lack, and one that
    the others get is what it lacks itself."""
    wrong = [(region, slot) for place, region, slot in found if place == side]
    got = [place for place in (*hits(one, memory), *listed(one)) if place is not None]
    lacking: set[Place] = set()
    for members in _together(memory, one.runs):
        strayed = {region for region, _ in wrong if region in members}
        slots = {slot for region, slot in wrong if region in members}
        lacking |= {(side, member, slot) for member in members for slot in slots}
        others = {slot for region, slot in got if region in members}
        lacking |= {(side, region, slot) for region in strayed for slot in others}
    return lacking


def _rest(memory: Memory, one: Side, wrong: set[int]) -> set[int]:
    """The positions of groups of which half the regions or more are wrong."""
    strayed = {one.meant[at][0] for at in wrong}
    lost = {
        member
        for members in _together(memory, one.runs)
        if 2 * len(strayed & set(members)) >= len(members)
        for member in members
    }
    return {at for at, (region, _) in enumerate(one.meant) if region in lost}


def _owned(side: Side, memory: Memory) -> list[tuple[int, int] | None]:
    """As `listed`, with the region that the run begins in: what is past the list's end has a
    name, too."""
    owners = [memory.owner(run.address) for run in side.runs]
    return [
        (owner[0], place[1]) if place and (owner := owners[place[0]]) else None
        for place in listed(side)
    ]


def _addresses(side: Any) -> list[tuple[int, int] | None]:
    addresses, lengths = side.descriptors()
    return [
        (int(addresses[number]), int(lengths[number])) if number < len(addresses) else None
        for number in taken(side.indices).tolist()
    ]


def past_ends(faulty: Call, mine: Memory, theirs: Memory) -> frozenset[Place]:
    """The slots that a list has and its regions have not: found before any is selected."""
    return frozenset(
        (side, number, slot)
        for side, memory in (("local", mine), ("remote", theirs))
        for number, run in enumerate(faulty.side(side).runs)
        if number < len(memory.regions)
        for slot in range(memory.regions[number].slots, run.count)
    )


def miscounted(faulty: Call, mine: Memory, theirs: Memory) -> frozenset[Place]:
    """The slots of regions that a list gives another count than they have: it is they that are
    wrong, also where an index meets one of their own slots."""
    return frozenset(
        (side, number, slot)
        for side, memory in (("local", mine), ("remote", theirs))
        for number, run in enumerate(faulty.side(side).runs[: len(memory.regions)])
        if len(faulty.side(side).runs) == len(memory.regions)
        if run.count != memory.regions[number].slots
        for slot in range(min(run.count, memory.regions[number].slots))
    )


def named(records: Iterable[Record], checks: Collection[str]) -> list[Record]:
    return [record for record in records if record["check"] in checks]


def placed(record: Record, places: Collection[Place]) -> bool:
    """Whether the record is about one of the places, and its message says so. A region that an
    adapter declared is known by its layer, which is its number in the campaign."""
    side, region, slot = record["side"], record["region"], record["slot"]
    known = region if record["layer"] is None else record["layer"]
    if (side, known, slot) not in places:
        return False
    words = [f"{side} region {region}", "" if slot is None else f"slot {slot}"]
    if record["layer"] is not None:
        words.append(f"layer {known}")
    return all(re.search(rf"\b{phrase}\b", record["message"]) for phrase in words if phrase)
