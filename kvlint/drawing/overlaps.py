"""Bytes that two regions have in common. Counted is what is moved: in one piece of memory the slots
of one region may lie between those of another, and then they share nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from typing import Final

from kvlint.drawing.pairing import Numbered, numbered
from kvlint.geometry import Geometry, Region

# Of regions that begin before another and end behind its start, the latest are looked at; of slots
# that lie otherwise each time, the first. More is a hostile file's.
_MOST_BEFORE: Final = 256
_MOST_SLOTS: Final = 1_024


@dataclass(frozen=True, slots=True)
class Shared:
    """`one` begins before `two`, or with it, in the same memory."""

    one: Numbered
    two: Numbered
    bytes: int


def shared(geometry: Geometry) -> Iterator[Shared]:
    """Each two regions that have bytes in common, in the order of addresses."""
    reaching: dict[tuple[str, int], list[Numbered]] = {}
    for at in sorted(numbered(geometry), key=lambda n: (n.region.address, -n.region.length)):
        memory = (at.region.memory_kind, at.region.device)
        before = [n for n in reaching.get(memory, []) if _end(n.region) > at.region.address]
        for other in before:
            if found := in_common(other.region, at.region):
                yield Shared(other, at, found)
        reaching[memory] = [*before, at][-_MOST_BEFORE:]


def overlaps(geometry: Geometry) -> dict[str, int]:
    """Name of a region -> the most bytes that it has in common with one that begins before it."""
    found: dict[str, int] = {}
    for each in shared(geometry):
        name = each.two.region.name
        found[name] = max(found.get(name, 0), each.bytes)
    return found


def in_common(one: Region, two: Region) -> int:
    """Bytes that are moved of both; at least so many, where strides have little in common."""
    low = max(one.address, two.address)
    high = min(_end(one), _end(two))
    if low >= high or _between_each_other(one, two):
        return 0
    few, many = sorted((one, two), key=lambda region: _pieces(region))
    if _pieces(few) == 1:
        return _moved(many, high) - _moved(many, low)
    # Slots that touch the other's bytes; only the outermost may reach beyond them.
    first = max(low - few.address - few.transfer_length, 0) // few.stride
    last = min((high - few.address) // few.stride + 1, few.slots)
    each = _Each(few, many)
    if last - first < 4:
        return each.sum(first, last)
    period = many.stride // gcd(few.stride, many.stride)
    inner = last - first - 4
    return (
        each.sum(first, first + 2)
        + each.sum(last - 2, last)
        + inner // period * each.sum(first + 2, first + 2 + period)
        + each.sum(first + 2, first + 2 + inner % period)
    )


@dataclass(frozen=True, slots=True)
class _Each:
    """Bytes that slots of one region have in common with all of another."""

    few: Region
    many: Region

    def sum(self, first: int, last: int) -> int:
        total = 0
        for slot in range(first, min(last, first + _MOST_SLOTS)):
            start = self.few.address + slot * self.few.stride
            end = start + self.few.transfer_length
            total += _moved(self.many, end) - _moved(self.many, start)
        return total


def _between_each_other(one: Region, two: Region) -> bool:
    """Whether slots of one stride lie next to each other."""
    if one.stride != two.stride or _pieces(one) == 1 or _pieces(two) == 1:
        return False
    apart = (two.address - one.address) % one.stride
    return apart >= one.transfer_length and apart + two.transfer_length <= one.stride


def _end(region: Region) -> int:
    """Behind the last byte that is moved."""
    if not region.slots:
        return region.address
    return region.address + (region.slots - 1) * region.stride + region.transfer_length


def _pieces(region: Region) -> int:
    return 1 if region.transfer_length >= region.stride else region.slots


def _moved(region: Region, end: int) -> int:
    """Bytes of the region that are moved and lie before an address."""
    inside = min(max(end, region.address), _end(region)) - region.address
    if _pieces(region) == 1:
        return inside
    slot, rest = divmod(inside, region.stride)
    return slot * region.transfer_length + min(rest, region.transfer_length)
