"""One descriptor a block, each cache with its own geometry, numbered by cumulative starts."""

from itertools import accumulate
from typing import Any

import torch


class BlockConnector:
    """Registers the caches of one rank and moves blocks of them by number."""

    def __init__(self, agent: Any, device_id: int) -> None:
        self.agent = agent
        self.device_id = device_id
        self.first_descs: list[int] = []
        self.local_handle: Any = None

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        caches_data = []
        blocks_data = []
        counts = []
        for cache in kv_caches.values():
            base_addr = cache.data_ptr()
            num_blocks = cache.shape[0]
            block_len = cache[0].nbytes
            stride = cache.stride(0) * cache.element_size()
            region_len = (num_blocks - 1) * stride + block_len
            caches_data.append((base_addr, region_len, self.device_id, ""))
            for block_id in range(num_blocks):
                blocks_data.append((base_addr + block_id * stride, block_len, self.device_id))
            counts.append(num_blocks)
        self.first_descs = [0, *accumulate(counts[:-1])]
        self.agent.register_memory(self.agent.get_reg_descs(caches_data, "VRAM"))
        descs = self.agent.get_xfer_descs(blocks_data, "VRAM")
        self.local_handle = self.agent.prep_xfer_dlist("", descs)

    def desc_ids(self, block_ids: list[int]) -> list[int]:
        ids = []
        for first_desc in self.first_descs:
            for block_id in block_ids:
                ids.append(first_desc + block_id)
        return ids

    def read(self, block_ids: list[int], remote_handle: Any, remote_ids: list[int]) -> Any:
        local_ids = self.desc_ids(block_ids)
        transfer = self.agent.make_prepped_xfer(
            "READ", self.local_handle, local_ids, remote_handle, remote_ids
        )
        self.agent.transfer(transfer)
        return transfer
