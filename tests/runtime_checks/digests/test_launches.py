"""The table of a launch: every word of every page is some program's, and of one only."""

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.digests.launches import Form, launch_of
from kvlint.runtime_checks.digests.pages import Pages
from tests.runtime_checks.layouts import QUICK

FORM = Form(slots=4, words=16, warps=4, part=256)


def pages_of(lengths, counts, stride=1 << 20) -> Pages:
    lengths, counts = np.array(lengths, np.int64), np.array(counts, np.int64)
    firsts = counts.cumsum() - counts
    bases = (1 << 45) + np.arange(len(lengths)) * (1 << 35)
    slots = np.arange(counts.sum()) % 1000
    strides = np.full(len(lengths), stride)
    return Pages(bases.astype(np.uint64), strides, lengths, firsts, counts, slots, "VRAM")


def read(launch):
    """(digest's place, address, bytes, words before) of each part of a page, as the kernel reads
    the table."""
    table = np.full(launch.size, -1)
    launch.write(table)
    found = []
    for program in range(launch.programs):
        row = table[8 * (program // launch.tiles + 1) :][:8]
        at = program % launch.tiles * launch.form.slots
        for line in range(at, min(at + launch.form.slots, row[5])):
            slot = table[row[4] + line]
            found.append((row[6] + line, row[0] + slot * row[1], row[2], row[3]))
    return sorted(tuple(map(int, part)) for part in found)


@QUICK
@given(
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 9)), max_size=6), st.integers(0, 2000)
)
def test_parts_are_whole_pages_when_put_together(blocks, many):
    blocks = [*blocks, (40, many)]
    pages = pages_of(*zip(*blocks, strict=True))
    addresses, lengths = pages.addresses.tolist(), pages.page_lengths.tolist()
    launch = launch_of(pages, 1, form=FORM)
    ends = [0] * len(pages)
    for place, address, length, words in read(launch):
        assert length <= FORM.part + 4 * FORM.words
        assert address == addresses[place] + 4 * words
        assert 4 * words == ends[place] or not length
        ends[place] = max(ends[place], 4 * words + length)
    assert ends == lengths
    needed = sum(-(-count // FORM.slots) for count in launch.rows[:, 5].tolist())
    assert launch.programs <= 8 * (needed + len(launch.rows)) + 4096


def test_more_blocks_than_a_grid_has_rows():
    launch = launch_of(pages_of(np.full(70_000, 64), np.ones(70_000, int)), 0)
    assert launch.programs == 70_000
    assert launch.pages == 70_000


def test_one_long_block_beside_many_short_ones_is_cut():
    counts = np.ones(3000, int)
    counts[7] = 1_000_000
    launch = launch_of(pages_of(np.full(3000, 64), counts), 0)
    assert launch.programs * launch.form.slots < 3 * len(launch.slots)
    assert int((launch.rows[:, 5] + launch.rows[:, 6]).max()) == launch.pages == counts.sum()


def test_what_divides_addresses_and_lengths():
    def align(lengths, stride):
        return launch_of(pages_of(lengths, np.full(len(lengths), 2), stride), 0).align

    assert align([64, 1152], 2048) == 16
    assert align([64, 1156], 2048) == 4
    assert align([64, 1152], 2052) == 4
    assert align([64, 1154], 2048) == 1
    assert align([64, 1152], 2050) == 1


def test_addresses_beyond_the_middle_are_written_as_they_are():
    pages = pages_of([64], [2])
    pages.bases[:] = 2**64 - 2**21
    (_, first, *_), (_, second, *_) = read(launch_of(pages, 0))
    assert [first % 2**64, second % 2**64] == pages.addresses.tolist()
