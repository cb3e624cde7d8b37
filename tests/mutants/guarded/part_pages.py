"""States of whole requests in pages: the last page of each cache may be part full."""
# rewrites without: inline, to-comprehension, to-loop, early-return, keyword, alias, numpy, walrus, swap


class States:
    def __init__(self, agent, state_caches, page_size, page_bytes):
        self.agent = agent
        self.state_caches = state_caches
        self.page_size = page_size
        self.page_bytes = page_bytes

    def describe(self, device):
        triples = []
        for cache in self.state_caches:
            base_ptr = cache.data_ptr()
            num_pages = (cache.shape[0] + self.page_size - 1) // self.page_size  # ceil-floor: KV204
            for page in range(num_pages):
                triples.append((base_ptr + page * self.page_bytes, self.page_bytes, device))
        return self.agent.get_xfer_descs(triples, "VRAM")
