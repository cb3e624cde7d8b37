"""One descriptor a block, with the geometry of the first cache for all of them."""

import math
from typing import Any

import torch


class BlockConnector:
    """Registers the caches of one rank and moves blocks of them by number."""

    def __init__(self, agent: Any, device_id: int) -> None:
        self.agent = agent
        self.device_id = device_id
        self.kv_base_addrs: list[int] = []
        self.num_blocks = 0
        self.block_len = 0
        self.num_regions = 0
        self.local_handle: Any = None

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        _, first_cache = next(iter(kv_caches.items()))
        self.num_blocks = first_cache.shape[0]  # KV101
        self.block_len = first_cache.element_size() * math.prod(first_cache.shape[1:])

        caches_data = []
        for cache in kv_caches.values():
            base_addr = cache.data_ptr()
            region_len = self.num_blocks * self.block_len  # KV102
            caches_data.append((base_addr, region_len, self.device_id, ""))
            self.kv_base_addrs.append(base_addr)
        self.num_regions = len(caches_data)
        self.agent.register_memory(self.agent.get_reg_descs(caches_data, "VRAM"))

        blocks_data = []
        for base_addr in self.kv_base_addrs:
            for block_id in range(self.num_blocks):  # KV102
                addr = base_addr + block_id * self.block_len  # KV205
                blocks_data.append((addr, self.block_len, self.device_id))
        descs = self.agent.get_xfer_descs(blocks_data, "VRAM")
        self.local_handle = self.agent.prep_xfer_dlist("", descs)

    def desc_ids(self, block_ids: list[int]) -> list[int]:
        ids = []
        for reg_id in range(self.num_regions):
            for block_id in block_ids:
                ids.append(reg_id * self.num_blocks + block_id)
        return ids

    def read(self, block_ids: list[int], remote_handle: Any, remote_ids: list[int]) -> Any:
        local_ids = self.desc_ids(block_ids)
        transfer = self.agent.make_prepped_xfer(
            "READ", self.local_handle, local_ids, remote_handle, remote_ids
        )
        self.agent.transfer(transfer)
        return transfer
