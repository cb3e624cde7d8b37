"""What one launch of the digest kernel is given: a table of all its pages, and its form.

The kernel's work is even: a program takes some slots of one row of the table. Blocks of very
unequal counts are cut into several rows, long pages into parts, whose digests add up. Pure.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from kvlint.runtime_checks.digests.pages import Pages
from kvlint.runtime_checks.digests.reference import WORD, keys, lanes
from kvlint.runtime_checks.regions import Integers

COLUMNS: Final = 8
BASE, STRIDE, LENGTH, FIRST, COUNT, BEGIN, WORDS_BEFORE = range(7)
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


SMALL: Final = Form(slots=16, words=32, warps=4, stages=3)
MIDDLE: Final = Form(slots=4, words=256, warps=4, stages=3)
LARGE: Final = Form(slots=1, words=2048, warps=8, stages=3)


def form_of(longest: int) -> Form:
    """For pages of up to so many bytes."""
    if longest < 2048:
        return SMALL
    return MIDDLE if longest < 8192 else LARGE


@dataclass(frozen=True, eq=False)
class Launch:
    """One launch.

    rows   (R, 8) one row for some slots of one region, columns as named above: where slot 0
           begins, bytes from slot to slot, bytes of each, the row's first entry in `slots`, how
           many it has, where its digests go, words of the page before this part
    slots  (S,)
    seeds  of each lane
    pages  how many there are
    tiles  programs of each row; those beyond its count end at once
    align  what divides every address and length: 16, 4 or 1
    split  whether several programs add to one page's digest, which must be 0 before
    """

    rows: Integers
    slots: Integers
    seeds: tuple[int, ...]
    pages: int
    tiles: int
    align: int
    split: bool
    form: Form

    @property
    def programs(self) -> int:
        return len(self.rows) * self.tiles

    @property
    def size(self) -> int:
        """Of the table, in numbers of 64 bits."""
        return COLUMNS * (len(self.rows) + 1) + len(self.slots)

    def write(self, table: Integers) -> None:
        """The table: the lanes' keys and the number of pages, the rows, the slots."""
        slots_at = COLUMNS * (len(self.rows) + 1)
        parts = [key for seed in self.seeds for key in keys(seed)]
        table[: len(parts)] = parts
        table[4] = self.pages
        rows = table[COLUMNS:slots_at].reshape(-1, COLUMNS)
        rows[:] = self.rows
        rows[:, FIRST] += slots_at
        table[slots_at : self.size] = self.slots


def launch_of(pages: Pages, seed: int, count: int = 1, form: Form | None = None) -> Launch:
    """The launch that digests all of the pages, in `count` lanes."""
    counts, lengths = pages.counts, pages.lengths
    ends = counts.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    longest = int(lengths.max()) if total else 0
    form = form_of(longest) if form is None else form
    rows = np.empty((len(counts), COLUMNS), np.int64)
    rows[:, BASE] = pages.bases.view(np.int64)
    rows[:, STRIDE] = pages.strides
    rows[:, LENGTH] = lengths
    rows[:, FIRST] = pages.firsts
    rows[:, COUNT] = counts
    rows[:, BEGIN] = ends - counts
    rows[:, WORDS_BEFORE] = 0
    align = _align(rows, pages) if total else 16
    most = int(counts.max()) if total else 0
    if most * len(rows) > 2 * total + _IDLE * form.slots:
        most = -(-total // len(rows))
        most += -most % form.slots
        rows = _evened(rows, most)
    split = longest > form.part
    if split:
        rows = _in_parts(rows, form)
    tiles = -(-most // form.slots)
    return Launch(rows, pages.slots, lanes(seed, count), total, tiles, align, split, form)


def _align(rows: Integers, pages: Pages) -> int:
    together = int(np.bitwise_or.reduce(rows[:, : LENGTH + 1], axis=None))
    if together % WORD and not (pages.lengths % WORD).any():
        # Slots that are not all used may still be well placed.
        together = int(np.bitwise_or.reduce(pages.addresses | pages.page_lengths.view(np.uint64)))
    return 1 if together % WORD else WORD if together % 16 else 16


def _evened(rows: Integers, most: int) -> Integers:
    """Rows of at most so many slots each, for the same."""
    pieces = -(-rows[:, COUNT] // most)
    cut, before = _cut(rows, pieces)
    cut[:, FIRST] += before * most
    cut[:, BEGIN] += before * most
    cut[:, COUNT] = np.minimum(cut[:, COUNT] - before * most, most)
    return cut


def _in_parts(rows: Integers, form: Form) -> Integers:
    """Rows of parts of about equal length that `form` allows."""
    blocks = -(-rows[:, LENGTH] // (WORD * form.words))
    pieces = np.maximum(1, -(-rows[:, LENGTH] // form.part))
    each = np.repeat(-(-blocks // pieces), pieces) * form.words
    cut, before = _cut(rows, pieces)
    words = before * each
    cut[:, WORDS_BEFORE] = words
    cut[:, BASE] += words * WORD
    cut[:, LENGTH] = np.clip(cut[:, LENGTH] - words * WORD, 0, each * WORD)
    return cut


def _cut(rows: Integers, pieces: Integers) -> tuple[Integers, Integers]:
    """Each row as often as it has pieces, and which of them each is."""
    before = np.arange(pieces.sum()) - np.repeat(pieces.cumsum() - pieces, pieces)
    return np.repeat(rows, pieces, axis=0), before
