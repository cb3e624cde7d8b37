"""Tags: digests that know whose they are, so that right bytes in the wrong place do not match.

A tag is the digest of a page with its identity and its ordinal mixed in, and gives it back: of a
tag that does not match, `contents` under another page's identity is that page's digest where the
bytes are that page's. Pages of zeros have digest 0 (see `reference`), so they can be counted, too.
"""

from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvlint.runtime_checks.digests.reference import Digests

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)


def identity(
    pool: str, layer: int | None, role: str, dtype: str, length: int, *more: object
) -> int:
    """64 bits for what a page is meant to be, the same in every process: the list or pool, layer,
    role ("k", "index"), dtype as torch has it, bytes of a page, and whatever else tells pages
    apart, by its `repr`."""
    told = repr((pool, layer, role, dtype, length, *more)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(told, digest_size=8, person=b"kvlint-page").digest(), "little")


def tags(digests: Digests, identities: Digests, ordinals: NDArray[np.integer]) -> Digests:
    """(N,) of (N,) digests, the identities of their pages and their ordinals, which tell pages of
    one identity apart."""
    return digests ^ _masks(identities, ordinals)


def contents(tags: Digests, identities: Digests, ordinals: NDArray[np.integer]) -> Digests:
    """(N,) the digests that were tagged, if these were the identities and ordinals."""
    return tags ^ _masks(identities, ordinals)


def _masks(identities: Digests, ordinals: NDArray[np.integer]) -> Digests:
    """The n-th numbers of generators that begin at the identities (splitmix64, Steele et al.,
    OOPSLA 2014)."""
    mask = np.asarray(identities, np.uint64) + (ordinals.astype(np.uint64) + np.uint64(1)) * _STEP
    mask = (mask ^ (mask >> np.uint64(30))) * _FIRST
    mask = (mask ^ (mask >> np.uint64(27))) * _SECOND
    mixed: Digests = mask ^ (mask >> np.uint64(31))
    return mixed
