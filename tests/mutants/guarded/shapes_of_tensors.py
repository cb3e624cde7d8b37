"""Shapes of tensors collected in a set; more than one is refused by a method."""
# rewrites without: to-comprehension, to-loop, early-return, keyword, alias, numpy, walrus


class Exchange:
    def __init__(self, agent, kv_caches, device):
        self.agent = agent
        self.kv_caches = kv_caches
        self.device = device
        self.check_shapes()
        self.num_blocks = kv_caches[0].shape[0]  # drop-raise, drop-if, set-size: KV101

    def check_shapes(self):
        if len({cache.shape for cache in self.kv_caches}) != 1:
            raise ValueError("caches differ in shape")

    def blocks(self, block_len):
        triples = []
        for cache in self.kv_caches:
            base_addr = cache.data_ptr()
            for block_id in range(self.num_blocks):  # drop-raise, drop-if, set-size: KV102
                triples.append((base_addr + block_id * block_len, block_len, self.device))
        return self.agent.get_xfer_descs(triples, "VRAM")
