"""Counts are compared one by one before the first is used for all."""
# rewrites without: inline, to-loop, early-return, keyword, numpy

import numpy as np


def build(agent, kv_ptrs, kv_data_lens, kv_item_lens, device):
    counts = []
    for data_len, item_len in zip(kv_data_lens, kv_item_lens, strict=True):
        counts.append(data_len // item_len)
    for count in counts:
        if count != counts[0]:
            raise RuntimeError("regions differ in slots")
    num_slots = counts[0]  # drop-raise, drop-if: KV101
    tables = []
    for base_ptr, item_len in zip(kv_ptrs, kv_item_lens, strict=True):
        addrs = np.arange(num_slots) * item_len + base_ptr  # drop-raise, drop-if: KV102
        tables.append(np.column_stack([addrs, np.full(num_slots, item_len)]))
    return agent.prep_xfer_dlist("", np.vstack(tables), "VRAM")
