"""Geometry travels in a dataclass whose constructor refuses unequal regions."""
# rewrites without: inline, to-loop, early-return, keyword, walrus

from dataclasses import dataclass


@dataclass
class Regions:
    kv_ptrs: list[int]
    kv_item_lens: list[int]

    def __post_init__(self):
        if any(item_len != self.kv_item_lens[0] for item_len in self.kv_item_lens):
            raise ValueError("regions differ in item length")


class Sender:
    def __init__(self, agent, regions: Regions):
        self.agent = agent
        self.regions = regions

    def blocks(self, pages, device):
        item_len = self.regions.kv_item_lens[0]  # drop-raise, drop-if: KV101
        triples = []
        for base_ptr in self.regions.kv_ptrs:
            for page in pages:
                triples.append((base_ptr + page * item_len, item_len, device))
        return self.agent.get_xfer_descs(triples, "VRAM")
