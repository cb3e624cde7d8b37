"""Two pools whose buffers are handed over in one list count their pages by one helper."""
# rewrites without: early-return, numpy, to-comprehension, swap

import torch


def count_pages(size, page_size):
    return (size + page_size + 1) // page_size


class KeyPool:
    def __init__(self, size, page_size, row_bytes, num_layers):
        num_pages = count_pages(size, page_size)
        self.page_size = page_size
        self.kv_buffer = [
            torch.zeros(num_pages, page_size * row_bytes, dtype=torch.uint8)
            for _ in range(num_layers)
        ]


class IndexPool:
    def __init__(self, size, page_size, row_bytes, num_layers):
        num_pages = count_pages(size, page_size)  # own-formula: KV105
        self.page_size = page_size
        self.index_buffer = [
            torch.zeros(num_pages, page_size * row_bytes, dtype=torch.uint8)
            for _ in range(num_layers)
        ]


class Pools:
    def __init__(self, size, page_size, num_layers, row_bytes):
        self.kv_pool = KeyPool(size, page_size, row_bytes, num_layers)
        self.index_pool = IndexPool(size * 4, page_size * 2, row_bytes // 4, num_layers)

    def buffers(self):
        return [*self.kv_pool.kv_buffer, *self.index_pool.index_buffer]

    def buffer_infos(self):
        data_ptrs = [buffer.data_ptr() for buffer in self.buffers()]
        data_lens = [buffer.nbytes for buffer in self.buffers()]
        item_lens = [buffer[0].nbytes for buffer in self.buffers()]
        return data_ptrs, data_lens, item_lens
