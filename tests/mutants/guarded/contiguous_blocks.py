"""Blocks lie edge to edge, which is asserted of each cache before its length is a stride."""
# rewrites without: inline, to-comprehension, to-loop, keyword, alias, numpy, swap


class BlockTable:
    def __init__(self, agent, kv_caches, device):
        self.agent = agent
        self.kv_caches = kv_caches
        self.device = device

    def describe(self, block_ids):
        triples = []
        for cache in self.kv_caches:
            assert cache.is_contiguous(), "blocks are padded"
            base_addr, block_len = cache.data_ptr(), cache[0].nbytes
            for block_id in block_ids:
                addr = base_addr + block_id * block_len  # drop-assert: KV205
                triples.append((addr, block_len, self.device))
        return self.agent.get_xfer_descs(triples, "VRAM")
