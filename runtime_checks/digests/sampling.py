"""Which requests are digested: the same on both sides, without a word between them."""

import hashlib
from typing import Final

OF: Final = 16


def seed_of(shared: bytes) -> int:
    """The seed, of 64 bits, of all who share these bytes."""
    return int.from_bytes(hashlib.blake2b(shared, digest_size=8, person=b"kvlint seed").digest())


def sampled(request: bytes, seed: int) -> bool:
    """Whether a request is among the one in sixteen."""
    key = seed.to_bytes(8)
    digest = hashlib.blake2b(request, digest_size=8, key=key, person=b"kvlint sample").digest()
    return int.from_bytes(digest) % OF == 0
