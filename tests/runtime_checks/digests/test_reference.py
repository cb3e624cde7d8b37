"""What a digest promises: some changes always show, and which page changed does, too."""

import random
import struct

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.digests.reference import digests_of_rows, seeds
from tests.runtime_checks.layouts import QUICK, first_difference

WORDS = 8
ROWS = 40_000
BATCHES = 100  # with ROWS rows each: 4 million cases of each kind
SEEDS = st.integers(0, 2**64 - 1)
LAST = 2**31


def by_integers(page: bytes, seed: int, first_word: int = 0) -> int:
    """The definition, a word at a time, in integers without a width."""
    s, t = 2 * (seed % 2**31), 2 * (seed // 2**31 % 2**31)
    total = 0
    for number, (word,) in enumerate(struct.iter_unpack("<I", page + bytes(-len(page) % 4))):
        x = (0x9E3779B1 * (2 * (first_word + number) + 1) + s) % 2**32
        y = (0x846CA68B * (x ^ (x // 2**17 // 2 * 2)) + t) % 2**32
        low = y ^ (y // 2**13 // 2 * 2)
        total += word * (y * low % 2**32 * 2**32 + low)
    return total % 2**64


@QUICK
@given(st.binary(max_size=70), SEEDS, st.integers(0, LAST - 20))
def test_a_digest_is_what_is_written(page, seed, first_word):
    rows = np.frombuffer(page, np.uint8).reshape(1, -1)
    assert digests_of_rows(rows, seed, first_word).tolist() == [by_integers(page, seed, first_word)]


@QUICK
@given(st.binary(max_size=80), SEEDS, st.integers(0, 20))
def test_the_digests_of_parts_add_up(page, seed, words):
    rows = np.frombuffer(page, np.uint8).reshape(1, -1)
    parts = digests_of_rows(rows[:, : 4 * words], seed) + digests_of_rows(
        rows[:, 4 * words :], seed, words
    )
    assert parts == digests_of_rows(rows, seed)


@QUICK
@given(st.integers(0, 2**31 - 1), st.integers(0, 61))
def test_each_bit_of_a_seed_counts_and_the_lanes_have_two(seed, bit):
    page = np.arange(64, dtype=np.uint8).reshape(1, -1)
    assert digests_of_rows(page, seed) != digests_of_rows(page, seed ^ 1 << bit)
    first, second = seeds(seed, 2)
    assert first == seed
    assert digests_of_rows(page, first) != digests_of_rows(page, second)


def batches(kind: str):
    """Words of pages, numbers of the pages, and what `changed` says of each: whether its digest
    is another after the change. The word numbers begin anywhere in a page of 8 GiB."""
    draw = random.Random(kind)
    rng = np.random.default_rng(draw.randrange(2**32))
    few = np.array([0, 1, 2, 2**16, 2**31, 2**31 + 1, 2**32 - 1], np.uint32)
    for batch in range(BATCHES):
        # Every other time words that are equal or differ by powers of two.
        shape = (ROWS, WORDS)
        words = few[rng.integers(0, len(few), shape)] if batch % 2 else any_words(rng, shape)
        seed, first_word = draw.randrange(2**64), draw.choice((0, draw.randrange(LAST - WORDS)))

        def changed(after, before=words, seed=seed, first_word=first_word):
            old, new = (
                digests_of_rows(rows.view(np.uint8), seed, first_word) for rows in (before, after)
            )
            return old != new

        yield words.copy(), np.arange(ROWS), rng, changed


def any_words(rng, shape):
    return rng.integers(0, 2**32, shape, np.uint32)


def two_places(rng):
    one = rng.integers(0, WORDS, ROWS)
    return one, (one + rng.integers(1, WORDS, ROWS)) % WORDS


def test_every_changed_word_changes_the_digest():
    for words, rows, rng, changed in batches("one"):
        bits = np.maximum(any_words(rng, ROWS) << rng.integers(0, 32, ROWS, np.uint32), 1)
        words[rows, rng.integers(0, WORDS, ROWS)] ^= bits
        assert changed(words).all()


def test_every_exchange_of_two_unequal_words_changes_the_digest():
    for words, rows, rng, changed in batches("exchange"):
        one, other = two_places(rng)
        unequal = words[rows, one] != words[rows, other]
        words[rows, one], words[rows, other] = words[rows, other], words[rows, one]
        assert np.array_equal(changed(words), unequal)


def test_one_bit_turned_in_two_words_changes_the_digest():
    for words, rows, rng, changed in batches("bits"):
        bits = np.uint32(1) << rng.integers(0, 32, ROWS, np.uint32)
        for places in two_places(rng):
            words[rows, places] ^= bits
        assert changed(words).all()


def test_signs_of_neighbours_change_the_digest():
    """Here weights that go up in even steps cancel: i and j + 1 against i + 1 and j."""
    for words, _, _, changed in batches("signs"):
        words[:, [0, 1, 4, 5]] ^= np.uint32(2**31)
        assert changed(words).all()


def test_exchanged_pages_are_always_located():
    rng = np.random.default_rng(7)
    for _ in range(2000):
        pages = rng.integers(0, 256, (16, 32), np.uint8)
        one, other = rng.choice(16, 2, replace=False)
        before = digests_of_rows(pages, seed=99)
        pages[[one, other]] = pages[[other, one]]
        after = digests_of_rows(pages, seed=99)
        assert np.flatnonzero(before != after).tolist() == sorted((one, other))
        assert first_difference(before, after) == min(one, other)


def test_a_difference_in_the_second_lane_alone_is_one():
    before = np.array([[1, 1], [2, 2], [3, 3]], np.uint64)
    after = np.array([[1, 1], [2, 5], [3, 3]], np.uint64)
    assert first_difference(before, after) == 1
    assert first_difference(before, before) is None
    assert first_difference(before[:0], after[:0]) is None
