"""A list with each region's own count, indexed as if all had the count of the first."""
# rewrites without: inline, to-comprehension, to-loop, early-return, numpy

import numpy as np


def over_layers(pages, num_layers, layer_length):
    starts = np.arange(num_layers) * layer_length
    return (starts[:, None] + pages[None, :]).ravel()


class Channel:
    def __init__(self, agent, kv_args):
        self.agent = agent
        self.kv_args = kv_args
        self.first_slots = kv_args.kv_data_lens[0] // kv_args.kv_item_lens[0]  # KV101
        self.handle = self.prepare(None)

    def prepare(self, num_slots):
        tables = []
        for base_ptr, data_len, item_len in zip(
            self.kv_args.kv_data_ptrs,
            self.kv_args.kv_data_lens,
            self.kv_args.kv_item_lens,
            strict=True,
        ):
            if num_slots is None:
                n = data_len // item_len
            else:
                n = num_slots
            addrs = base_ptr + np.arange(n, dtype=np.uint64) * item_len
            tables.append(np.column_stack([addrs, np.full(n, item_len), np.full(n, 0)]))
        return self.agent.prep_xfer_dlist("", np.vstack(tables), "VRAM")

    def post(self, pages, peer):
        num_layers = len(self.kv_args.kv_data_ptrs)
        indices = over_layers(pages, num_layers, self.first_slots)  # KV103
        return self.agent.make_prepped_xfer(
            "WRITE", self.handle, indices, peer.handle, peer.indices
        )
