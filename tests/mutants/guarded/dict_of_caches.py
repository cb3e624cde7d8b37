"""A dict of tensors, one for each layer; all must have the shape of the first."""
# rewrites without: inline, to-loop, keyword, numpy, walrus, swap

import torch


class CacheRegistry:
    def __init__(self, agent, device):
        self.agent = agent
        self.device = device
        self.region_bytes = 0

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]):
        first = next(iter(kv_caches.values()))
        for cache in kv_caches.values():
            assert cache.nbytes == first.nbytes, "caches differ in size"
        self.region_bytes = first.nbytes  # drop-assert: KV101
        regions = []
        for cache in kv_caches.values():
            regions.append((cache.data_ptr(), self.region_bytes, self.device, ""))
        self.agent.register_memory(self.agent.get_reg_descs(regions, "VRAM"))
