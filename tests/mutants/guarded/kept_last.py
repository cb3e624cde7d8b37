"""A loop keeps one block length for all caches and refuses any other."""
# rewrites without: inline, to-comprehension, to-loop, keyword, alias, numpy


class Registrar:
    def __init__(self, agent, device):
        self.agent = agent
        self.device = device
        self.block_len = None
        self.kv_base_addrs = []

    def register(self, kv_caches):
        for cache in kv_caches:
            assert cache.is_contiguous(), "blocks are padded"
            block_len = cache[0].nbytes
            if self.block_len is not None and self.block_len != block_len:
                raise ValueError("caches differ in block length")
            self.block_len = block_len  # drop-raise, drop-if: KV101
            self.kv_base_addrs.append(cache.data_ptr())

    def blocks(self, block_ids):
        triples = []
        for base_addr in self.kv_base_addrs:
            for block_id in block_ids:
                addr = base_addr + block_id * self.block_len  # drop-assert: KV205
                triples.append((addr, self.block_len, self.device))
        return self.agent.get_xfer_descs(triples, "VRAM")
