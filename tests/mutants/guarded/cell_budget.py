"""How many tokens fit a budget of bytes; K and V count twice, which is no element size."""
# rewrites without: to-comprehension, to-loop, early-return, numpy, swap

import torch


def tokens_that_fit(free_bytes, num_layers, head_num, head_dim, kv_cache_dtype, index_row):
    element_size = torch._utils._element_size(kv_cache_dtype)
    kv_size = head_num * head_dim * num_layers * 2 * element_size  # element-size: KV201
    cell_size = kv_size + index_row.nbytes
    return free_bytes // cell_size


class Pool:
    def __init__(self, tokens, num_layers, head_num, head_dim, kv_cache_dtype, device):
        shape = (tokens, head_num, head_dim)
        self.k_buffer = [self._rows(shape, kv_cache_dtype, device) for _ in range(num_layers)]
        self.v_buffer = [self._rows(shape, kv_cache_dtype, device) for _ in range(num_layers)]

    def _rows(self, shape, dtype, device):
        return torch.zeros(shape, dtype=dtype, device=device)
