"""A prefill and a decode side in one process: SGLang's own managers, sender, receiver and bootstrap
server, over real NIXL in host memory, with DeepSeek-V4's own pools.

Released code: everything that is imported from sglang, constructors included. Set by hand, since
there is no scheduler and no device: the configuration, ranks of one process, which kind of memory
the buffers are in, and what goes along with a request (one buffer of 64 bytes a request).
"""

import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import sglang_zoo
import torch


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def publish(port: int) -> None:
    from sglang.srt.runtime_context import get_parallel

    sglang_zoo.publish(disaggregation_bootstrap_port=port, host="127.0.0.1")
    names = ("tp_rank", "pp_rank", "attn_tp_rank", "attn_cp_rank", "attn_dp_rank", "attn_dcp_rank")
    get_parallel().override_permanently(**dict.fromkeys(names, 0), pp_group=None)


@contextlib.contextmanager
def arena(size: int) -> Iterator[torch.Tensor]:
    """What is allocated meanwhile lies side by side in one piece of memory, as an allocator of the
    device's memory may do it."""
    whole, used, zeros = torch.zeros(size, dtype=torch.uint8), 0, torch.zeros

    def carve(*shape: Any, dtype: Any = torch.float32, device: Any = None, **more: Any) -> Any:
        nonlocal used
        dims = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        length = int(np.prod(dims)) * dtype.itemsize
        if not length:
            return zeros(dims, dtype=dtype)
        piece, used = whole[used : used + length], used + length
        return piece.view(dtype).view(tuple(dims))

    torch.zeros = carve
    try:
        yield whole
    finally:
        torch.zeros = zeros


class Side:
    """One side's pool and manager."""

    def __init__(self, mode: Any, pool: Any, registered: torch.Tensor | None = None) -> None:
        from sglang.srt.disaggregation.nixl import conn
        from sglang.srt.runtime_context import get_server_args

        self.pool, self.along = pool, torch.zeros((4, 64), dtype=torch.uint8)
        manager = conn.NixlKVManager
        if registered is not None:
            manager = _with_one_registration(manager, registered)
        self.manager = manager(self._args(), mode, get_server_args(), True)

    def _args(self) -> Any:
        from sglang.srt.disaggregation.base.conn import KVArgs

        args = KVArgs()
        addresses, lengths, item_lengths = self.pool.get_contiguous_buf_infos()
        args.kv_data_ptrs, args.kv_data_lens, args.kv_item_lens = addresses, lengths, item_lengths
        args.kv_data_mem_kinds = ["DRAM"] * len(addresses)
        args.aux_data_ptrs = [self.along.data_ptr()]
        args.aux_data_lens, args.aux_item_lens = [self.along.nbytes], [self.along[0].nbytes]
        for name in ("types", "data_ptrs", "data_lens", "item_lens", "layer_ids"):
            setattr(args, f"state_{name}", [])
        for name in ("dim_per_tensor", "slice_outer_counts", "conv_shard_groups"):
            setattr(args, f"state_{name}", [])
        args.engine_rank = args.gpu_id = args.pp_rank = args.system_dp_rank = 0
        args.prefill_start_layer, args.prefill_end_layer = 0, 6
        args.kv_layer_ids, args.num_draft_entries = [], 0
        args.page_size, args.kv_cache_dtype_str = self.pool.page_size, "fp8_e4m3"
        args.mla_compression_ratios = list(self.pool.compression_ratios)
        args.rust_http_port, args.is_hybrid_mla_backend = None, False
        args.swa_kv_cache_layout = args.kv_layout = args.ib_device = None
        return args

    def buffers(self) -> list[torch.Tensor]:
        """Pages of each region, in the order of the list."""
        pool = self.pool
        index = pool.c4_indexer_kv_pool
        rows = getattr(index, "contiguous_page_row_buffers", None)
        of_index = rows() if rows else index.index_k_with_scale_buffer
        return [*pool.c4_kv_pool.kv_buffer, *of_index, *pool.c128_kv_pool.kv_buffer]


def _with_one_registration(manager: Any, memory: torch.Tensor) -> Any:
    """What lies in this memory is registered as one, as by a cache of registrations."""

    class Manager(manager):
        def register_buffer_to_engine(self) -> None:
            register, first = self.agent.register_memory, memory.data_ptr()

            def as_one(rows: Any, *args: Any, **kwargs: Any) -> Any:
                if all(first <= row[0] < first + memory.nbytes for row in rows):
                    rows = [(first, memory.nbytes, 0, "")]
                return register(rows, *args, **kwargs)

            self.agent.register_memory = as_one
            super().register_buffer_to_engine()

    return Manager


class Service:
    def __init__(self, *, in_arena: bool = False) -> None:
        from sglang.srt.disaggregation.nixl import conn
        from sglang.srt.disaggregation.utils import DisaggregationMode

        port = free_port()
        publish(port)
        self.address = f"127.0.0.1:{port}"
        self.conn, self.server = conn, conn.NixlKVBootstrapServer("127.0.0.1", port)
        _until(lambda: _answers(port))
        memory = None
        if in_arena:
            with arena(1 << 28) as memory:
                pool = sglang_zoo.dsv4()
        else:
            pool = sglang_zoo.dsv4()
        self.decode = Side(DisaggregationMode.DECODE, pool, memory)
        self.prefill = Side(DisaggregationMode.PREFILL, sglang_zoo.dsv4())
        for buffer in self.prefill.buffers():
            buffer.copy_(torch.randint(1, 255, buffer.shape, dtype=torch.uint8))

    def request(self, room: int, here: list[int], there: list[int]) -> tuple[str, str]:
        """The state of a request at its end, on both sides."""
        decode, prefill = self.decode.manager, self.prefill.manager
        _until(lambda: decode.try_ensure_parallel_info(self.address))
        receiver = self.conn.NixlKVReceiver(decode, self.address, room)
        sender = sglang_zoo.made(
            self.conn.NixlKVSender,
            mgr=prefill,
            bootstrap_addr=self.address,
            bootstrap_room=room,
            dest_tp_ranks=[0],
            pp_rank=0,
        )
        receiver.init(0)
        receiver.send_metadata(np.array(there, np.int32), 1)
        states = {value: name for name, value in vars(self.conn.KVPoll).items() if name[0] != "_"}
        waiting = self.conn.KVPoll.WaitingForInput
        if _until(lambda: sender.poll() == waiting, 5):
            sender.init(len(here), 1)
            sender.send(np.array(here, np.int32))
        over = self.conn.KVPoll.Success, self.conn.KVPoll.Failed
        _until(lambda: sender.poll() in over and receiver.poll() in over, 10)
        return states[sender.poll()], states[receiver.poll()]

    def right_pages(self, here: list[int], there: list[int]) -> list[list[bool]]:
        """Of each region, whether each page arrived."""
        pairs = zip(self.prefill.buffers(), self.decode.buffers(), strict=True)
        return [
            [bool((a[p] == b[q]).all()) for p, q in zip(here, there, strict=True)] for a, b in pairs
        ]

    def written(self) -> int:
        """Pages of the decode side in which anything was written."""
        return sum(int(b.any(1).sum()) for b in self.decode.buffers())


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def _until(holds: Any, seconds: float = 20) -> bool:
    """Whether it came to hold; that long it may take, not that long it takes."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
