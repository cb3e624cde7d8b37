"""Where the indices of a set go, for people and for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, Final

from kvlint.drawing.places import Fate, List, Place, Way, counts_by, goes
from kvlint.drawing.tables import Paint
from kvlint.drawing.words import columns, count, fit, number, spans

MOST: Final = 64
_NAME: Final = 60


def lines(of: List, paint: Paint, most: int = MOST) -> Iterator[str]:
    """How the indices are made, and for each region and slot where they go; what is right in
    several regions in one line."""
    index_set = of.index_set
    group = "" if index_set.group is None else f", group {index_set.group}"
    yield f"slots {spans(sorted(index_set.slots))} of every region of list {of.name}{group}"
    yield f"  index of region i, slot p: {formula(of)}"
    yield f"  descriptors for region i: {counts(of)}; {number(len(of))} in all"
    found = list(of.places())
    by_region = [list(some) for _, some in groupby(found, key=lambda place: place.region)]
    told = 0
    for right, some in groupby(by_region, key=_all_right):
        if right:
            numbers = [places[0].region for places in some]
            word = "region" if len(numbers) == 1 else "regions"
            yield f"  {word} {spans(numbers)}: {paint('right', 'green')}"
            continue
        for places in some:
            if told >= most:
                continue
            told += len(places)
            yield f"  {head(of, places[0].region)}"
            yield from (f"    {line}" for line in _places(of, places, paint))
    wrong = sum(place.fate is not Fate.RIGHT for place in found)
    if told < sum(len(places) for places in by_region if not _all_right(places)):
        yield f"  ... not all are shown: --output-format json has all {number(len(found))}"
    yield f"{number(len(found) - wrong)} of {number(len(found))} right, {number(wrong)} wrong"


def _all_right(places: Sequence[Place]) -> bool:
    return all(place.fate is Fate.RIGHT for place in places)


def formula(of: List) -> str:
    way = of.index_set.stride
    if way == "own":
        return "slots of all regions before i + p"
    one = counts_by(way, of.regions)[:1] or [0]
    return f"i * {number(one[0])} + p{_whose(way)}"


def counts(of: List) -> str:
    way = of.index_set.counts
    if way == "own":
        return "its own slots"
    return f"{number((of.counts[:1] or [0])[0])}{_whose(way)}"


def _whose(way: Way) -> str:
    if way == "first":
        return ", the slots of region 0"
    return ", the least slots of all" if way == "least" else ""


def head(of: List, region: int) -> str:
    name = fit(of.regions[region].name, _NAME)
    slots = count(of.regions[region].slots, "slot")
    start, taken = of.starts[region], of.taken[region]
    where = f"starts at {number(start)}"
    if start != taken:
        where += f", taken for {number(taken)} ({taken - start:+,})"
    return f"region {region} {name!r} ({slots}): {where}"


def _places(of: List, places: Sequence[Place], paint: Paint) -> Iterator[str]:
    rows = [
        (
            f"slot {number(place.slot)}{'' if place.exists else ' (not there)'}",
            f"index {number(place.index)}",
            goes(of, place),
            place.fate,
        )
        for place in places
    ]
    slot = max(len(row[0]) for row in rows)
    index = max(len(row[1]) for row in rows)
    where = min(max(columns(row[2]) for row in rows), 48)
    for one, two, three, fate in rows:
        word = paint("right", "green") if fate is Fate.RIGHT else paint("wrong", "bold red")
        room = " " * (where - columns(three))
        yield f"{one:<{slot}}  {two:<{index}} -> {three}{room}  {word}"


def data(of: List) -> dict[str, Any]:
    index_set = of.index_set
    return {
        "list": of.name,
        "slots": index_set.slots,
        "stride": index_set.stride,
        "counts": index_set.counts,
        "group": index_set.group,
        "descriptors": len(of),
        "places": [_data(place) for place in of.places()],
    }


def _data(place: Place) -> dict[str, Any]:
    form = asdict(place)
    hit = dict(zip(("region", "slot", "byte"), place.hit, strict=True)) if place.hit else None
    return {**form, "hit": hit}
