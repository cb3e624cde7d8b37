"""DeepSeek-V4's pools over host memory, and the NIXL manager's lists over them.

What is built and called is the engine's own, as released; both agents are of this process.
"""

import inspect
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from nixl._api import nixl_agent, nixl_agent_config
from sglang.srt.disaggregation.nixl import conn
from sglang.srt.mem_cache.deepseek_v4_memory_pool import (
    DeepSeekV4IndexerPool,
    DeepSeekV4SingleKVPool,
)

TOKENS, PAGE = 40_960, 256
LAYERS = 3  # of each group


def pools() -> dict[str, list[torch.Tensor]]:
    """The buffers of the sub-pools, (pages, bytes a page) each, by group and in the order in which
    the whole pool lists them."""
    made = {
        "c4": pool(DeepSeekV4SingleKVPool, 4, qk_nope_head_dim=448, qk_rope_head_dim=64),
        "index": pool(DeepSeekV4IndexerPool, 4, index_head_dim=128, use_fp4_indexer=False),
        "c128": pool(DeepSeekV4SingleKVPool, 128, qk_nope_head_dim=448, qk_rope_head_dim=64),
    }
    return {
        name: of.contiguous_page_row_buffers() if name == "index" else of.kv_buffer
        for name, of in made.items()
    }


def pool(kind: Any, ratio: int, **heads: Any) -> Any:
    """A sub-pool in which one entry stands for `ratio` tokens."""
    options = {
        **heads,
        "size": TOKENS // ratio,
        "page_size": PAGE // ratio,
        "dtype": torch.uint8,
        "layer_num": LAYERS,
        "device": "cpu",
        "enable_memory_saver": False,
        "global_page_size": PAGE,  # which 0.5.21 does not tell the index pool
    }
    known = inspect.signature(kind.__init__).parameters
    return kind(**{name: value for name, value in options.items() if name in known})


class Side:
    """An agent, with its buffers registered one by one and a manager over them."""

    def __init__(self, name: str, groups: dict[str, list[torch.Tensor]]) -> None:
        self.buffers = [buffer for group in groups.values() for buffer in group]
        self.agent = nixl_agent(name, nixl_agent_config(backends=["UCX"]))
        for buffer in self.buffers:
            self.agent.register_memory(buffer)
        self.addresses = [buffer.data_ptr() for buffer in self.buffers]
        self.lengths = [buffer.nbytes for buffer in self.buffers]
        self.item_lengths = [buffer[0].nbytes for buffer in self.buffers]
        # Its constructor wants a server around it, its methods do not.
        self.manager = conn.NixlKVManager.__new__(conn.NixlKVManager)
        self.manager.agent, self.manager.prep_handles = self.agent, {}
        self.manager.kv_args = SimpleNamespace(
            kv_data_ptrs=self.addresses,
            kv_data_lens=self.lengths,
            kv_item_lens=self.item_lengths,
            gpu_id=0,
        )

    @property
    def own_slots(self) -> int | None:
        """With how many slots this side's own list is made: None, with those of each buffer."""
        if hasattr(conn, "num_kv_slots"):
            return conn.num_kv_slots(self.lengths, self.item_lengths)
        return None

    @property
    def announced_slots(self) -> int:
        """What it tells its peers; up to 0.5.21 the count of the first buffer."""
        return self.own_slots or self.lengths[0] // self.item_lengths[0]


def prepare(source: Side, target: Side) -> None:
    """Both lists, with the arguments that the manager has for a peer of equal size."""
    prepared = source.manager._init_equal_tp_prep_handle
    prepared("", source.addresses, 0, num_slots=source.own_slots, mem_kind="DRAM")
    prepared(
        target.agent.name,
        target.addresses,
        0,
        num_slots=target.announced_slots,
        mem_kind="DRAM",
        kv_item_lens=target.item_lengths,
        kv_data_lens=[length * target.announced_slots for length in target.item_lengths],
        kv_xfer_lens=source.item_lengths,
    )


def send(source: Side, target: Side, pages: Iterable[int]) -> None:
    """Moves these pages of every buffer, over prepared lists, and waits for the end."""
    handles = source.manager.prep_handles
    indices = conn.repeat_indices_over_layers(
        np.array(pages, dtype=np.int32), len(source.buffers), source.announced_slots
    )
    transfer = source.agent.make_prepped_xfer(
        "WRITE", handles[""], indices, handles[target.agent.name], indices, b"done"
    )
    state = source.agent.transfer(transfer)
    while state == "PROC":
        state = source.agent.check_xfer_state(transfer)
    assert state == "DONE", state
