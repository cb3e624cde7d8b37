"""Regions as an engine lays them out, for property tests, and what is true of them byte by byte."""

from dataclasses import dataclass

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from kvlint.runtime_checks.extents import Extents, cut, joined
from kvlint.runtime_checks.lists import DescriptorList
from kvlint.runtime_checks.regions import Regions

BASE = 1 << 20
QUICK = settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class Laid:
    """One region: where it is, and what of it is moved."""

    address: int
    length: int
    device: int
    stride: int
    count: int

    @property
    def end(self) -> int:
        return self.address + (self.count - 1) * self.stride + self.length

    def slots(self) -> list[tuple[int, int, int]]:
        return [
            (self.address + slot * self.stride, self.length, self.device)
            for slot in range(self.count)
        ]


def rows3(laid: list[Laid]) -> np.ndarray:
    rows = [row for region in laid for row in region.slots()]
    return np.array(rows, np.uint64).reshape(-1, 3)


def rows5(laid: list[Laid]) -> np.ndarray:
    rows = [(r.address, r.length, r.device, r.stride, r.count) for r in laid]
    return np.array(rows, np.uint64).reshape(-1, 5)


def told(regions: Regions) -> list[tuple[int, int, int, int, int]]:
    """(first index, address, length, device, stride) of each region, the stride 0 for one slot."""
    return [
        (
            int(regions.starts[n]),
            int(regions.addresses[n]),
            int(regions.lengths[n]),
            int(regions.devices[n]),
            int(regions.strides[n]) if regions.slots[n] > 1 else 0,
        )
        for n in range(len(regions))
    ]


def rows_of(regions: Regions) -> list[tuple[int, int, int]]:
    """(address, length, device) of every index, as `Regions` has it."""
    numbers = regions.regions_of(np.arange(regions.descriptors))
    slots = np.arange(regions.descriptors) - regions.starts[numbers]
    addresses = regions.addresses_of(numbers, slots)
    return [
        (int(address), int(regions.lengths[n]), int(regions.devices[n]))
        for address, n in zip(addresses, numbers, strict=True)
    ]


def found(rows: Regions, pieces: list[tuple[int, int, int]]) -> tuple[Regions, np.ndarray]:
    """The regions as they are found with the memory's help, and the piece that holds each."""
    extents = Extents.of(pieces)
    regions = cut(rows, extents)
    regions = joined(regions, extents.holding_all(regions))
    return regions, extents.holding_all(regions)


def bytes_of(address: int, length: int, device: int) -> set[tuple[int, int]]:
    return {(device, byte) for byte in range(address, address + length)}


def region_bytes(regions: Regions, number: int) -> set[tuple[int, int]]:
    one = regions.taken([number])
    return set().union(*(bytes_of(*row) for row in rows_of(one)))


@st.composite
def layouts(
    draw: st.DrawFn, most: int = 5, counts: st.SearchStrategy[int] | None = None
) -> list[Laid]:
    """Regions one after the other, touching or not, each of its own length and device."""
    laid: list[Laid] = []
    padding = draw(st.sampled_from([0, 0, 4, 12]))
    at = BASE
    for _ in range(draw(st.integers(1, most))):
        length = draw(st.integers(1, 4)) * 4
        stride = length + padding
        count = draw(st.integers(1, 6) if counts is None else counts)
        device = draw(st.sampled_from([0, 0, 0, 1]))
        at += draw(st.sampled_from([0, 0, 4, 8, 64]))
        laid.append(Laid(at, length, device, stride, count))
        at += count * stride
    return laid if draw(st.booleans()) else draw(st.permutations(laid))


def registered(laid: list[Laid], *, padded: bool) -> list[tuple[int, int, int]]:
    """One piece a region, with the padding after its last slot or without."""
    return [
        (r.address, (r.count * r.stride if padded else r.end - r.address), r.device) for r in laid
    ]


def listed(
    regions: Regions, groups: list[int] | None = None, side: str = "local", owner: str = "a"
) -> DescriptorList:
    """A list whose regions each lie alone in a registration, or all in one where groups says -1."""
    if groups is None:
        pieces = np.arange(len(regions), dtype=np.int64)
    else:
        pieces = np.array(groups, np.int64)
    return DescriptorList(1, side, owner, "DRAM", regions, [None] * len(regions), lambda: pieces)


def first_difference(before: np.ndarray, after: np.ndarray) -> int | None:
    """The first position whose digest, (N,) or (N, 2), changed."""
    differ = before != after
    changed = np.flatnonzero(differ.any(axis=1) if differ.ndim > 1 else differ)
    return int(changed[0]) if len(changed) else None
