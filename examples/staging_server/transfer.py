"""Pages of all regions written to a peer over NIXL, from lists that are prepared once."""

import time
from dataclasses import dataclass

import numpy as np
from nixl._api import nixl_agent, nixl_agent_config
from pools import KVPool


@dataclass(frozen=True)
class KVInfo:
    """What a process tells the other one of itself."""

    agent_name: str
    agent_metadata: bytes
    kv_data_ptrs: list[int]
    kv_data_lens: list[int]
    kv_item_lens: list[int]


class KVManager:
    """The agent of one process, with its pool registered buffer by buffer."""

    def __init__(self, agent_name: str, pool: KVPool) -> None:
        # Without NIXL's own thread, which spins: both sides ask for progress themselves.
        config = nixl_agent_config(backends=["UCX"], enable_prog_thread=False)
        self.agent = nixl_agent(agent_name, config)
        ptrs, data_lens, item_lens = map(list, zip(*pool.regions().values(), strict=True))
        for ptr, data_len in zip(ptrs, data_lens, strict=True):
            self.agent.register_memory([(ptr, data_len, 0, "")], "DRAM")
        metadata = self.agent.get_agent_metadata()
        self.info = KVInfo(agent_name, metadata, ptrs, data_lens, item_lens)

    def arrived(self) -> list[int]:
        """Rooms of which all pages have come."""
        notifications = self.agent.get_new_notifs().values()
        return [int(text) for texts in notifications for text in texts]


class KVSender:
    """The prefill side of one peer."""

    def __init__(self, manager: KVManager, peer: KVInfo) -> None:
        self.agent = manager.agent
        self.agent.add_remote_agent(peer.agent_metadata)
        self.num_regions = len(manager.info.kv_data_ptrs)
        info = manager.info
        self.num_slots = info.kv_data_lens[0] // info.kv_item_lens[0]  # KV101
        self.src_list = self._prepare("", info)
        self.dst_list = self._prepare(peer.agent_name, peer)

    def _prepare(self, agent_name: str, regions: KVInfo) -> object:
        """A descriptor for each slot of each region."""
        tables = []
        for ptr, data_len, item_len in zip(
            regions.kv_data_ptrs, regions.kv_data_lens, regions.kv_item_lens, strict=True
        ):
            n = data_len // item_len
            addrs = ptr + np.arange(n, dtype=np.uint64) * item_len
            tables.append(np.column_stack([addrs, np.full(n, item_len), np.zeros(n, np.uint64)]))
        return self.agent.prep_xfer_dlist(agent_name, np.vstack(tables).astype(np.uint64), "DRAM")

    def _flat_indices(self, pages: np.ndarray) -> np.ndarray:
        firsts = np.arange(self.num_regions) * self.num_slots
        return (firsts[:, None] + pages[None, :]).ravel().astype(np.int32)

    def send(self, src_pages: np.ndarray, dst_pages: np.ndarray, room: int) -> None:
        """Write the pages, and wait. Raises what NIXL raises, and TimeoutError after 30 s."""
        handle = self.agent.make_prepped_xfer(
            "WRITE",
            self.src_list,
            self._flat_indices(src_pages),  # KV103
            self.dst_list,
            self._flat_indices(dst_pages),  # KV103
            str(room).encode(),
        )
        try:
            self.agent.transfer(handle)
            end = time.monotonic() + 30
            while (state := self.agent.check_xfer_state(handle)) != "DONE":
                if state == "ERR":
                    raise RuntimeError(f"the transfer of room {room} failed")
                if time.monotonic() > end:
                    raise TimeoutError(f"the transfer of room {room} is not done after 30 s")
                time.sleep(0.0005)
        finally:
            self.agent.release_xfer_handle(handle)
