"""What is cached, and the answer: a model small enough that every byte of its cache counts.

A token is a byte of the prompt. Each layer has three caches, as DeepSeek-V4 has: an entry for
every 4 tokens, an index key for every 4 tokens, and an entry for every 128 tokens. The answer
is a digest of all that was cached, in words: one wrong page is another answer.
"""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

PAGE_TOKENS = 256
LAYERS = 3
WORDS = "amber birch cedar delta ember fjord grove heron iris jade kelp lotus maple north opal pine"


@dataclass(frozen=True)
class Cache:
    """One of the three; `ratio` tokens share an entry of `width` numbers."""

    name: str
    ratio: int
    width: int

    @property
    def page_entries(self) -> int:
        return PAGE_TOKENS // self.ratio


# Pages of all three have 2,048 bytes, with index keys in 8 bits and the others in 16: NIXL, which
# compares lengths, then sees nothing where one lands in another's place.
C4 = Cache("c4", 4, 16)
INDEX = Cache("index key", 4, 32)
C128 = Cache("c128", 128, 512)
REGIONS = [(cache, layer) for cache in (C4, INDEX, C128) for layer in range(LAYERS)]


def tokenize(prompt: str) -> np.ndarray:
    return np.frombuffer(prompt.encode(), np.uint8).astype(np.int64)


def pages_of(num_tokens: int) -> int:
    return max(1, -(-num_tokens // PAGE_TOKENS))


def computed(tokens: np.ndarray) -> list[np.ndarray]:
    """The cache of a prompt: for each region (pages, entries of a page, width) of 0 to 15, which
    every element type can hold."""
    padded = np.zeros(pages_of(len(tokens)) * PAGE_TOKENS, np.int64)
    padded[: len(tokens)] = tokens + 1
    weighted = padded * (np.arange(len(padded)) + 257) + np.arange(len(padded))
    regions = []
    for number, (cache, _) in enumerate(REGIONS, 1):
        entries = weighted.reshape(-1, cache.ratio).sum(axis=1)
        mixed = entries[:, None] * 40_503 + np.arange(cache.width) * 977 + number * 8191
        values = (mixed ^ mixed >> 7) % 16
        regions.append(values.reshape(-1, cache.page_entries, cache.width))
    return regions


def answer(regions: list[np.ndarray]) -> str:
    """Eight words."""
    digest = blake2b(digest_size=8)
    for values in regions:
        digest.update(values.astype(np.float32).tobytes())
    words = WORDS.split()
    return " ".join(words[byte % len(words)] for byte in digest.digest())


def expected(prompt: str) -> str:
    """The answer, without a cache that was ever moved."""
    return answer(computed(tokenize(prompt)))
