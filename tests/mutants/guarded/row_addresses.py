"""Rows of a padded cache: their places by the stride, their lengths by the width."""
# rewrites without: inline, to-comprehension, to-loop, early-return, keyword, alias, numpy, swap


class RowCopies:
    def __init__(self, agent, kv_caches, device):
        self.agent = agent
        self.kv_caches = kv_caches
        self.device = device

    def describe(self, slots):
        triples = []
        for cache in self.kv_caches:
            element_size = cache.element_size()
            base_ptr = cache.data_ptr()
            width = cache.shape[1] * element_size
            for slot in slots:
                addr = base_ptr + slot * cache.stride(0) * element_size  # stride-length: KV205
                triples.append((addr, width, self.device))
        return self.agent.get_xfer_descs(triples, "VRAM")
