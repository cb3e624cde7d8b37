"""Regions with their numbers, and which region of one geometry is which of another."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

from kvlint.geometry import Geometry, Region

# Where memory lies is another thing in each process; of addresses only overlap is told.
PLACE: Final = ("name", "address", "layer")
COMPARED: Final = tuple(part.name for part in fields(Region) if part.name != "address")


@dataclass(frozen=True, slots=True)
class Numbered:
    """A region and its number in its list."""

    number: int
    region: Region


@dataclass(frozen=True, slots=True)
class Pair:
    """What is one region for the reader, on each side; None where a side has it not."""

    sides: tuple[Numbered | None, ...]

    @property
    def first(self) -> Numbered:
        return next(side for side in self.sides if side is not None)

    @property
    def list(self) -> str:
        return self.first.region.list

    @property
    def changed(self) -> tuple[str, ...]:
        """The fields, slots too, in which both sides differ; none where only one has it."""
        if len(self.sides) < 2 or None in self.sides:
            return ()
        one, two = (side.region for side in self.sides if side is not None)
        names = (*COMPARED, "slots")
        return tuple(name for name in names if getattr(one, name) != getattr(two, name))


def fields_of(region: Region) -> tuple[Hashable, ...]:
    """All by which regions are alike: not their names, places or layers."""
    return tuple(getattr(region, part.name) for part in fields(Region) if part.name not in PLACE)


def numbered(geometry: Geometry) -> Iterator[Numbered]:
    """In the order of the file."""
    seen: dict[str, int] = {}
    for region in geometry.regions:
        seen[region.list] = number = seen.get(region.list, -1) + 1
        yield Numbered(number, region)


def aligned(one: Geometry, two: Geometry) -> tuple[Geometry, dict[str, str]]:
    """The second with the first's names for lists that are the same: what a list is called after
    its kind is its process's own. Two are the same where each is the only one of its kind, or all
    regions that both sides have of it are in the other. And name in the second -> in the first."""
    there = {at.region.name: at.region.list for at in numbered(two)}
    ours, theirs = dict.fromkeys(one.lists), dict.fromkeys(two.lists)
    kinds = Counter(map(_kind, ours))
    of_kind = {_kind(name): name for name in theirs}
    their_kinds = Counter(map(_kind, theirs))
    found: dict[str, str] = {}
    for name in ours:
        if name in theirs:
            continue
        common = {there[r.name] for r in one.regions_of(name) if r.name in there}
        kind = _kind(name)
        alone = their_kinds[kind] == 1 == kinds[kind]
        other = next(iter(common)) if len(common) == 1 else of_kind[kind] if alone else name
        if _kind(other) == kind and other not in ours and other not in found:
            found[other] = name
    if not found:
        return two, found
    regions = (replace(region, list=found.get(region.list, region.list)) for region in two.regions)
    return replace(two, regions=tuple(regions)), found


def _kind(name: str) -> str:
    return name.partition(".")[0]


def pair(one: Geometry, two: Geometry) -> list[Pair]:
    """By name; what is left, by list, layer and role, where these are of one region on each side.
    In the order of the first; what only the second has stands after what it follows there."""
    left, right = list(numbered(one)), list(numbered(two))
    met: dict[str, Numbered] = {}  # by the name on the left
    for key in (_name, _role):
        free_left = [at for at in left if at.region.name not in met]
        taken = {at.region.name for at in met.values()}
        free_right = _unique((at for at in right if at.region.name not in taken), key)
        for value, at in _unique(free_left, key).items():
            if value in free_right:
                met[at.region.name] = free_right[value]
    found = [Pair((at, met.get(at.region.name))) for at in left]
    return _with_rest(found, right)


def _with_rest(found: list[Pair], right: Sequence[Numbered]) -> list[Pair]:
    taken = {at.region.name for pair in found if (at := pair.sides[1])}
    after: dict[str | None, list[Pair]] = {}
    before: str | None = None
    for at in right:
        if at.region.name in taken:
            before = at.region.name
        else:
            after.setdefault(before, []).append(Pair((None, at)))
    merged = after.get(None, [])
    for one in found:
        merged.append(one)
        if at := one.sides[1]:
            merged += after.get(at.region.name, [])
    return merged


def _name(at: Numbered) -> Hashable:
    return at.region.name


def _role(at: Numbered) -> Hashable:
    region = at.region
    if region.layer is None and region.role is None:
        return None
    return region.list, region.layer, region.role


def _unique(
    given: Iterable[Numbered], key: Callable[[Numbered], Hashable]
) -> dict[Hashable, Numbered]:
    """By key, without keys that are of several or None."""
    found: dict[Hashable, list[Numbered]] = {}
    for at in given:
        found.setdefault(key(at), []).append(at)
    return {value: of[0] for value, of in found.items() if value is not None and len(of) == 1}
