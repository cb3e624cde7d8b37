"""Digests of host memory: what changes one, and memory that is not there."""

import mmap
import sys
import tracemalloc

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.digests.host import UnreadableError, digests_of
from kvlint.runtime_checks.digests.pages import pages_of
from kvlint.runtime_checks.folding import fold
from kvlint.runtime_checks.selection import everything
from tests.runtime_checks.layouts import QUICK, first_difference, listed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="process_vm_readv is Linux's")


def digests(*arrays):
    rows = [(array.ctypes.data, array.nbytes, 0) for array in arrays]
    return digests_of(pages_of(everything(listed(fold(np.array(rows, np.uint64))))))


@QUICK
@given(st.binary(min_size=1, max_size=70), st.data())
def test_one_changed_byte_changes_the_digest(content, data):
    memory = np.frombuffer(bytearray(content), np.uint8)
    before = digests(memory)
    at = data.draw(st.integers(0, len(memory) - 1))
    memory[at] ^= data.draw(st.integers(1, 255))
    assert first_difference(before, digests(memory)) == 0


@QUICK
@given(st.lists(st.integers(0, 2**32 - 1), min_size=2, max_size=40), st.data())
def test_two_exchanged_words_change_the_digest(words, data):
    memory = np.array(words, np.uint32)
    a, b = (data.draw(st.integers(0, len(words) - 1)) for _ in range(2))
    before = digests(memory)
    memory[[a, b]] = memory[[b, a]]
    assert (first_difference(before, digests(memory)) is None) == (words[a] == words[b])


@QUICK
@given(st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=6))
def test_each_row_has_a_digest_of_its_own_bytes_only(contents):
    arrays = [np.frombuffer(bytearray(content), np.uint8) for content in contents]
    together = digests(*arrays)
    assert together.tolist() == [int(digests(array)[0]) for array in arrays]


def test_as_many_rows_as_there_are():
    memory = np.arange(5000 * 3, dtype=np.uint8).reshape(5000, 3)
    rows = np.stack(
        (memory.ctypes.data + 3 * np.arange(5000), np.full(5000, 3), np.zeros(5000, int)), axis=1
    )
    of = listed(fold(rows.astype(np.uint64)))
    before = digests_of(pages_of(everything(of)))
    memory[4321, 1] += 1
    assert first_difference(before, digests_of(pages_of(everything(of)))) == 4321


def test_a_long_row_takes_little_memory():
    memory = np.zeros((24 << 20) + 3, np.uint8)
    memory[7 << 20] = 1
    tracemalloc.start()
    before = digests(memory)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < memory.nbytes
    memory[[7 << 20, 8 << 20]] = 0, 1
    assert first_difference(before, digests(memory)) == 0
    memory[[7 << 20, 8 << 20, -1]] = 1, 0, 1
    assert first_difference(before, digests(memory)) == 0


def test_memory_that_is_not_there_is_an_error_and_no_crash():
    page = mmap.mmap(-1, mmap.PAGESIZE)
    memory = np.frombuffer(page, np.uint8)
    rows = fold(np.array([(memory.ctypes.data, 64, 0)], np.uint64))
    del memory
    page.close()
    with pytest.raises(UnreadableError):
        digests_of(pages_of(everything(listed(rows))))
    with pytest.raises(UnreadableError):
        digests_of(pages_of(everything(listed(fold(np.array([(4096, 64, 0)], np.uint64))))))
