"""A pool as the ledger sees it: regions of which one set of slots selects pages. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kvlint.geometry import Region
from kvlint.runtime_checks.digests.pages import Pages
from kvlint.runtime_checks.regions import Addresses, Integers


@dataclass(frozen=True, eq=False)
class Memory:
    """R regions. Equal where the same bytes are cut into the same pages under the same name.

    pool     its name
    regions  as they were declared
    """

    pool: str
    regions: tuple[Region, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Memory) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _key(self) -> tuple[object, ...]:
        cut = ((r.address, r.stride, r.transfer_length, r.slots, r.name) for r in self.regions)
        return self.pool, tuple(cut)

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def taken(self, numbers: Sequence[int]) -> "Memory":
        """Some of the regions only."""
        return Memory(self.pool, tuple(self.regions[number] for number in numbers))

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """By these a region is found again in another pool of the kind: its name, without that of
        the pool where the name was made of it."""
        return tuple(
            rest if (rest := r.name.removeprefix(self.pool)).startswith(("[", ".")) else r.name
            for r in self.regions
        )

    @cached_property
    def slots(self) -> int:
        """How many every region has."""
        return min((region.slots for region in self.regions), default=0)

    @cached_property
    def bases(self) -> Addresses:
        return np.array([region.address for region in self.regions], np.uint64)

    @cached_property
    def strides(self) -> Integers:
        return np.array([region.stride for region in self.regions], np.int64)

    @cached_property
    def ends(self) -> Integers:
        """Of what is declared of each region; within 63 bits where `in_order` is something."""
        return np.array([region.address + region.length for region in self.regions], np.int64)

    @cached_property
    def lengths(self) -> Integers:
        return np.array([region.transfer_length for region in self.regions], np.int64)

    @cached_property
    def in_order(self) -> Integers | None:
        """Numbers of the regions by address, None where some lie over or in one another."""
        order = sorted(range(len(self.regions)), key=lambda number: self.regions[number].address)
        ends = 0
        for region in (self.regions[number] for number in order):
            if region.address < ends:
                return None
            ends = region.address + region.length
        return np.array(order, np.int64) if ends < 1 << 63 else None

    def pages(self, slots: Integers) -> Iterator[tuple[Sequence[int], Pages]]:
        """Numbers of the regions of each device, and their pages region by region."""
        places: dict[tuple[str, int], list[int]] = {}
        for number, region in enumerate(self.regions):
            places.setdefault((region.memory_kind, region.device), []).append(number)
        for (kind, device), numbers in places.items():
            yield (
                numbers,
                Pages(
                    self.bases[numbers],
                    self.strides[numbers],
                    self.lengths[numbers],
                    np.zeros(len(numbers), np.int64),
                    np.full(len(numbers), len(slots), np.int64),
                    slots,
                    kind,
                    device,
                ),
            )

    def called(self, region: int) -> str:
        """The region, for people, with its layer where the name has none."""
        one = self.regions[region]
        if one.layer is None or f"layer {one.layer}" in one.name:
            return one.name
        return f"layer {one.layer} {one.name}"
