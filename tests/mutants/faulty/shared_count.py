"""The slot count of the first region is handed to a function that builds all of them."""
# rewrites without: to-comprehension, to-loop, early-return, numpy, swap

import numpy as np


def slots_of(data_len, item_len):
    return data_len // item_len


def make_tables(kv_ptrs, kv_item_lens, num_slots, device):
    tables = []
    for base_ptr, item_len in zip(kv_ptrs, kv_item_lens, strict=True):
        addrs = np.arange(num_slots, dtype=np.uint64) * item_len + base_ptr  # KV102
        device_column = np.full(num_slots, device)
        tables.append(np.column_stack([addrs, np.full(num_slots, item_len), device_column]))
    return np.vstack(tables)


def prepare(agent, kv_args, name):
    num_slots = slots_of(kv_args.kv_data_lens[0], kv_args.kv_item_lens[0])  # KV101
    tables = make_tables(kv_args.kv_data_ptrs, kv_args.kv_item_lens, num_slots, kv_args.device)
    return agent.prep_xfer_dlist(name, tables, "VRAM")
