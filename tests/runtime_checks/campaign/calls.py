"""What an engine asks of NIXL for one transfer, as plain data that a mutator can change.

A list is kept as runs of equally spaced descriptors, so that it can be given to NIXL in either
form, and so that the oracle can number its descriptors by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random
from typing import Any

import numpy as np

from tests.runtime_checks.campaign.memory import Memory
from tests.runtime_checks.campaign.shapes import Form, Operation


@dataclass(frozen=True)
class Run:
    """`count` descriptors of `length` bytes, `stride` bytes apart."""

    address: int
    length: int
    stride: int
    count: int


@dataclass(frozen=True)
class Side:
    """One side of a call: the list, the indices into it, and the slots that are meant.

    indices  as they are given to NIXL: list or array of any dtype
    meant    (region, slot) of each position
    """

    runs: tuple[Run, ...]
    form: Form
    indices: Any
    meant: tuple[tuple[int, int], ...]

    def rows(self) -> np.ndarray:
        """The list as an array: Nx5 in that form, else Nx3."""
        if self.form == "Nx5":
            rows = [(run.address, run.length, 0, run.stride, run.count) for run in self.runs]
            return np.array(rows, np.uint64)
        addresses, lengths = self.descriptors()
        return np.stack([addresses, lengths, np.zeros_like(addresses)], axis=1).astype(np.uint64)

    def descriptors(self) -> tuple[np.ndarray, np.ndarray]:
        """Address and bytes of every descriptor, in the order of their numbers."""
        addresses = [run.address + np.arange(run.count) * run.stride for run in self.runs]
        lengths = [np.full(run.count, run.length) for run in self.runs]
        return np.concatenate(addresses), np.concatenate(lengths)


@dataclass(frozen=True)
class Call:
    """A transfer: `local` here, `remote` of peer number `peer`."""

    operation: Operation
    peer: int
    local: Side
    remote: Side

    def side(self, name: str) -> Side:
        return self.local if name == "local" else self.remote

    def with_side(self, name: str, **changes: Any) -> "Call":
        return replace(self, **{name: replace(self.side(name), **changes)})

    @property
    def destination(self) -> str:
        return "remote" if self.operation == "WRITE" else "local"

    @property
    def source(self) -> str:
        return "local" if self.operation == "WRITE" else "remote"


def runs(memory: Memory, counts: Sequence[int] | None = None) -> tuple[Run, ...]:
    """All slots of all regions; `counts` says otherwise."""
    return tuple(
        Run(memory.address(region), cut.item, cut.item, count)
        for region, (cut, count) in enumerate(
            zip(memory.regions, counts or memory.slots, strict=True)
        )
    )


def starts(counts: Sequence[int]) -> list[int]:
    """The number of each region's first descriptor."""
    return list(accumulate(counts, initial=0))[:-1]


@dataclass(frozen=True)
class Selection:
    """For each group the slots of either side, and whether positions go slot by slot."""

    local: tuple[tuple[int, ...], ...]
    remote: tuple[tuple[int, ...], ...]
    by_slot: bool = False

    @classmethod
    def draw(cls, mine: Memory, theirs: Memory, random: Random) -> "Selection":
        counts = [_counts(memory) for memory in (mine, theirs)]
        numbers = [random.randint(1, min(12, *both)) for both in zip(*counts, strict=True)]
        if random.random() < 0.5:  # one page list for all
            numbers = [min(numbers)] * len(numbers)
        chosen = [
            tuple(_slots(count, number, random) for count, number in zip(own, numbers, strict=True))
            for own in counts
        ]
        return cls(*chosen, by_slot=random.random() < 0.2)

    @classmethod
    def draw_one(cls, least: tuple[int, int], groups: int, random: Random) -> "Selection":
        """The same slots for all groups, of as many as every region has."""
        number = random.randint(1, min(12, *least))
        mine, theirs = (tuple(_slots(count, number, random)) for count in least)
        return cls((mine,) * groups, (theirs,) * groups, by_slot=random.random() < 0.2)

    def places(self, memory: Memory, side: str) -> tuple[tuple[int, int], ...]:
        """(region, slot) of every position."""
        slots = self.local if side == "local" else self.remote
        table = [
            [(region, slot) for slot in slots[cut.group]]
            for region, cut in enumerate(memory.regions)
        ]
        if not self.by_slot:
            return tuple(place for row in table for place in row)
        longest = max(len(row) for row in table)
        return tuple(row[n] for n in range(longest) for row in table if n < len(row))


def _counts(memory: Memory) -> list[int]:
    groups = {cut.group: cut.slots for cut in memory.regions}
    return [groups[number] for number in range(len(groups))]


def _slots(count: int, number: int, random: Random) -> tuple[int, ...]:
    """Scattered, or one run: NIXL merges descriptors that follow each other."""
    if random.random() < 0.3:
        first = random.randint(0, count - number)
        return tuple(range(first, first + number))
    return tuple(random.sample(range(count), number))


def flat(places: Sequence[tuple[int, int]], firsts: Sequence[int]) -> np.ndarray:
    return np.array([firsts[region] + slot for region, slot in places], np.int64)


def typed(indices: np.ndarray, dtype: Any) -> Any:
    return indices.tolist() if dtype is list else indices.astype(dtype)
