"""Rows of a latent cache pack values, scales and positions; the width is added up."""
# rewrites without: inline, to-comprehension, to-loop, early-return, keyword, alias, numpy, swap


class LatentRows:
    def __init__(self, agent, kv_caches, kv_lora_rank, scale_bytes, rope_bytes):
        self.agent = agent
        self.kv_caches = kv_caches
        self.row_bytes = kv_lora_rank + scale_bytes + rope_bytes

    def describe(self, slots, device):
        triples = []
        for cache in self.kv_caches:
            base_ptr = cache.data_ptr()
            for slot in slots:
                row_ptr = base_ptr + slot * self.row_bytes  # fixed-width: KV202
                triples.append((row_ptr, self.row_bytes, device))
        return self.agent.get_xfer_descs(triples, "VRAM")
