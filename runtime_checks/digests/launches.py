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


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """One launch.

    head   of the table: the lanes' keys and the number of pages, then (R, COLUMNS) the rows, with
           their columns as named above
    slots  (S,) the rest of the table
    pages  how many there are
    tiles  programs of each row; those beyond its count end at once
    align  what divides every address and length: 16, 4 or 1
    split  whether several programs add to one page's digest, which must be 0 before
    """

    head: Integers
    slots: Integers
    pages: int
    tiles: int
    align: int
    split: bool
    form: Form

    @property
    def rows(self) -> Integers:
        """(R, COLUMNS)"""
        rows: Integers = self.head[COLUMNS:].reshape(-1, COLUMNS)
        return rows

    @property
    def programs(self) -> int:
        return (len(self.head) // COLUMNS - 1) * self.tiles

    @property
    def size(self) -> int:
        """Of the table, in numbers of 64 bits."""
        return len(self.head) + len(self.slots)

    def write(self, table: Integers) -> None:
        table[: len(self.head)] = self.head
        table[len(self.head) : self.size] = self.slots


def launch_of(pages: Pages, seed: int, lanes: int = 1, form: Form | None = None) -> Launch:
    """The launch that digests all of the pages."""
    # Regions stay, and requests of a length come again, so all but the slots is looked up: a
    # transfer has microseconds.
    columns = pages.bases, pages.strides, pages.lengths, pages.firsts, pages.counts
    plan = _plan(*(column.tobytes() for column in columns), seed, lanes, form)
    align = plan.align if plan.align else _align_of_all(pages) if plan.pages else 1
    return Launch(plan.head, pages.slots, plan.pages, plan.tiles, align, plan.split, plan.form)


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """A launch without its slots. `align` is 0 where that depends on them."""

    head: Integers
    pages: int
    tiles: int
    align: int
    split: bool
    form: Form


@lru_cache(256)
def _plan(
    bases: bytes,
    strides: bytes,
    lengths: bytes,
    firsts: bytes,
    counts: bytes,
    seed: int,
    lanes: int,
    form: Form | None,
) -> _Plan:
    each = [np.frombuffer(column, np.int64) for column in (bases, strides, lengths)]
    regions = np.stack((*each, np.zeros(len(each[0]), np.int64)), axis=1)
    first, count = np.frombuffer(firsts, np.int64), np.frombuffer(counts, np.int64)
    longest = int(each[2].max(initial=0))
    form = form_of(longest) if form is None else form
    align = _aligned(int(np.bitwise_or.reduce(regions, axis=None)))
    if align < WORD and not (each[2] % WORD).any():
        align = 0
    end = count.cumsum()
    pages, most = int(count.sum()), int(count.max(initial=0))
    split = longest > form.part
    if split:
        which, regions = _parts(regions, form)
        first, count, end = first[which], count[which], end[which]
    work = int(count.sum())
    if most * len(regions) > 2 * work + _IDLE * form.slots:
        most = -(-work // len(regions))
        most += -most % form.slots
        which, before = _cut(-(-count // most))
        regions, before = regions[which], before * most
        end = end[which] - count[which] + before
        first, count = first[which] + before, np.minimum(count[which] - before, most)
        end += count
    head = np.zeros(COLUMNS * (len(regions) + 1), np.int64)
    told = [key for lane in seeds(seed, lanes) for key in keys(lane)]
    head[: len(told)] = told
    head[PAGES_AT] = pages
    rows = head[COLUMNS:].reshape(-1, COLUMNS)
    rows[:, :FIRST] = regions
    rows[:, FIRST] = first + len(head)
    rows[:, COUNT] = count
    rows[:, BEGIN] = end - count
    head.flags.writeable = False
    return _Plan(head, pages, -(-most // form.slots), align, split, form)


def _parts(regions: Integers, form: Form) -> tuple[Integers, Integers]:
    """Long pages cut into parts: (P,) the region of each, and (P, 4) its columns."""
    total = regions[:, LENGTH]
    pieces = np.maximum(1, -(-total // form.part))
    words = -(-total // (WORD * form.words * pieces)) * form.words
    which, before = _cut(pieces)
    parts, words = regions[which], words[which]
    before = before * words
    parts[:, WORDS_BEFORE] = before
    parts[:, BASE] += before * WORD
    parts[:, LENGTH] = np.clip(parts[:, LENGTH] - before * WORD, 0, words * WORD)
    return which, parts


def _aligned(together: int) -> int:
    """What divides all the numbers of which these are the bits."""
    return 1 if together % WORD else WORD if together % 16 else 16


def _align_of_all(pages: Pages) -> int:
    """Slots that are not all used may be well placed where their stride is not."""
    ends = pages.addresses | pages.page_lengths.view(np.uint64)
    return _aligned(int(np.bitwise_or.reduce(ends)))


def _cut(pieces: Integers) -> tuple[Integers, Integers]:
    """Which each piece is of, and how many of the same come before it."""
    before = np.arange(pieces.sum()) - np.repeat(pieces.cumsum() - pieces, pieces)
    return np.repeat(np.arange(len(pieces)), pieces), before
