"""The kernel is equal to the reference, to the bit, in Triton's interpreter."""

import sys

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

from tests.runtime_checks.digests import kernel_cases

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="process_vm_readv is Linux's")

CASES = [
    kernel_cases.aligned_pages_of_several_lengths,
    kernel_cases.words_that_are_not_aligned_for_more,
    kernel_cases.bytes_that_are_not_aligned,
    kernel_cases.pages_anywhere,
    kernel_cases.few_pages,
    kernel_cases.blocks_of_unequal_counts,
    kernel_cases.many_blocks,
    kernel_cases.long_pages_in_parts,
    kernel_cases.nothing_beyond_a_page_is_read,
    kernel_cases.memory_is_used_again,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_kernel_gives_what_numpy_gives(interpreted, case):
    interpreted(case)
