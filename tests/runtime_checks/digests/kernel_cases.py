"""Digests as the kernel gives them in Triton's interpreter, beside those of numpy.

Each function is a case: it runs in a process where Triton interprets (see the fixture
`interpreted`) and raises where the two differ.
"""

import ctypes
import gc
import mmap
from functools import cache
from unittest.mock import patch

import numpy as np

from kvlint.runtime_checks.digests import device, launches
from kvlint.runtime_checks.digests.host import digests_of
from kvlint.runtime_checks.digests.launches import Form, launch_of
from kvlint.runtime_checks.digests.pages import Pages, pages_at

SEED = 0x1234_5678_9ABC_DEF1
ONE = Form(slots=1, words=512, warps=4)
TILED = Form(slots=16, words=32, warps=4, stages=3)
EVEN = Form(slots=4, words=16, warps=4)
SHORT = Form(slots=2, words=256, warps=4, part=2048)


def blocks(bases, strides, lengths, slots, counts=None, firsts=None) -> Pages:
    """Blocks of the same slots where nothing else is said."""
    many = len(bases)
    return Pages(
        np.array(bases, np.uint64),
        np.array(strides, np.int64),
        np.array(lengths, np.int64),
        np.zeros(many, np.int64) if firsts is None else np.array(firsts, np.int64),
        np.full(many, len(slots)) if counts is None else np.array(counts, np.int64),
        np.array(slots, np.int64),
        "DRAM",
    )


@cache
def memory(size: int) -> np.ndarray:
    """Random bytes, which stay; the first lies at a multiple of 64."""
    bytes_ = np.random.default_rng(size).integers(0, 256, size + 64, np.uint8)
    return bytes_[-bytes_.ctypes.data % 64 :][:size]


def same(pages: Pages, *forms: Form | None) -> None:
    """The kernel's are numpy's, in one lane and in two."""
    for form in forms or (ONE, TILED, None):
        for lanes in (1, 2):
            found = device.start(pages, SEED, lanes, device="cpu", form=form).digests()
            expected = digests_of(pages, SEED, lanes)
            assert found.dtype == np.uint64
            assert found.shape == expected.shape, (found.shape, expected.shape)
            assert np.array_equal(found, expected), (form, lanes, found, expected)


def aligned_pages_of_several_lengths() -> None:
    all_ = memory(1 << 17)
    base = all_.ctypes.data
    assert base > 1 << 40
    pages = blocks(
        [base, base + 4096, base + 65536, base],
        [64, 2048, 4096, 16],
        [64, 1152, 4096, 16],
        [3, 0, 15, 7, 3],
    )
    assert launch_of(pages, 0).align == 16
    same(pages)


def words_that_are_not_aligned_for_more() -> None:
    base = memory(1 << 16).ctypes.data
    pages = blocks([base + 4, base + 20], [132, 2056], [132, 1156], [1, 9, 5])
    assert launch_of(pages, 0).align == 4
    same(pages)


def bytes_that_are_not_aligned() -> None:
    base = memory(1 << 16).ctypes.data
    lengths = [1, 2, 3, 5, 67, 1001]
    pages = blocks([base + at for at in range(6)], [1031] * 6, lengths, [0, 2, 9])
    assert launch_of(pages, 0).align == 1
    same(pages, ONE, TILED)
    same(blocks([base + 2], [16], [32], [0, 1]))


def pages_anywhere() -> None:
    base = memory(1 << 16).ctypes.data
    rng = np.random.default_rng(5)
    for step in (16, 4, 1):
        addresses = (base + step * rng.integers(0, 1000, 37)).astype(np.uint64)
        lengths = step * rng.choice([4, 33, 2, 290], 37)
        pages = pages_at(addresses, lengths, "DRAM")
        assert launch_of(pages, 0).align == step
        same(pages, TILED)


def few_pages() -> None:
    base = memory(4096).ctypes.data
    same(blocks([base], [64], [64], []))
    same(blocks([], [], [], []))
    same(blocks([base], [64], [64], [5]))
    same(blocks([base, base], [64, 64], [0, 48], [5, 1]))


def blocks_of_unequal_counts() -> None:
    base = memory(1 << 16).ctypes.data
    slots = np.random.default_rng(6).permutation(200)
    pages = blocks([base + 16 * n for n in range(40)], [64] * 40, [64] * 40, slots)
    pages.counts[:] = 1
    pages.counts[[3, 17]] = 0, 200
    pages.firsts[:] = np.arange(40)
    pages.firsts[17] = 0
    with patch.object(launches, "_IDLE", 0):
        launch = launch_of(pages, 0, form=EVEN)
        assert launch.programs < 200
        same(pages, EVEN)


def many_blocks() -> None:
    base = memory(1 << 16).ctypes.data
    rng = np.random.default_rng(8)
    where = base + 16 * rng.integers(0, 3000, 80)
    same(blocks(where, [1024] * 80, 16 * rng.integers(0, 9, 80), [2, 0, 7]), TILED)


def long_pages_in_parts() -> None:
    base = memory(1 << 16).ctypes.data
    for align, lengths in ((16, [8192, 16, 4000]), (4, [4100, 4]), (1, [2051, 2])):
        bases, strides = [base + align] * len(lengths), [9008] * len(lengths)
        pages = blocks(bases, strides, lengths, [1, 0, 4])
        launch = launch_of(pages, 0, form=SHORT)
        assert launch.split
        assert launch.align == align
        same(pages, SHORT)


def nothing_beyond_a_page_is_read() -> None:
    """The pages end where memory ends."""
    size = mmap.PAGESIZE
    hole = mmap.mmap(-1, 2 * size)
    base = ctypes.addressof(ctypes.c_char.from_buffer(hole))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    assert protect(ctypes.c_void_p(base + size), ctypes.c_size_t(size), 0) == 0
    for length in (16, 48, 4, 12, 1, 2, 3, 7, 1000, 1152):
        same(blocks([base + size - 3 * length], [length], [length], [2]), ONE, TILED, SHORT)


def memory_is_used_again() -> None:
    base = memory(1 << 12).ctypes.data
    pages = blocks([base], [64], [64], [0, 1, 2, 5])

    def begun() -> device.OnDevice:
        return device.start(pages, SEED, device="cpu")

    one, other = begun(), begun()
    own, others = one._workspace, other._workspace
    assert own is not others
    assert one.ready()
    assert np.array_equal(one.digests(), digests_of(pages, SEED))
    kept = one.digests()
    assert begun()._workspace is own
    del other
    gc.collect()
    assert {id(begun()._workspace), id(own)} <= {id(own), id(others)}
    assert np.array_equal(kept, one.digests())
