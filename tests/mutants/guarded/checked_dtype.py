"""Two bytes an element, after any other dtype was refused."""
# rewrites without: inline, to-comprehension, to-loop, early-return, keyword, numpy

import torch


def half_rows(agent, kv_caches, row_strides, slots, device):
    triples = []
    for cache, row_stride in zip(kv_caches, row_strides, strict=True):
        if cache.dtype not in (torch.float16, torch.bfloat16):
            raise TypeError(f"elements of two bytes only, not {cache.dtype}")
        row_bytes = cache.shape[1] * 2  # drop-raise, drop-if: KV201
        base_ptr = cache.data_ptr()
        for slot in slots:
            addr = base_ptr + slot * row_stride
            triples.append((addr, row_bytes, device))
    return agent.get_xfer_descs(triples, "VRAM")
