"""What one launch of the digest kernel is given: a table of all its pages, and its form.

The kernel's work is even: a program takes some slots of one row of the table. Blocks of very
unequal counts are cut into several rows, long pages into parts, whose digests add up. Pure.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from kvlint.runtime_checks.digests.pages import Pages
from kvlint.runtime_checks.digests.reference import WORD, keys, seeds
from kvlint.runtime_checks.regions import Integers

COLUMNS: Final = 8
BASE, STRIDE, LENGTH, WORDS_BEFORE, FIRST, COUNT, BEGIN = range(7)
PAGES_AT: Final = 4
MOST_PROGRAMS: Final = (1 << 31) - 1
# Programs that end at once, since their row has fewer slots than another, cost next to nothing.
_IDLE: Final = 4096


@dataclass(frozen=True, slots=True)
class Form:
    """How a program goes over its pages. Chosen by shape, never tuned while serving.

    slots  pages of a program, a power of two
    words  words of each that are read at a time, a power of two
    warps  32 threads each
    stages reads of a page that are under way at a time
    part   bytes of a page that one program reads at most, a multiple of `words`
    """

    slots: int
    words: int
    warps: int
    stages: int = 1
    part: int = 1 << 18


# The fastest of many on an H200, by `benchmarks/gpu/digests.py --sweep`.
SMALL: Final = Form(slots=4, words=128, warps=1)
MIDDLE: Final = Form(slots=1, words=1024, warps=4, stages=3)
LARGE: Final = Form(slots=1, words=2048, warps=4, stages=3)


def form_of(longest: int) -> Form:
    """For pages of up to so many bytes."""
    if longest < 8192:
        return SMALL
    return MIDDLE if longest < 32768 else LARGE


@dataclass(slots=True, eq=False)
class Launch:
    """One launch.

    regions  (R, 4) columns of each row that follow from the regions: where slot 0 begins, bytes
             from slot to slot, bytes of each, words of the page before them
    firsts   (R,) where the row's slots begin in `slots`
    counts   (R,) how many they are
    ends     (R,) how many digests there are up to the row's last
    slots    (S,)
    lanes    the keys of each
    pages    how many there are
    tiles    programs of each row; those beyond its count end at once
    align    what divides every address and length: 16, 4 or 1
    split    whether several programs add to one page's digest, which must be 0 before
    """

    regions: Integers
    firsts: Integers
    counts: Integers
    ends: Integers
    slots: Integers
    lanes: Integers
    pages: int
    tiles: int
    align: int
    split: bool
    form: Form

    @property
    def programs(self) -> int:
        return len(self.regions) * self.tiles

    @property
    def size(self) -> int:
        """Of the table, in numbers of 64 bits."""
        return COLUMNS * (len(self.regions) + 1) + len(self.slots)

    def write(self, table: Integers) -> None:
        """The table: the lanes' keys and the number of pages, the rows with their columns as named
        above, the slots."""
        slots_at = COLUMNS * (len(self.regions) + 1)
        table[: len(self.lanes)] = self.lanes
        table[PAGES_AT] = self.pages
        rows = table[COLUMNS:slots_at].reshape(-1, COLUMNS)
        rows[:, :FIRST] = self.regions
        np.add(self.firsts, slots_at, out=rows[:, FIRST])
        rows[:, COUNT] = self.counts
        np.subtract(self.ends, self.counts, out=rows[:, BEGIN])
        table[slots_at : self.size] = self.slots


def launch_of(pages: Pages, seed: int, lanes: int = 1, form: Form | None = None) -> Launch:
    """The launch that digests all of the pages."""
    # The regions of a list stay, so what follows from them is looked up: a transfer has
    # microseconds.
    plan = _plan(pages.bases.tobytes(), pages.strides.tobytes(), pages.lengths.tobytes(), form)
    form, regions = plan.form, plan.regions
    firsts, counts = pages.firsts, pages.counts
    ends = counts.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    most = int(counts.max()) if total else 0
    work = total
    if plan.blocks is not None:
        firsts, counts, ends = firsts[plan.blocks], counts[plan.blocks], ends[plan.blocks]
        work = int(counts.sum())
    if most * len(regions) > 2 * work + _IDLE * form.slots:
        most = -(-work // len(regions))
        most += -most % form.slots
        which, before = _cut(-(-counts // most))
        regions, before = regions[which], before * most
        ends = ends[which] - counts[which] + before
        firsts, counts = firsts[which] + before, np.minimum(counts[which] - before, most)
        ends += counts
    align = plan.align if plan.align else _align_of_all(pages) if total else 1
    keys, tiles = _keys(seed, lanes), -(-most // form.slots)
    return Launch(
        regions,
        firsts,
        counts,
        ends,
        pages.slots,
        keys,
        total,
        tiles,
        align,
        plan.blocks is not None,
        form,
    )


@dataclass(frozen=True, eq=False)
class _Plan:
    """What follows from the regions: the form, a launch's `regions`, and, where long pages are cut
    into parts, (R,) the block of each row. `align` is 0 where that depends on the slots."""

    form: Form
    regions: Integers
    blocks: Integers | None
    align: int


@lru_cache(256)
def _plan(bases: bytes, strides: bytes, lengths: bytes, form: Form | None) -> _Plan:
    columns = [np.frombuffer(column, np.int64) for column in (bases, strides, lengths)]
    regions = np.stack((*columns, np.zeros(len(columns[0]), np.int64)), axis=1)
    longest = int(columns[2].max(initial=0))
    form = form_of(longest) if form is None else form
    align = _aligned(int(np.bitwise_or.reduce(regions, axis=None)))
    if align < WORD and not (columns[2] % WORD).any():
        align = 0
    if longest <= form.part:
        return _Plan(form, regions, None, align)
    total = regions[:, LENGTH]
    pieces = np.maximum(1, -(-total // form.part))
    words = -(-total // (WORD * form.words * pieces)) * form.words
    blocks, before = _cut(pieces)
    regions, words = regions[blocks], words[blocks]
    before *= words
    regions[:, WORDS_BEFORE] = before
    regions[:, BASE] += before * WORD
    regions[:, LENGTH] = np.clip(regions[:, LENGTH] - before * WORD, 0, words * WORD)
    return _Plan(form, regions, blocks, align)


def _aligned(together: int) -> int:
    """What divides all the numbers of which these are the bits."""
    return 1 if together % WORD else WORD if together % 16 else 16


def _align_of_all(pages: Pages) -> int:
    """Slots that are not all used may be well placed where their stride is not."""
    ends = pages.addresses | pages.page_lengths.view(np.uint64)
    return _aligned(int(np.bitwise_or.reduce(ends)))


@lru_cache(16)
def _keys(seed: int, lanes: int) -> Integers:
    return np.array([key for lane in seeds(seed, lanes) for key in keys(lane)], np.int64)


def _cut(pieces: Integers) -> tuple[Integers, Integers]:
    """Which each piece is of, and how many of the same come before it."""
    before = np.arange(pieces.sum()) - np.repeat(pieces.cumsum() - pieces, pieces)
    return np.repeat(np.arange(len(pieces)), pieces), before
