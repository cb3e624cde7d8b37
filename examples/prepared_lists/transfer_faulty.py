"""Prepared transfers over all pools, indexed with the slot count of the first region."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .pools import CachePools


@dataclass
class CacheRegions:
    """The regions of one rank, in the order in which both sides number them."""

    kv_data_ptrs: list[int]
    kv_data_lens: list[int]
    kv_item_lens: list[int]
    device_id: int

    @classmethod
    def of(cls, pools: CachePools, device_id: int) -> "CacheRegions":
        ptrs, data_lens, item_lens = pools.buffer_infos()
        return cls(
            kv_data_ptrs=ptrs, kv_data_lens=data_lens, kv_item_lens=item_lens, device_id=device_id
        )


@dataclass
class PeerRegions:
    """What a receiver told about itself."""

    agent_name: str
    dst_kv_ptrs: list[int]
    dst_device_id: int
    dst_num_slots: int

    @classmethod
    def from_frames(cls, frames: list[bytes]) -> "PeerRegions":
        return cls(
            agent_name=frames[0].decode(),
            dst_kv_ptrs=np.frombuffer(frames[1], dtype=np.uint64).tolist(),
            dst_device_id=int(frames[2].decode()),
            dst_num_slots=int(frames[3].decode()),
        )


def flat_indices(pages: np.ndarray, num_regions: int, slots_per_region: int) -> np.ndarray:
    """Numbers of the descriptors of `pages` in every region, region after region."""
    firsts = np.arange(num_regions) * slots_per_region
    return (firsts[:, None] + pages[None, :]).ravel().astype(np.int32)


class PreparedTransfers:
    """Sends pages of all regions at once, from lists that are prepared once a peer."""

    def __init__(self, agent: Any, regions: CacheRegions) -> None:
        self.agent = agent
        self.regions = regions
        self.handles: dict[str, Any] = {}  # "": own list, else the peer's name
        self.peers: dict[str, PeerRegions] = {}
        self.num_slots = regions.kv_data_lens[0] // regions.kv_item_lens[0]  # KV101

    def announce(self, socket: Any) -> None:
        """Tell the sender where our regions are and how many slots they have."""
        socket.send_multipart(
            [
                self.agent.name.encode(),
                np.array(self.regions.kv_data_ptrs, dtype=np.uint64).tobytes(),
                str(self.regions.device_id).encode(),
                str(self.num_slots).encode(),
            ]
        )

    def add_peer(self, frames: list[bytes]) -> None:
        """Take the other side's announcement and prepare both lists."""
        peer = PeerRegions.from_frames(frames)
        self.peers[peer.agent_name] = peer
        if "" not in self.handles:
            self._prepare("", self.regions.kv_data_ptrs, self.regions.device_id)
        self._prepare(
            peer.agent_name, peer.dst_kv_ptrs, peer.dst_device_id, num_slots=peer.dst_num_slots
        )

    def _prepare(
        self, name: str, kv_ptrs: list[int], device_id: int, num_slots: int | None = None
    ) -> None:
        """One descriptor a slot; `num_slots` overrides the count our own regions have."""
        tables = []
        for base_ptr, data_len, item_len in zip(
            kv_ptrs, self.regions.kv_data_lens, self.regions.kv_item_lens, strict=True
        ):
            n = num_slots if num_slots is not None else data_len // item_len  # KV102
            addrs = base_ptr + np.arange(n, dtype=np.uint64) * item_len
            tables.append(np.column_stack([addrs, np.full(n, item_len), np.full(n, device_id)]))
        self.handles[name] = self.agent.prep_xfer_dlist(name, np.vstack(tables), "VRAM")

    def send(self, peer_name: str, src_pages: np.ndarray, dst_pages: np.ndarray) -> Any:
        """Post one write of `src_pages` to `dst_pages` in every region."""
        peer = self.peers[peer_name]
        num_regions = len(self.regions.kv_data_ptrs)
        src_indices = flat_indices(src_pages, num_regions, self.num_slots)  # KV103
        dst_indices = flat_indices(dst_pages, num_regions, peer.dst_num_slots)
        transfer = self.agent.make_prepped_xfer(
            "WRITE", self.handles[""], src_indices, self.handles[peer_name], dst_indices
        )
        self.agent.transfer(transfer)
        return transfer
