"""One request handed from prefill to decode over real NIXL, in host memory, without a GPU.

Six buffers, two each of 164, 161 and 288 slots: the counts that the pools of DeepSeek-V4 have
for 40,960 tokens where one pool derives its pages by another formula than the next. All slots
have one length, so that NIXL sees nothing wrong in any descriptor.

    python examples/dsv4_slots/serve.py               indices i * S0 + page
    python examples/dsv4_slots/serve.py --repaired    indices by cumulative starts
"""

import sys
import time

import numpy as np
from nixl._api import nixl_agent, nixl_agent_config

SLOTS = [164, 164, 161, 161, 288, 288]
SLOT_BYTES = 256
SRC_PAGES = np.array([5, 6, 7, 100])
DST_PAGES = np.array([40, 41, 42, 160])


class KVBuffers:
    """The buffers of one rank: an array of slots each, registered each by itself."""

    def __init__(self, agent_name: str) -> None:
        self.agent = nixl_agent(agent_name, nixl_agent_config(backends=["UCX"]))
        self.buffers = [np.zeros((slots, SLOT_BYTES), np.uint8) for slots in SLOTS]
        self.kv_data_ptrs = [buffer.ctypes.data for buffer in self.buffers]
        self.kv_data_lens = [buffer.nbytes for buffer in self.buffers]
        self.kv_item_lens = [buffer[0].nbytes for buffer in self.buffers]
        for ptr, data_len in zip(self.kv_data_ptrs, self.kv_data_lens, strict=True):
            self.agent.register_memory([(ptr, data_len, 0, "")], "DRAM")


class PrefillWorker:
    """Writes pages of all buffers to a peer, from lists that are prepared once."""

    def __init__(self, kv: KVBuffers, repaired: bool) -> None:
        self.kv = kv
        self.repaired = repaired
        self.num_slots = kv.kv_data_lens[0] // kv.kv_item_lens[0]  # KV101
        self.slot_counts = [n // i for n, i in zip(kv.kv_data_lens, kv.kv_item_lens, strict=True)]

    def add_peer(self, peer: KVBuffers) -> None:
        """Prepare both lists: one descriptor a slot, as many as each buffer has."""
        self.kv.agent.add_remote_agent(peer.agent.get_agent_metadata())
        self.src_list = self._prepare("", self.kv)
        self.dst_list = self._prepare(peer.agent.name, peer)

    def _prepare(self, name: str, regions: KVBuffers) -> object:
        tables = []
        for base_ptr, data_len, item_len in zip(
            regions.kv_data_ptrs, regions.kv_data_lens, regions.kv_item_lens, strict=True
        ):
            n = data_len // item_len
            addrs = base_ptr + np.arange(n, dtype=np.uint64) * item_len
            tables.append(np.column_stack([addrs, np.full(n, item_len), np.zeros(n, np.uint64)]))
        rows = np.vstack(tables).astype(np.uint64)
        return self.kv.agent.prep_xfer_dlist(name, rows, "DRAM")

    def _flat_indices(self, pages: np.ndarray) -> np.ndarray:
        """Numbers of the descriptors of `pages` in every buffer, buffer after buffer."""
        if self.repaired:
            firsts = np.cumsum([0, *self.slot_counts[:-1]])
        else:
            firsts = np.arange(len(self.slot_counts)) * self.num_slots
        return (firsts[:, None] + pages[None, :]).ravel().astype(np.int32)

    def send(self, src_pages: np.ndarray, dst_pages: np.ndarray) -> None:
        """Write `src_pages` to `dst_pages` in every buffer, and wait."""
        agent = self.kv.agent
        transfer = agent.make_prepped_xfer(
            "WRITE",
            self.src_list,
            self._flat_indices(src_pages),  # KV103
            self.dst_list,
            self._flat_indices(dst_pages),  # KV103
            b"request 1",
        )
        agent.transfer(transfer)
        while agent.check_xfer_state(transfer) != "DONE":
            time.sleep(0.001)
        agent.release_xfer_handle(transfer)


def stamp(kv: KVBuffers) -> None:
    """Each page says where it belongs: buffer and page, both counted from 1."""
    for number, buffer in enumerate(kv.buffers):
        pages = buffer.view(np.uint16)
        pages[:, 0::2] = number + 1
        pages[:, 1::2] = np.arange(len(buffer))[:, None] + 1


def held(page: np.ndarray) -> tuple[int, int] | None:
    """The buffer and page that these bytes belong to; None for a page never written."""
    number, slot = page.view(np.uint16)[:2].tolist()
    return (number - 1, slot - 1) if number else None


def report(decode: KVBuffers) -> None:
    """What the pages of the request hold, and which other pages were written."""
    print("buffer slots" + "".join(f"{f'page {page}':>10}" for page in DST_PAGES), " also written")
    right = 0
    for number, buffer in enumerate(decode.buffers):
        cells = ""
        for src_page, dst_page in zip(SRC_PAGES, DST_PAGES, strict=True):
            match held(buffer[dst_page]):
                case None:
                    word = "empty"
                case (own, page) if (own, page) == (number, src_page):
                    word = "right"
                    right += 1
                case (other, page):
                    word = f"{other}:{page}"
            cells += f"{word:>10}"
        written = [page for page in range(len(buffer)) if held(buffer[page])]
        others = " ".join(str(page) for page in written if page not in DST_PAGES)
        print(f"{number:6}{len(buffer):6}{cells}  {others or '-'}")
    print(f"{right} of {len(SLOTS) * len(DST_PAGES)} pages are right")


def main(arguments: list[str]) -> None:
    repaired = arguments == ["--repaired"]
    prefill, decode = KVBuffers("prefill"), KVBuffers("decode")
    stamp(prefill)
    worker = PrefillWorker(prefill, repaired)
    worker.add_peer(decode)
    print(f"pages {SRC_PAGES} of prefill go to pages {DST_PAGES} of decode, in every buffer")
    start = "start of buffer i" if repaired else f"i * {worker.num_slots}"
    print(f"index of a page: {start} + page")
    try:
        worker.send(SRC_PAGES, DST_PAGES)
    except RuntimeError as error:  # as servers do: the request fails, the worker lives on
        print(f"request 1 failed: {error}")
    report(decode)


if __name__ == "__main__":
    main(sys.argv[1:])
