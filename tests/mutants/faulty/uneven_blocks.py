"""Blocks that do not share the bytes of their cache evenly are looked for too early."""
# rewrites without: inline, to-comprehension, to-loop, keyword, alias, numpy, walrus, swap


class Blocks:
    def __init__(self, agent, kv_caches, num_blocks):
        self.agent = agent
        self.kv_caches = kv_caches
        self.num_blocks = num_blocks

    def describe(self, block_ids, device):
        triples = []
        for cache in self.kv_caches:
            assert cache.is_contiguous(), "blocks are padded"
            base_addr = cache.data_ptr()
            block_len = cache.nbytes // self.num_blocks  # KV204
            for block_id in block_ids:
                triples.append((base_addr + block_id * block_len, block_len, device))
        return self.agent.get_xfer_descs(triples, "VRAM")
