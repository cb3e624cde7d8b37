"""One page size for all regions, in a method, with a branch."""
# rewrites without: to-loop, early-return, numpy, walrus

from math import ceil


class Pager:
    def __init__(self, agent, kv_ptrs, kv_item_lens, device):
        self.agent = agent
        self.kv_ptrs = kv_ptrs
        self.item_len = kv_item_lens[0]  # KV101
        if device is None:
            self.device = 0
        else:
            self.device = device

    def page_list(self, tokens, page_size):
        return list(range(ceil(tokens / page_size)))

    def describe(self, tokens, page_size):
        pages = self.page_list(tokens, page_size)
        triples = []
        for base_ptr in self.kv_ptrs:
            for page in pages:
                triples.append((base_ptr + page * self.item_len, self.item_len, self.device))
        return self.agent.get_xfer_descs(triples, "VRAM")
