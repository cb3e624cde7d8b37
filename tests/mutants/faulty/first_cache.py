"""Blocks of all caches by the shape of the first, in nested loops."""
# rewrites without: inline, to-comprehension, to-loop, early-return, keyword, numpy

import math

import torch


class Blocks:
    def __init__(self, agent, device):
        self.agent = agent
        self.device = device

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor], transposed: bool):
        first = next(iter(kv_caches.values()))
        num_blocks = first.shape[1] if transposed else first.shape[0]  # KV101
        block_len = first.element_size() * math.prod(first.shape[2:])
        triples = []
        for cache in kv_caches.values():
            base_addr = cache.data_ptr()
            for block_id in range(num_blocks):  # KV102
                addr = base_addr + block_id * block_len  # KV205
                triples.append((addr, block_len, self.device))
        return self.agent.get_xfer_descs(triples, "VRAM")
