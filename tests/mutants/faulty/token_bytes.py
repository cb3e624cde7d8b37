"""The bytes of a token decide how many fit: values of one byte, positions of two, scales of four."""
# rewrites without: inline, to-comprehension, to-loop, early-return, keyword, numpy, swap

import torch


class TokenBudget:
    def __init__(self, nope_dim, rope_dim, group):
        self.nope_dim = nope_dim
        self.rope_dim = rope_dim
        self.group = group

    def bytes_per_token(self):
        values = self.nope_dim + self.rope_dim * 2  # KV201
        return values + self.nope_dim // self.group * 4  # KV201

    def allocate(self, free_bytes, device):
        tokens = int(free_bytes) // self.bytes_per_token()
        row = self.bytes_per_token()
        kv_cache = torch.zeros((tokens, row), dtype=torch.uint8, device=device)
        return kv_cache, kv_cache.data_ptr()
