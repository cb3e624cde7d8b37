"""Two pools whose buffers are handed over in one list count their pages each in its own way."""
# rewrites without: early-return, numpy

import torch


class KeyPool:
    def __init__(self, size, page_size, row_bytes, num_layers):
        num_pages = (size + page_size) // page_size
        self.kv_buffer = []
        for _ in range(num_layers):
            self.kv_buffer.append(torch.zeros(num_pages, row_bytes, dtype=torch.uint8))


class IndexPool:
    def __init__(self, size, page_size, row_bytes, num_layers):
        num_pages = (size + page_size + 1) // page_size  # KV105
        shape = (num_pages, row_bytes) if row_bytes else (num_pages, 132)
        self.index_buffer = [torch.zeros(shape, dtype=torch.uint8) for _ in range(num_layers)]


class Pools:
    def __init__(self, size, page_size, num_layers):
        self.kv_pool = KeyPool(size, page_size, 584, num_layers)
        self.index_pool = IndexPool(size, page_size, 132, num_layers)

    def buffers(self):
        return self.kv_pool.kv_buffer + self.index_pool.index_buffer

    def buffer_infos(self):
        data_ptrs = [buffer.data_ptr() for buffer in self.buffers()]
        data_lens = [buffer.nbytes for buffer in self.buffers()]
        item_lens = []
        for buffer in self.buffers():
            item_lens.append(buffer[0].nbytes)
        return data_ptrs, data_lens, item_lens
