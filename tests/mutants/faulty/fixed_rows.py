"""Rows of a packed cache are as wide as one model had them, in a field."""
# rewrites without: inline, to-comprehension, to-loop, early-return, keyword, numpy

import numpy as np


class PackedCache:
    def __init__(self, agent, kv_caches, device):
        self.agent = agent
        self.kv_caches = kv_caches
        self.row_bytes = 584
        self.device = device if device is not None else 0

    def describe(self, slots):
        tables = []
        for cache in self.kv_caches:
            base_addr = cache.data_ptr()
            addrs = base_addr + slots.astype(np.uint64) * self.row_bytes  # KV202
            lengths = np.full(len(slots), self.row_bytes)
            tables.append(np.column_stack([addrs, lengths, np.full(len(slots), self.device)]))
        return self.agent.get_xfer_descs(np.vstack(tables), "VRAM")
