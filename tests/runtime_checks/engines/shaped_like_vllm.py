"""Workers of this repository's own, shaped like those of vLLM's NIXL connector as far as the
adapter reads them, field for field as in 0.33.0, 0.21.0 and 0.13.0.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

BLOCKS, HEADS, TOKENS, WIDTH = 6, 2, 4, 8
PAGE = HEADS * TOKENS * WIDTH * 2


def attention(layer: int) -> str:
    return f"model.layers.{layer}.self_attn.attn"


class NixlBaseConnectorWorker:
    """As in 0.33.0. `says` is what the lists get, whatever the caches are."""

    def __init__(self, name: str = "agent", **says: Any) -> None:
        self.engine_id, self.tp_rank, self.block_size = name, 0, TOKENS
        self.nixl_wrapper = SimpleNamespace(name=name)
        self.nixl_memory_type, self.device_id = "DRAM", 0
        self.kv_caches_base_addr: dict[str, Any] = defaultdict(dict)
        self.use_host_buffer, self.host_xfer_buffers = False, dict[str, Any]()
        self.transfer_topo: Any = SimpleNamespace()
        self.block_len_per_layer: list[int] = []
        self.block_stride_per_layer: list[int] = []
        self.region_num_blocks: list[int] = []
        self.region_group_ids: list[int] = []
        self.region_names: list[str] = []
        self.region_mem_types: list[str] = []
        self.num_regions, self._has_mamba = 0, False
        self._uses_region_group_mapping = False
        self._ple_region_index = self._ple_group_index = None
        self._group_spec_types: tuple[type, ...] = ()
        self._scratch_region_indices: list[int] = []
        self._layer_specs: dict[str, Any] = {}
        self.kv_cache_config = SimpleNamespace(transfer_group_index_by_layer={})
        self.says, self.states = says, None

    def register_kv_caches(self, kv_caches: Mapping[str, Any]) -> str:
        self.device_kv_caches = kv_caches
        self._layer_specs = self._layer_specs or dict.fromkeys(kv_caches)
        if self.use_host_buffer:
            self.host_xfer_buffers = {name: one.clone() for name, one in kv_caches.items()}
        buffers = self.host_xfer_buffers or kv_caches
        self.list_regions([(n, t) for n, t in buffers.items() if n in self._layer_specs])
        for name, value in self.says.items():
            setattr(self, name, value)
        self._uses_region_group_mapping = len(set(self.region_group_ids)) > 1
        return self.register_local_xfer_handler(self.block_size)

    def list_regions(self, caches: Sequence[tuple[str, Any]]) -> None:
        self.kv_caches_base_addr[self.engine_id][self.tp_rank] = [t.data_ptr() for _, t in caches]
        self.block_len_per_layer = [t[0].nbytes for _, t in caches]
        self.block_stride_per_layer = [t.stride(0) * t.element_size() for _, t in caches]
        self.region_num_blocks = [t.shape[0] for _, t in caches]
        self.region_group_ids = [0] * len(caches)
        self.region_names = [name for name, _ in caches]
        self.region_mem_types = ["DRAM"] * len(caches)
        self.num_regions = len(caches)

    def register_local_xfer_handler(self, block_size: int) -> str:
        if self._has_mamba:
            addresses = self.kv_caches_base_addr[self.engine_id][self.tp_rank]
            return f"prepared {len(self._build_mamba_local(addresses))}"
        return "prepared"

    def _build_mamba_local(self, base_addresses: list[int]) -> Any:
        return self.states

    def _build_mamba_remote(self, nixl_agent_meta: Any, tp_ratio: int, info: Any) -> Any:
        return nixl_agent_meta.states

    def _validate_remote_agent_handshake(
        self, nixl_agent_meta: Any, remote_tp_size: int, remote_dcp_size: int = 1
    ) -> None:
        pass

    def _compute_desc_ids(self, block_ids: Any, dst_num_blocks: int, **more: Any) -> Any:
        return self.indices

    indices: Any = None


class NixlConnectorWorker(NixlBaseConnectorWorker):
    """As in 0.21.0 and, with `ranks` off, in 0.13.0: no names, one count, keys apart from values.

    The attributes that came later are not there.
    """

    ranks = True

    def __init__(self, name: str = "agent", *, halves: bool = False, apart: bool = False) -> None:
        super().__init__(name)
        topology = SimpleNamespace(
            is_kv_layout_blocks_first=halves,
            split_k_and_v=apart,
            is_mamba=False,
            cross_layers_blocks=False,
        )
        if not self.ranks:
            self.kv_topo = topology
            del self.transfer_topo
        else:
            self.transfer_topo = topology
        for later in (
            "block_stride_per_layer",
            "region_num_blocks",
            "region_group_ids",
            "region_names",
            "region_mem_types",
            "kv_cache_config",
        ):
            delattr(self, later)

    def list_regions(self, caches: Sequence[tuple[str, Any]]) -> None:
        topology = self.transfer_topo if self.ranks else self.kv_topo
        parts = [p for _, t in caches for p in (t if topology.split_k_and_v else [t])]
        addresses = [part.data_ptr() for part in parts]
        if self.ranks:
            self.kv_caches_base_addr[self.engine_id][self.tp_rank] = addresses
        else:
            self.kv_caches_base_addr[self.engine_id] = addresses
        self.num_blocks = parts[0].shape[0]
        self.block_len_per_layer = [part.nbytes // self.num_blocks for part in parts]

    # Here, and not inherited, as in the released classes.
    def register_kv_caches(self, kv_caches: Mapping[str, Any]) -> str:
        self.device_kv_caches = kv_caches
        self._layer_specs = dict.fromkeys(kv_caches)
        self.list_regions(list(kv_caches.items()))
        return self.register_local_xfer_handler(self.block_size)

    def register_local_xfer_handler(self, block_size: int) -> str:
        return "prepared"

    def _validate_remote_agent_handshake(self, nixl_agent_meta: Any, remote_tp_size: int) -> None:
        pass


class MambaSpec:
    """Only its name is read."""


class FullAttentionSpec:
    """Likewise."""


def module(name: str, worker: type) -> ModuleType:
    """A module of that name that defines a class with all its methods, so that hooks stay in one
    test."""
    made = ModuleType(name)
    released = next(k for k in worker.__mro__ if k.__name__.startswith("Nixl"))
    own = {name: thing for kind in worker.__mro__[-2::-1] for name, thing in vars(kind).items()}
    defined = type(released.__name__, (worker,), {**own, "__module__": name})
    setattr(made, released.__name__, defined)
    return made
