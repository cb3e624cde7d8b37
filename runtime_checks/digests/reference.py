"""What the digest of a page is.

    D = sum over i of w_i * a_i mod 2^64      w_i: the page's i-th 32-bit word, little-endian,
                                              zeros after the last byte, to a whole word
    a_i = high_i << 32 | low_i
    x = A (2 i + 1) + s                       all mod 2^32; A and B odd, s and t even: 31 bits of
    y = B (x ^ (x >> 17 & ~1)) + t            the seed each, one place up
    low = y ^ (y >> 13 & ~1)
    high = y * low

Certain, whatever the seed, for a page below 8 GiB (2^31 words). Each step from 2 i + 1 to low
takes odd numbers to odd numbers and can be undone, so the low_i are odd and all different:

* One changed word changes D by d * a_i, with d not 0 and below 2^32 in size, a_i odd.
* Two words exchanged change D by (a_i - a_j) (w_j - w_i). low_i - low_j is not 0 mod 2^32, so the
  first factor has at most 31 factors of two, as has the second: together fewer than 64.
* One bit flipped in two words changes D by 2^b (a_i - a_j) or 2^b (a_i + a_j), b at most 31. So do
  these: where low_i + low_j is 2^32, the sum is (high_i + high_j + 1) 2^32, and every high is odd.

The rest is likely only: any other change is missed once in 2^64, what changes nothing but the
uppermost bit of some words once in 2^32, or, in the rectangles that the mix takes worst, about once
in 2^23. Why low is mixed, too: with a low of 2 i + 1 the signs of words i, i + 1, j and j + 1 could
all be turned and no seed would show it. The digest is no signature: it is meant for accidents.

D is linear: the digests of two parts of a page, each with its own word numbers, add up to that of
the page, in any order. Zeros count nothing, so a page of zeros has digest 0, and pages of different
lengths that only differ by zeros at the end have the same.
"""

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

Digests = NDArray[np.uint64]

WORD: Final = 4
MULTIPLIERS: Final = (0x9E3779B1, 0x846CA68B)
SHIFTS: Final = (17, 13)
_EVEN: Final = np.uint32(0xFFFFFFFE)
_SECOND: Final = 0x6A09E667F3BCC909


def digests_of_rows(rows: NDArray[np.uint8], seed: int = 0, first_word: int = 0) -> Digests:
    """(n,) of the rows of an (n, length) array; `first_word` is the number of its first word."""
    spare = -rows.shape[1] % WORD
    padded = np.pad(rows, ((0, 0), (0, spare))) if spare else np.ascontiguousarray(rows)
    words = padded.view(np.uint32).astype(np.uint64)
    # An einsum of whole numbers keeps no products, and is ten times as fast.
    count = words.shape[1]
    own = weights(first_word, count, seed) if first_word else _weights_of_pages(count, seed)
    summed: Digests = np.einsum("ij,j->i", words, own)
    return summed


@lru_cache(4)
def _weights_of_pages(count: int, seed: int) -> Digests:
    """Pages of one length come again and again."""
    return weights(0, count, seed)


def weights(first: int, count: int, seed: int = 0) -> Digests:
    """(count,) a_i of the words from number `first` on."""
    multiplier, other = map(np.uint32, MULTIPLIERS)
    shift, second_shift = map(np.uint32, SHIFTS)
    added, added_later = (np.uint32(2 * key) for key in keys(seed))
    odd = (np.arange(first, first + count, dtype=np.uint64) * 2 + 1).astype(np.uint32)
    x = odd * multiplier + added
    y = (x ^ (x >> shift & _EVEN)) * other + added_later
    low = y ^ (y >> second_shift & _EVEN)
    high = y * low
    return high.astype(np.uint64) << np.uint64(32) | low


def keys(seed: int) -> tuple[int, int]:
    """The two parts of a seed that count, 31 bits each."""
    return seed & 0x7FFFFFFF, seed >> 31 & 0x7FFFFFFF


def seeds(seed: int, count: int) -> tuple[int, ...]:
    """The seeds of the first `count` (1 or 2) lanes: a digest of 128 bits is two of 64, the second
    with a seed that follows from the first's."""
    return (seed, (seed * MULTIPLIERS[0] ^ _SECOND) & (1 << 62) - 1)[:count]
