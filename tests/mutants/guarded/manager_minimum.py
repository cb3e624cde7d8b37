"""A manager that prepares a list with the minimum and indexes it with the same number."""
# rewrites without: to-comprehension, to-loop, early-return

import numpy as np


def common_slots(kv_data_lens, kv_item_lens):
    return min(
        data_len // item_len  # min-first: KV101
        for data_len, item_len in zip(kv_data_lens, kv_item_lens, strict=True)
    )


def spread(pages, num_layers, layer_stride):
    return (np.arange(num_layers)[:, None] * layer_stride + pages[None, :]).ravel()


class Mover:
    def __init__(self, agent, kv_args):
        self.agent = agent
        self.kv_args = kv_args
        self.handle = None
        self.num_slots = common_slots(kv_args.kv_data_lens, kv_args.kv_item_lens)

    def connect(self, device):
        self.handle = self.prepare(self.kv_args.kv_data_ptrs, device, num_slots=self.num_slots)

    def prepare(self, kv_ptrs, device, num_slots=None):
        tables = []
        for base_ptr, data_len, item_len in zip(
            kv_ptrs, self.kv_args.kv_data_lens, self.kv_args.kv_item_lens, strict=True
        ):
            n = num_slots if num_slots is not None else data_len // item_len  # min-first: KV102
            addrs = np.arange(n, dtype=np.uint64) * item_len + base_ptr
            tables.append(np.column_stack([addrs, np.full(n, item_len), np.full(n, device)]))
        return self.agent.prep_xfer_dlist("", np.vstack(tables), "VRAM")

    def send(self, pages, peer_handle, peer_indices):
        num_layers = len(self.kv_args.kv_data_ptrs)
        indices = spread(pages, num_layers, self.num_slots)  # drop-count: KV103
        return self.agent.make_prepped_xfer(
            "WRITE", self.handle, indices, peer_handle, peer_indices
        )
