"""Pools of several ratios, and indices beside some of them, made and handed over by one class."""
# rewrites without: to-comprehension, early-return, numpy

import torch


def count_pages(size, page_size):
    return (size + page_size) // page_size + 1


class RatioPool:
    def __init__(self, size, page_size, num_layers, row_bytes=584):
        self.size = size
        self.page_size = page_size
        self.row_bytes = row_bytes
        pages = count_pages(self.size, self.page_size)
        self.kv_buffer = [self.create_buffer(num_pages=pages) for _ in range(num_layers)]

    def create_buffer(self, *, num_pages):
        return torch.zeros(num_pages, self.page_size * self.row_bytes, dtype=torch.uint8)


class IndexPool:
    def __init__(self, size, page_size, num_layers, row_bytes=132):
        self.size = size
        self.page_size = page_size
        self.num_pages = count_pages(self.size, self.page_size)  # own-formula: KV105
        self.key_buffer = []
        for _ in range(num_layers):
            shape = (self.num_pages, page_size * row_bytes)
            self.key_buffer.append(torch.zeros(shape, dtype=torch.uint8))

    def page_rows(self):
        return [buffer.view(torch.uint8) for buffer in self.key_buffer]


class RatioPools:
    def __init__(self, size, page_size, layers, indexed):
        self.page_size = page_size
        self.kv_pools = dict.fromkeys(layers)
        for ratio in layers:
            self.kv_pools[ratio] = self.make_pool(size // ratio, layers[ratio], RatioPool)
        self.index_pools = {
            ratio: self.make_pool(size // ratio, layers[ratio], IndexPool) for ratio in indexed
        }

    def make_pool(self, size, num_layers, cls):
        return cls(size, self.page_size, num_layers)

    def buffer_infos(self):
        data_ptrs, data_lens, item_lens = [], [], []

        def append_rows(buffer):
            data_ptrs.append(buffer.data_ptr())
            data_lens.append(buffer.nbytes)
            item_lens.append(buffer[0].nbytes)

        for ratio, pool in self.kv_pools.items():
            if pool is not None:
                for buffer in pool.kv_buffer:
                    append_rows(buffer)
            index_pool = self.index_pools.get(ratio)
            if index_pool is None:
                continue
            for buffer in index_pool.page_rows():
                append_rows(buffer)
        return data_ptrs, data_lens, item_lens
