"""Three pools that one request fills together, and that are handed over in one list.

Each pool has its own page formula, so a region of one has another slot count than a region
of the next: latent rows are rounded up, index keys keep a spare page, and the compressed
copy holds one slot for every `RATIO` tokens.
"""

import torch

RATIO = 4

Infos = tuple[list[int], list[int], list[int]]


class PagePool:
    """`num_pages` pages of `page_bytes` bytes for each layer."""

    def __init__(self, num_layers: int, num_pages: int, page_bytes: int, device: str) -> None:
        self.buffers = [
            torch.zeros((num_pages, page_bytes), dtype=torch.uint8, device=device)
            for _ in range(num_layers)
        ]

    def buffer_infos(self) -> Infos:
        """Addresses, lengths in bytes and page sizes in bytes, one of each a layer."""
        ptrs = [buffer.data_ptr() for buffer in self.buffers]
        data_lens = [buffer.nbytes for buffer in self.buffers]
        item_lens = [buffer[0].nbytes for buffer in self.buffers]
        return ptrs, data_lens, item_lens


class LatentPool(PagePool):
    def __init__(self, num_layers: int, tokens: int, page: int, device: str) -> None:
        super().__init__(num_layers, -(-tokens // page), page * 576, device)


class IndexKeyPool(PagePool):
    def __init__(self, num_layers: int, tokens: int, page: int, device: str) -> None:
        super().__init__(num_layers, (tokens + page + 1) // page, page * 132, device)


class CompressedPool(PagePool):
    def __init__(self, num_layers: int, tokens: int, page: int, device: str) -> None:
        super().__init__(num_layers, tokens // (page * RATIO), page * 584, device)


class CachePools:
    """All regions of one rank: the latent ones first, then index keys, then compressed."""

    def __init__(self, num_layers: int, tokens: int, page: int, device: str) -> None:
        self.latent = LatentPool(num_layers, tokens, page, device)
        self.index_keys = IndexKeyPool(num_layers, tokens, page, device)
        self.compressed = CompressedPool(num_layers, tokens, page, device)

    def buffer_infos(self) -> Infos:
        ptrs, data_lens, item_lens = self.latent.buffer_infos()
        for pool in (self.index_keys, self.compressed):
            more_ptrs, more_data_lens, more_item_lens = pool.buffer_infos()
            ptrs += more_ptrs
            data_lens += more_data_lens
            item_lens += more_item_lens
        return ptrs, data_lens, item_lens
