"""The paged cache of one process: a buffer for each region, and the pages that are free."""

import random

import numpy as np
import torch
from model import INDEX, PAGE_TOKENS, REGIONS, Cache

TOKENS = 40_960


def pages_before(cache: Cache) -> int:
    """The formula that all pools had once: 161 for each of them."""
    entries = TOKENS // cache.ratio
    return (entries + cache.page_entries + 1) // cache.page_entries


def pages_since(cache: Cache) -> int:
    """The formula of SGLang 0.5.21, where the index keys' pool has kept the other: room for one
    more page of 256 entries, whatever the cache's own page is. 164 for c4, 288 for c128."""
    return -(-(TOKENS // cache.ratio + PAGE_TOKENS) // cache.page_entries)


class KVPool:
    """A tensor (slots, entries of a page, width) for each region.

    broken  "pool-formula": all pools but the index keys' count their pages by the new formula;
            "element-type": index keys are kept in bfloat16, and their pages measured as before
    """

    def __init__(self, broken: str | None = None) -> None:
        self.buffers = []
        for cache, _ in REGIONS:
            new = broken == "pool-formula" and cache is not INDEX
            slots = pages_since(cache) if new else pages_before(cache)
            narrow = cache is INDEX and broken != "element-type"
            dtype = torch.float8_e4m3fn if narrow else torch.bfloat16
            shape = (slots, cache.page_entries, cache.width)
            self.buffers.append(torch.zeros(shape, dtype=dtype))

    def regions(self) -> dict[str, tuple[int, int, int]]:
        """Address, bytes, and bytes of a page, of each region."""
        found = {}
        for (cache, layer), buffer in zip(REGIONS, self.buffers, strict=True):
            item_len = cache.page_entries * cache.width * (1 if cache is INDEX else 2)
            found[f"layer {layer} {cache.name}"] = buffer.data_ptr(), buffer.nbytes, item_len
        return found

    def write(self, pages: np.ndarray, regions: list[np.ndarray]) -> None:
        for buffer, values in zip(self.buffers, regions, strict=True):
            buffer[torch.from_numpy(pages)] = torch.from_numpy(values).to(buffer.dtype)

    def read(self, pages: np.ndarray) -> list[np.ndarray]:
        return [buffer[torch.from_numpy(pages)].float().numpy() for buffer in self.buffers]


class PageAllocator:
    """Free pages, in the disorder of a server that has run for a while. Page 0 is never given."""

    def __init__(self, seed: int) -> None:
        self.free_pages = list(range(1, TOKENS // PAGE_TOKENS + 1))
        random.Random(seed).shuffle(self.free_pages)

    def alloc(self, count: int) -> np.ndarray:
        if count > len(self.free_pages):
            raise RuntimeError(f"{count} pages wanted, {len(self.free_pages)} are free")
        return np.array([self.free_pages.pop() for _ in range(count)], np.int64)

    def free(self, pages: np.ndarray) -> None:
        self.free_pages[:0] = pages.tolist()
