"""What the digest of a page is.

    D = sum over i of w_i * a_i mod 2^64        w_i: the page's i-th 32-bit word, little-endian
    a_i = (mixed(i) ^ seed) << 33 | (2 i + 1)    zeros after the last byte, to a whole word

Every a_i is odd, so one changed word always changes D. Two words exchanged change it by
(a_i - a_j) (w_j - w_i): the first factor is 2 (i - j) mod 2^33, the second below 2^32, so that
together they hold fewer than 64 factors of two. The seed keeps anybody who does not know it from
choosing bytes that collide.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Digests = NDArray[np.uint64]

WORD: Final = 4
_ROUND: Final = 0x9E3779B97F4A7C15
_UPPER: Final = 0x7FFFFFFF


def digests_of_rows(rows: NDArray[np.uint8], seed: int = 0, first_word: int = 0) -> Digests:
    """(n,) of the rows of an (n, length) array; `first_word` is the number of its first word."""
    spare = -rows.shape[1] % WORD
    words = np.pad(rows, ((0, 0), (0, spare))).view(np.uint32).astype(np.uint64)
    products = words * weights(first_word, words.shape[1], seed)
    summed: Digests = products.sum(axis=1, dtype=np.uint64)
    return summed


def weights(first: int, count: int, seed: int = 0) -> Digests:
    """(count,) of the words from number `first` on."""
    position = np.arange(first, first + count, dtype=np.uint64)
    mixed = (position * np.uint64(_ROUND)) >> np.uint64(33)
    upper = mixed ^ np.uint64(seed & _UPPER)
    return (upper << np.uint64(33)) | (position * np.uint64(2) + np.uint64(1))


def first_difference(before: Digests, after: Digests) -> int | None:
    """The first position whose digest changed."""
    changed = np.flatnonzero(before != after)
    return int(changed[0]) if len(changed) else None
