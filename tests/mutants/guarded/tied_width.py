"""The width of a packed row is a literal, and an assert ties it to its parts."""
# rewrites without: inline, to-comprehension, to-loop, keyword, alias, numpy, swap


class PackedRows:
    def __init__(self, agent, kv_caches, kv_lora_rank, scale_bytes, rope_bytes):
        assert kv_lora_rank + scale_bytes + rope_bytes == 656
        self.agent = agent
        self.kv_caches = kv_caches
        self.row_bytes = 656

    def describe(self, slots, device):
        triples = []
        for cache in self.kv_caches:
            base_ptr = cache.data_ptr()
            for slot in slots:
                row_ptr = base_ptr + slot * self.row_bytes  # drop-assert: KV202
                triples.append((row_ptr, self.row_bytes, device))
        return self.agent.get_xfer_descs(triples, "VRAM")
