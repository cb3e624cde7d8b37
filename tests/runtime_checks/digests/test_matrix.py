"""Digests found against those known: whose content a page holds."""

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.digests.matrix import NOWHERE, belongs
from tests.runtime_checks.layouts import QUICK


@QUICK
@given(st.lists(st.integers(0, 5), max_size=12), st.data())
def test_a_wrong_page_is_the_one_other_that_was_to_hold_it(expected, data):
    found = [data.draw(st.sampled_from([*expected, 0, 77])) for _ in expected]
    told = belongs(np.array(found, np.uint64), np.array(expected, np.uint64)).tolist()
    for page, (is_there, wanted) in enumerate(zip(found, expected, strict=True)):
        holders = [at for at, digest in enumerate(expected) if digest == is_there]
        named = is_there not in (wanted, 0) and len(holders) == 1
        assert told[page] == (holders[0] if named else NOWHERE)


def test_digests_of_one_page_at_several_stages_are_one_page():
    found, expected = np.array([5, 6], np.uint64), np.array([1, 2], np.uint64)
    known = np.array([5, 5, 6, 6], np.uint64)
    labels = np.array([40, 40, 41, 42])
    assert belongs(found, expected, known, labels, np.array([8, 9])).tolist() == [40, NOWHERE]


def test_what_a_page_held_itself_is_nobody_elses():
    found, expected = np.array([5], np.uint64), np.array([1], np.uint64)
    known, labels = np.array([5], np.uint64), np.array([8])
    assert belongs(found, expected, known, labels, np.array([8])).tolist() == [NOWHERE]
