"""Pages of all regions written to a peer over NIXL, from lists that are prepared once."""

import time

import numpy as np
from nixl._api import nixl_agent, nixl_agent_config


class Worker:
    """The agent of one side, its pools registered buffer by buffer."""

    def __init__(self, name, pools):
        # Without NIXL's own thread bytes move when both sides are asked, and at no other time.
        config = nixl_agent_config(backends=["UCX"], enable_prog_thread=False)
        self.agent, self.pools, self.name = nixl_agent(name, config), pools, name
        self.arrived = set()
        self.kind = "DRAM" if pools.device == "cpu" else "VRAM"
        self.registered = [
            self.agent.register_memory([(ptr, data_len, 0, "")], self.kind)
            for ptr, data_len, _ in pools.regions().values()
        ]

    def meet(self, peer, constant_stride=False):
        """Prepare both lists.

        constant_stride  the planted fault: each region's descriptors are thought to begin at a
                         multiple of the first one's slots
        """
        self.agent.add_remote_agent(peer.agent.get_agent_metadata())
        self.peer = peer
        _, data_lens, item_lens = self.pools.told()
        slots = [data_len // item_len for data_len, item_len in zip(data_lens, item_lens)]
        if constant_stride:
            self.firsts = np.arange(len(slots)) * slots[0]
        else:
            self.firsts = np.cumsum([0, *slots[:-1]])
        self.src_list = self._prepare("", self.pools)
        self.dst_list = self._prepare(peer.name, peer.pools)

    def _prepare(self, name, pools):
        """A descriptor for each slot of each region."""
        tables = []
        for ptr, data_len, item_len in pools.regions().values():
            n = data_len // item_len
            addrs = ptr + np.arange(n, dtype=np.uint64) * np.uint64(item_len)
            tables.append(np.column_stack([addrs, np.full(n, item_len), np.zeros(n, np.uint64)]))
        return self.agent.prep_xfer_dlist(name, np.vstack(tables).astype(np.uint64), self.kind)

    def make(self, src_pages, dst_pages, room):
        """A transfer of pages of all regions; it is not begun."""
        src, dst = (self.firsts[:, None] + np.array(pages) for pages in (src_pages, dst_pages))
        return self.agent.make_prepped_xfer(
            "WRITE",
            self.src_list,
            src.ravel().astype(np.int32),
            self.dst_list,
            dst.ravel().astype(np.int32),
            room.encode(),
        )

    def post(self, handle):
        """Raises RuntimeError where the bytes are there at once: nothing is ever in flight then."""
        if self.agent.transfer(handle) == "DONE":
            raise RuntimeError("a transfer was over before its peer had been asked")

    def finish(self, handle, room):
        """Wait until the pages are there, and the peer has been told: whatever is said meanwhile,
        memory is not given back under a transfer. Raises the first of that, then, and TimeoutError
        after 30 s."""
        end, done, said = time.monotonic() + 30, False, None
        while not done or room not in self.peer.arrived:
            try:
                done = done or self.agent.check_xfer_state(handle) == "DONE"
                for messages in self.peer.agent.get_new_notifs().values():
                    self.peer.arrived |= {message.decode() for message in messages}
            except RuntimeError as error:
                said = said or error
            if time.monotonic() > end:
                raise TimeoutError(f"the transfer of {room} is not done after 30 s")
        self.agent.release_xfer_handle(handle)
        if said is not None:
            raise said

    def close(self):
        for descriptors in self.registered:
            self.agent.deregister_memory(descriptors)
