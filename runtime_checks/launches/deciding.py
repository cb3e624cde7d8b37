"""What is wrong with a launch, by its kernel's contract: reach, overflow, element size."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kvlint.geometry import Region
from kvlint.runtime_checks.checks import (
    LAUNCH_ELEMENT_SIZE,
    LAUNCH_EXTENT,
    LAUNCH_OVERFLOW,
    Breach,
    Place,
)
from kvlint.runtime_checks.launches.bounds import (
    Bounds,
    Conditions,
    Range,
    Values,
    conditions_of,
    fits,
    narrowing,
)
from kvlint.runtime_checks.launches.launch import Launch, Memory
from kvlint.runtime_checks.launches.points import Point, Search
from kvlint.runtime_checks.launches.reading import Contract
from kvlint.runtime_checks.launches.terms import KINDS, Access, Term, below

PATIENCE: Final = 3
"""After so many searches without an answer an access is not searched again."""

RegionOf = Callable[[int], Region | None]
"""The declared region that holds an address."""


def nowhere(_: int) -> Region | None:
    return None


@dataclass(eq=False)
class _Settled:
    """An access that arguments, programs and lanes alone say all about."""

    access: Access
    narrow: tuple[Term, ...]
    bounds: Bounds
    conditions: Conditions
    search: Search
    integers: frozenset[str]
    undecided: int = 0

    @classmethod
    def of(cls, access: Access) -> "_Settled":
        narrow = tuple(term for term in below([access.offset]) if term.narrow)
        roots = [access.offset, *access.when]
        search = Search([access.offset], access.when)
        integers = integers_in(access.offset)
        conditions = conditions_of(access.when)
        return cls(access, narrow, Bounds(roots), conditions, search, integers)

    def ranges(self, values: Values) -> Mapping[int, Range | None]:
        """What is so where the access is made; nothing, where it never is."""
        found = self.bounds.of(values)
        narrowed = narrowing(self.conditions, found)
        if narrowed is None:
            return {}
        return self.bounds.of(values, narrowed=narrowed) if narrowed else found


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a launch reaches at most, wherever its arguments lie.

    spans  of each argument the least offset in bytes, and the one past the greatest
    sure   whether that is all: no overflow, and nothing without bounds
    """

    spans: Mapping[str, tuple[int, int]]
    sure: bool

    def inside(self, memory: Mapping[str, Memory]) -> bool:
        """Whether the storages hold all of it."""
        if not self.sure:
            return False
        for argument, (least, past) in self.spans.items():
            there = memory.get(argument)
            if there is not None and not (there.before <= least and past <= there.past):
                return False
        return True


@dataclass(eq=False)
class Rules:
    """A contract, ready to be held against launches.

    undecided  how often neither a bound nor a point could be found
    picked     arguments of which loaded numbers pick rows
    """

    contract: Contract
    undecided: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        accesses = self.contract.accesses
        self._settled = [_Settled.of(access) for access in accesses if access.settled]
        rows = [access for access in accesses if not access.offset.settled]
        self._rows = [(access, Bounds([access.offset])) for access in rows]
        self.picked = frozenset(access.argument for access in rows)

    def reach(self, values: Values) -> Reach:
        spans: dict[str, tuple[int, int]] = {}
        sure = True
        for settled in self._settled:
            found = settled.ranges(values)
            if not found:
                continue
            access, range_ = settled.access, found[settled.access.offset.number]
            if range_ is None:
                sure = sure and settled.undecided >= PATIENCE
                continue
            if not all(fits(term, found[term.number]) for term in settled.narrow):
                sure = False
            least, past = range_[0], range_[1] + access.width
            old = spans.get(access.argument)
            if old is not None:
                least, past = min(least, old[0]), max(past, old[1])
            spans[access.argument] = least, past
        return Reach(spans, sure)

    def breaches(self, launch: Launch, region_of: RegionOf = nowhere) -> list[Breach]:
        """All that is wrong, at most one of a kind for each argument."""
        found: dict[tuple[str, str], Breach] = {}
        for breach, argument in self._all(launch, region_of):
            found.setdefault((breach.check.name, argument), breach)
        return list(found.values())

    def _all(self, launch: Launch, region_of: RegionOf) -> Iterator[tuple[Breach, str]]:
        for settled in self._settled:
            argument = settled.access.argument
            known = settled.ranges(launch.values)
            if not known:
                continue
            overflow = self._overflow(settled, launch, known)
            if overflow is not None:
                yield overflow, argument
                continue
            memory = launch.memory.get(argument)
            if memory is not None:
                beyond = self._beyond(settled, launch, memory, known, region_of)
                if beyond is not None:
                    yield beyond, argument
        for access, bounds in self._rows:
            memory = launch.memory.get(access.argument)
            region = region_of(memory.address) if memory is not None else None
            if memory is not None and region is not None:
                breach = _element_size(access, bounds.of(launch.values), launch, memory, region)
                if breach is not None:
                    yield breach, access.argument

    def _overflow(
        self, settled: _Settled, launch: Launch, known: Mapping[int, Range | None]
    ) -> Breach | None:
        offset = settled.access.offset
        for term in settled.narrow:
            if fits(term, known[term.number]):
                continue
            limit = 1 << (KINDS[term.kind][0] - 1)
            for upwards, beyond in ((True, limit - 1), (False, -limit)):
                point = self._search(
                    settled,
                    launch,
                    term,
                    upwards,
                    beyond,
                    lambda p: p.found[offset.number] != p.endless[offset.number],
                )
                if point is not None:
                    return _told_overflow(settled.access, term, launch, point)
        return None

    def _beyond(
        self,
        settled: _Settled,
        launch: Launch,
        memory: Memory,
        known: Mapping[int, Range | None],
        region_of: RegionOf,
    ) -> Breach | None:
        access = settled.access
        if inside(access, known[access.offset.number], memory):
            return None
        if launch.crosses(access.argument, settled.integers):
            return None
        last = memory.past - access.width
        for upwards, beyond in ((True, last), (False, memory.before)):

            def outside(point: Point, upwards: bool = upwards, beyond: int = beyond) -> bool:
                offset = point.found[access.offset.number]
                return offset is not None and (offset > beyond if upwards else offset < beyond)

            point = self._search(settled, launch, access.offset, upwards, beyond, outside)
            if point is not None:
                return _told_extent(access, launch, memory, point, region_of)
        return None

    def _search(
        self,
        settled: _Settled,
        launch: Launch,
        of: Term,
        upwards: bool,
        beyond: int,
        wanted: Callable[[Point], bool],
    ) -> Point | None:
        if settled.undecided >= PATIENCE:
            return None
        point, soon = settled.search.find(launch.values, of, upwards, beyond, wanted)
        if not soon:
            settled.undecided += 1
            self.undecided += 1
        return point


def integers_in(term: Term) -> frozenset[str]:
    """The arguments that it is made of."""
    return frozenset(part.value for part in below([term]) if part.op == "argument")


def inside(access: Access, range_: Range | None, memory: Memory) -> bool:
    return range_ is not None and (
        memory.before <= range_[0] and range_[1] + access.width <= memory.past
    )


def _told_extent(
    access: Access, launch: Launch, memory: Memory, point: Point, region_of: RegionOf
) -> Breach:
    offset = point.found[access.offset.number] or 0
    byte, size = offset - memory.before, memory.end - memory.begin
    region = region_of(memory.address)
    return Breach(
        LAUNCH_EXTENT,
        f"{launch.kernel} at {access.place}: {access.call} touches byte {byte} of the storage of "
        f"{access.argument} in {where(point.variables)}, which has {size} bytes"
        f"{_seen(memory)}{_within(region)}",
        {"byte touched": byte + access.width - 1, "bytes of the storage": size},
        place_of(region, memory.address + offset),
    )


def _told_overflow(access: Access, term: Term, launch: Launch, point: Point) -> Breach:
    value, offset = point.endless[term.number] or 0, access.offset.number
    return Breach(
        LAUNCH_OVERFLOW,
        f"{launch.kernel} at {access.place}: an index of {access.argument} is {value} in "
        f"{where(point.variables)}, and {term.kind} makes it {point.found[term.number]}: "
        f"{access.call} touches byte {point.found[offset]} of it, not {point.endless[offset]}",
        {"index": value, f"in {term.kind}": point.found[term.number] or 0},
    )


def _element_size(
    access: Access,
    known: Mapping[int, Range | None],
    launch: Launch,
    memory: Memory,
    region: Region,
) -> Breach | None:
    """Rows that are picked by a loaded number lie as many elements apart as the region's do, of
    another size. A view of other elements is no fault by itself."""
    own, size = region.element_size, memory.element_size
    if own is None or own == size:
        return None
    rows = {region.stride}
    if region.page_size and region.stride % region.page_size == 0:
        rows.add(region.stride // region.page_size)
    steps = {step for step, term in _steps(access.offset, 1, known) if not term.settled}
    if steps & rows:
        return None
    wrong = next((step for step in sorted(steps) if step > 0 and step * own // size in rows), None)
    if wrong is None:
        return None
    return Breach(
        LAUNCH_ELEMENT_SIZE,
        f"{launch.kernel} at {access.place}: {access.call} takes rows of {access.argument}"
        f"{_within(region)} {wrong // size} elements apart, which are {wrong} bytes of "
        f"{memory.dtype or f'{size}-byte elements'}; the region has elements of {own} bytes, and "
        f"its rows are {wrong * own // size} bytes apart",
        {"bytes an element of the kernel": size, "bytes an element of the region": own},
        place_of(region, memory.address),
    )


def _steps(
    term: Term, factor: int, known: Mapping[int, Range | None]
) -> Iterator[tuple[int, Term]]:
    """The terms that are summed up, each with what it is multiplied with."""
    match term.op, term.operands:
        case "+", (one, other):
            yield from _steps(one, factor, known)
            yield from _steps(other, factor, known)
        case "-", (one, other):
            yield from _steps(one, factor, known)
            yield from _steps(other, -factor, known)
        case "cast", (one,):
            yield from _steps(one, factor, known)
        case "*", (one, other):
            for part, by in ((one, other), (other, one)):
                range_ = known[by.number]
                if range_ is not None and range_[0] == range_[1]:
                    yield from _steps(part, factor * range_[0], known)
                    return
            yield factor, term
        case _:
            yield factor, term


def where(variables: Mapping[object, int]) -> str:
    """Program, lanes and rounds in words."""
    by = {name: value for name, value in variables.items() if isinstance(name, tuple)}
    programs = tuple(by.get(("program", axis), 0) for axis in range(3))
    lanes = [by[name] for name in sorted((n for n in by if n[0] == "lane"), reverse=True)]
    rounds = [by[name] for name in sorted(n for n in by if n[0] == "round")]
    parts = [f"program {programs}"]
    if lanes:
        parts.append(f"lane {lanes[0] if len(lanes) == 1 else tuple(lanes)}")
    if rounds:
        parts.append(f"round {rounds[0] if len(rounds) == 1 else tuple(rounds)}")
    return " ".join(parts)


def place_of(region: Region | None, address: int) -> Place | None:
    if region is None:
        return None
    byte = address - region.address
    slot = byte // region.stride if 0 <= byte < region.length else None
    return Place("local", None, region.name, region.layer, slot, byte)


def _within(region: Region | None) -> str:
    if region is None:
        return ""
    layer = "" if region.layer is None else f" of layer {region.layer}"
    return f" (region {region.name!r}{layer})"


def _seen(memory: Memory) -> str:
    if not memory.dtype:
        return ""
    begins = f" from its byte {-memory.before}" if memory.before else ""
    return f": a {memory.dtype} tensor of {memory.shape}, strides {memory.strides}{begins}"
