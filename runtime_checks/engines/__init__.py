"""Adapters of engines: what each says of its pools, read where it hands it to its transport.

An adapter is one module. It imports nothing of its engine: it is given the engine's modules, each
right after its import. It has

    AWAITED: tuple[str, ...]                  the modules that it wants to be given
    install(module, hooks, pools) -> None     puts hooks around what the module defines, and tells
                                              `pools` (`kvlint.runtime_checks.pools.watching`)
    STAGES: Mapping[str, str]                 of these modules, the ones after which a line tells
                                              how much is armed, with the word for it
    SURE: tuple[str, ...]                     names of hooks that every supported version has
    may_hook(method) -> bool                  whether it would hook a method of that name
    pools_of(pool) -> Sequence[Pool]          what a pool of the engine says of itself, where that
                                              can be asked without hooks; for `kvlint geometry`
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ADAPTERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        f"{__name__}.sglang": (
            "sglang.srt.mem_cache.memory_pool",
            "sglang.srt.mem_cache.swa_memory_pool",
            "sglang.srt.mem_cache.deepseek_v4_memory_pool",
            "sglang.srt.mem_cache.dsa_cache_layer_split",
            "sglang.srt.mem_cache.hisparse_memory_pool",
            "sglang.srt.mem_cache.minimax_m3_nvfp4_pool",
            "sglang.srt.mem_cache.page_interleave_pool",
            "sglang.srt.mem_cache.qsa_kv_pool",
            "sglang.srt.mem_cache.unified_memory_pool",
            "sglang.srt.mem_cache.memory_pool_host",
            "sglang.srt.mem_cache.pool_host.base",
            "sglang.srt.mem_cache.pool_host.dsa",
            "sglang.srt.mem_cache.pool_host.mamba",
            "sglang.srt.mem_cache.pool_host.mha",
            "sglang.srt.mem_cache.pool_host.mha_mxfp8",
            "sglang.srt.mem_cache.pool_host.minimax_m3_nvfp4",
            "sglang.srt.mem_cache.pool_host.mla",
            "sglang.srt.mem_cache.pool_host.qsa",
            "sglang.srt.mem_cache.pool_host.unified",
            "sglang.srt.disaggregation.utils",
            "sglang.srt.disaggregation.nixl.conn",
            "sglang.srt.disaggregation.mooncake.conn",
            "sglang.srt.disaggregation.mori.conn",
        ),
        f"{__name__}.vllm": (
            "vllm.distributed.kv_transfer.kv_connector.v1.nixl.base_worker",
            "vllm.distributed.kv_transfer.kv_connector.v1.nixl.worker",
            "vllm.distributed.kv_transfer.kv_connector.v1.nixl_connector",
        ),
    }
)
"""Module of an adapter -> the modules of its engine that it awaits. Told here, so that arming
imports no adapter of an engine that is not there."""


def adapter_of(module: str) -> str | None:
    """The adapter that awaits a module."""
    return next((name for name, awaited in ADAPTERS.items() if module in awaited), None)


def engine_of(adapter: str) -> str:
    """An adapter is called as its engine's package is."""
    return adapter.rpartition(".")[2]
