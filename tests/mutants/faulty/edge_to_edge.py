"""Blocks of caches that may be views are taken to lie edge to edge."""
# rewrites without: inline, to-comprehension, to-loop, early-return, keyword, alias, numpy, swap


class Blocks:
    def __init__(self, agent, kv_caches, device):
        self.agent = agent
        self.kv_caches = kv_caches
        self.device = device

    def describe(self, block_ids):
        triples = []
        for cache in self.kv_caches:
            base_addr = cache.data_ptr()
            block_len = cache[0].numel() * cache.element_size()
            for block_id in block_ids:
                addr = base_addr + block_id * block_len  # KV205
                triples.append((addr, block_len, self.device))
        return self.agent.get_xfer_descs(triples, "VRAM")
