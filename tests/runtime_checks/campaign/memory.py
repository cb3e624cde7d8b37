"""One side's memory: an arena of words, cut into regions, and who owns an address.

This is the campaign's own arithmetic. Nothing here comes from kvlint, which is what it judges.
"""

from bisect import bisect_right
from dataclasses import dataclass
from random import Random

import numpy as np

from tests.runtime_checks.campaign.shapes import Layout

WORD = 8  # bytes; lengths, and halves of slots, are multiples of it


@dataclass(frozen=True)
class Cut:
    """One region: where it begins, counted in bytes from the arena's first, and its slots."""

    offset: int
    slots: int
    item: int
    group: int

    @property
    def length(self) -> int:
        return self.slots * self.item


class Memory:
    """The arena of one side with its regions."""

    def __init__(self, cuts: list[tuple[int, int, int]], layout: Layout, random: Random) -> None:
        """`cuts`: slots, bytes a slot and group of each region, in the order of the lists."""
        self.layout = layout
        self.regions: list[Cut] = []
        end = 0
        for slots, item, group in cuts:
            gap = item * random.randint(1, 3) if layout == "apart" else 0
            self.regions.append(Cut(end + gap, slots, item, group))
            end += gap + slots * item
        tail = 4 * max(item for _, item, _ in cuts)  # what lies behind the last one
        self.words = np.zeros((end + tail) // WORD, np.uint64)
        self.base = self.words.ctypes.data
        self._offsets = [cut.offset for cut in self.regions]

    def fill(self, random: Random) -> None:
        """Every word gets a value that no other word has."""
        first = np.uint64(random.getrandbits(48) << 12)
        self.words[:] = (
            np.arange(1, len(self.words) + 1, dtype=np.uint64) * np.uint64(2**20) + first
        )

    def address(self, region: int, slot: int = 0) -> int:
        cut = self.regions[region]
        return self.base + cut.offset + slot * cut.item

    def owner(self, address: int) -> tuple[int, int] | None:
        """Region and slot that hold the byte; None for what lies between or behind them."""
        offset = address - self.base
        region = bisect_right(self._offsets, offset) - 1
        if region < 0:
            return None
        cut = self.regions[region]
        inside = offset - cut.offset
        return (region, inside // cut.item) if inside < cut.length else None

    def registrations(self) -> list[tuple[int, int]]:
        """Address and bytes of what is registered."""
        if self.layout in ("one", "bare"):
            return [(self.base, self.words.nbytes)]
        return [(self.base + cut.offset, cut.length) for cut in self.regions]

    @property
    def slots(self) -> list[int]:
        """Of each region."""
        return [cut.slots for cut in self.regions]

    def group(self, number: int) -> list[int]:
        """The regions of a group."""
        return [region for region, cut in enumerate(self.regions) if cut.group == number]
