"""The minimum is a local of the function that builds the list and indexes it."""
# rewrites without: inline, to-comprehension, to-loop, early-return, keyword, swap

import numpy as np


def post(agent, kv_ptrs, kv_data_lens, kv_item_lens, pages, peer):
    least = min(
        data_len // item_len  # min-first: KV101
        for data_len, item_len in zip(kv_data_lens, kv_item_lens, strict=True)
    )
    tables = []
    for base_ptr, item_len in zip(kv_ptrs, kv_item_lens, strict=True):
        addrs = np.arange(least) * item_len + base_ptr  # min-first: KV102
        tables.append(np.column_stack([addrs, np.full(least, item_len), np.full(least, 0)]))
    handle = agent.prep_xfer_dlist("", np.vstack(tables), "VRAM")
    indices = (np.arange(len(kv_ptrs))[:, None] * least + pages[None, :]).ravel()
    return agent.make_prepped_xfer("READ", handle, indices, peer.handle, peer.indices)
