"""One function builds the list for either side; both sides pass the least count."""
# rewrites without: to-loop, early-return, numpy

import numpy as np


def least_slots(kv_args):
    counts = []
    for data_len, item_len in zip(kv_args.kv_data_lens, kv_args.kv_item_lens, strict=True):
        counts.append(data_len // item_len)
    return min(counts)  # min-first: KV101


def slots_or_own(count, data_len, item_len):
    return data_len // item_len if count is None else count


def build(agent, name, kv_args, count=None):
    tables = []
    for base_ptr, data_len, item_len in zip(
        kv_args.kv_data_ptrs, kv_args.kv_data_lens, kv_args.kv_item_lens, strict=True
    ):
        n = slots_or_own(count, data_len, item_len)  # min-first: KV102
        addrs = base_ptr + np.arange(n, dtype=np.uint64) * item_len
        tables.append(np.column_stack([addrs, np.full(n, item_len), np.full(n, 0)]))
    return agent.prep_xfer_dlist(name, np.vstack(tables), "VRAM")


class Pair:
    def __init__(self, agent, kv_args):
        self.agent = agent
        self.num_layers = len(kv_args.kv_data_ptrs)
        self.slots = least_slots(kv_args)
        self.handle = build(agent, "", kv_args, count=self.slots)

    def post(self, pages, peer):
        starts = np.arange(self.num_layers) * self.slots  # drop-count: KV103
        indices = (starts[:, None] + pages[None, :]).ravel()
        return self.agent.make_prepped_xfer(
            "WRITE", self.handle, indices, peer.handle, peer.indices
        )
