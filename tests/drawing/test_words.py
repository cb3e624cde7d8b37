"""Numbers and names in few columns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.drawing.words import columns, count, fit, size, spans


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1024, "1 KiB"),
        (497_664, "486 KiB"),
        (1_360_128, "1.30 MiB"),
        (6_140_160, "5.86 MiB"),
        ((1 << 64) - 1, "16 EiB"),
    ],
)
def test_bytes_are_told_in_three_digits(value, words):
    assert size(value) == words


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([], ""),
        ([3], "3"),
        ([3, 4], "3, 4"),
        ([3, 4, 5, 9], "3-5, 9"),
        ([0, 2, 4, 6], "0-6 by 2"),
        ([0, 2, 4], "0, 2, 4"),
        ([0, 10, 11, 30, 50, 70, 91], "0, 10, 11, 30, ..., 91"),
    ],
)
def test_numbers_are_told_as_spans(numbers, words):
    assert spans(numbers) == words


@given(st.lists(st.integers(0, 10**6), unique=True).map(sorted))
def test_spans_begin_and_end_as_the_numbers_do_and_stay_short(numbers):
    words = spans(numbers)
    assert len(words) < 80
    if numbers:
        assert words.startswith(str(numbers[0]))


def test_one_and_several():
    assert (count(1, "slot"), count(1_000, "slot")) == ("1 slot", "1,000 slots")


def test_beginning_and_end_of_a_name_stay():
    assert fit("model.layers.17.self_attn.indexer.k_cache", 20) == "model.laye…r.k_cache"
    assert fit("short", 5) == "short"
    assert fit("名前名前名前", 7) == "名…名前"


@given(st.text(), st.integers(1, 30))
def test_what_is_fitted_fits(text, most):
    assert columns(fit(text, most)) <= most
