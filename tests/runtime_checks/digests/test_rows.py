"""Rows of a transfer: which region each is of, and which page of that."""

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.digests.pages import pages_at
from kvlint.runtime_checks.digests.rows import Rows
from tests.runtime_checks.layouts import QUICK


@QUICK
@given(st.lists(st.sampled_from([7, 2**64 - 1, 3, 11]), max_size=30))
def test_regions_are_numbered_as_they_appear_and_their_pages_as_they_come(identities):
    count = len(identities)
    rows = Rows(
        np.zeros(count, np.uint64), np.ones(count, np.int64), np.array(identities, np.uint64)
    )
    seen, numbers, ordinals = [], [], []
    for identity in identities:
        if identity not in seen:
            seen.append(identity)
        ordinals.append(numbers.count(seen.index(identity)))
        numbers.append(seen.index(identity))
    assert rows.regions.tolist() == numbers
    assert rows.ordinals.tolist() == ordinals


@QUICK
@given(st.lists(st.tuples(st.integers(0, 2**47), st.integers(1, 3)), max_size=30))
def test_pages_anywhere_are_where_they_were_said_to_be(places):
    addresses = np.array([address for address, _ in places], np.uint64)
    lengths = np.array([length for _, length in places], np.int64)
    pages = pages_at(addresses, lengths, "DRAM")
    assert len(pages) == len(places)
    assert pages.addresses.tolist() == addresses.tolist()
    assert pages.page_lengths.tolist() == lengths.tolist()
