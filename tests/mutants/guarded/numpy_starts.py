"""Arrays of descriptors, region after region, indexed by cumulative starts."""
# rewrites without: inline, to-comprehension, early-return, keyword, swap

import numpy as np


def post(agent, kv_ptrs, kv_data_lens, kv_item_lens, pages, peer):
    counts = [
        data_len // item_len for data_len, item_len in zip(kv_data_lens, kv_item_lens, strict=True)
    ]
    tables = []
    for base_ptr, item_len, n in zip(kv_ptrs, kv_item_lens, counts, strict=True):
        addrs = base_ptr + np.arange(n, dtype=np.uint64) * item_len
        tables.append(np.column_stack([addrs, np.full(n, item_len), np.full(n, 0)]))
    handle = agent.prep_xfer_dlist("", np.vstack(tables), "VRAM")
    starts = np.cumsum([0, *counts[:-1]])  # starts-stride: KV101, KV103
    indices = (starts[:, None] + pages[None, :]).ravel()
    return agent.make_prepped_xfer("READ", handle, indices, peer.handle, peer.indices)
