"""What differs between two geometries, with both values, and what follows for their lists."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from kvlint.drawing.overlaps import overlaps
from kvlint.drawing.pairing import Numbered, Pair, aligned, pair
from kvlint.geometry import DescriptorTable, Geometry, Region

# Of two regions that are alike otherwise, these may differ from region to region.
_OWN: Final = ("name", "layer")


@dataclass(frozen=True, slots=True)
class Change:
    """A field of `Region`, "slots", or "overlap", the bytes shared with a region before it."""

    field: str
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class Changed:
    """Regions of one list that changed alike. `changes` are those of the first: names and layers
    may be others' own."""

    pairs: tuple[Pair, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Shift:
    """Descriptors of a list before a region, in both; `region`: its number in both, None for the
    whole list."""

    list: str
    region: tuple[int, int] | None
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class OneStride:
    """From which region on i * S0, with the slots of region 0, is not where region i starts; None
    where it is for all."""

    list: str
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Difference:
    """
    only    regions that one side has alone
    moved   regions that stand, among those both sides have, in another place of their list
    shifts  what follows for the numbers of descriptors
    strides what follows for indices that are made with one stride; lists that both have
    same    how many regions are the same on both sides
    called  lists that have another name in the second: ours -> theirs
    """

    changed: tuple[Changed, ...]
    only: tuple[tuple[Numbered, ...], tuple[Numbered, ...]]
    moved: tuple[Pair, ...]
    shifts: tuple[Shift, ...]
    strides: tuple[OneStride, ...]
    same: int
    called: Mapping[str, str]

    @property
    def found(self) -> bool:
        return bool(self.changed or any(self.only) or self.moved)


def difference(one: Geometry, two: Geometry) -> Difference:
    """Addresses and names of lists are each process's own and not compared. Overlap is."""
    two, called = aligned(one, two)
    pairs = pair(one, two)
    both = [p for p in pairs if None not in p.sides]
    shared = overlaps(one), overlaps(two)
    alike: dict[Hashable, list[tuple[Pair, tuple[Change, ...]]]] = {}
    for p in both:
        if changes := tuple(_changes(p, shared)):
            key = (p.list, *(c if c.field not in _OWN else c.field for c in changes))
            alike.setdefault(key, []).append((p, changes))
    return Difference(
        changed=tuple(
            Changed(tuple(p for p, _ in members), members[0][1]) for members in alike.values()
        ),
        only=(tuple(_only(pairs, 0)), tuple(_only(pairs, 1))),
        moved=tuple(_moved(both)),
        shifts=tuple(_shifts(one, two, both)),
        strides=tuple(_strides(one, two)),
        same=len(both) - sum(map(len, alike.values())),
        called={ours: theirs for theirs, ours in called.items()},
    )


def _changes(p: Pair, shared: tuple[dict[str, int], dict[str, int]]) -> Iterator[Change]:
    one, two = (side.region for side in p.sides if side is not None)
    for field in p.changed:
        yield Change(field, getattr(one, field), getattr(two, field))
    before, after = shared[0].get(one.name, 0), shared[1].get(two.name, 0)
    if before != after:
        yield Change("overlap", before, after)


def _only(pairs: Sequence[Pair], side: int) -> Iterator[Numbered]:
    for p in pairs:
        at = p.sides[side]
        if at is not None and p.sides[1 - side] is None:
            yield at


def _numbers(both: Sequence[Pair]) -> dict[str, list[tuple[int, int, Pair]]]:
    """List -> of each of its regions the number on both sides; of those that stay in the list."""
    found: dict[str, list[tuple[int, int, Pair]]] = {}
    for p in both:
        one, two = (side for side in p.sides if side is not None)
        if one.region.list == two.region.list:
            found.setdefault(one.region.list, []).append((one.number, two.number, p))
    return found


def _moved(both: Sequence[Pair]) -> Iterator[Pair]:
    for numbers in _numbers(both).values():
        for (_, before, _), (_, after, p) in pairwise(numbers):
            if after < before:
                yield p


def _shifts(one: Geometry, two: Geometry, both: Sequence[Pair]) -> Iterator[Shift]:
    numbers = _numbers(both)
    lists = dict.fromkeys(region.list for side in (one, two) for region in side.regions)
    for name in lists:
        before, after = (DescriptorTable(side.regions_of(name)) for side in (one, two))
        for here, there, _ in numbers.get(name, []):
            if before.starts[here] != after.starts[there]:
                yield Shift(name, (here, there), before.starts[here], after.starts[there])
        if len(before) != len(after):
            yield Shift(name, None, len(before), len(after))


def wrong_from(regions: Sequence[Region]) -> int | None:
    """The first region that does not start at i * S0, with the slots of region 0."""
    starts = DescriptorTable(tuple(regions)).starts[: len(regions)]
    first = regions[0].slots if regions else 0
    return next((at for at, start in enumerate(starts) if start != at * first), None)


def _strides(one: Geometry, two: Geometry) -> Iterator[OneStride]:
    names = {region.list for region in two.regions}
    for name in dict.fromkeys(region.list for region in one.regions if region.list in names):
        before, after = (wrong_from(side.regions_of(name)) for side in (one, two))
        if before != after:
            yield OneStride(name, before, after)
