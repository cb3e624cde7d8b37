"""Host memory as numpy arrays: strides in bytes say where a block starts."""
# rewrites without: inline, to-comprehension, to-loop, early-return, keyword, numpy, swap

import numpy as np


def host_blocks(agent, base_addrs, host_caches, block_ids):
    runs = []
    for base_addr, cache in zip(base_addrs, host_caches, strict=True):
        addrs = base_addr + block_ids.astype(np.uint64) * cache.strides[0]  # stride-length: KV205
        lengths = np.full(len(block_ids), cache[0].nbytes)
        runs.append(np.column_stack([addrs, lengths, np.zeros_like(lengths)]))
    return agent.get_xfer_descs(np.vstack(runs), "DRAM")
