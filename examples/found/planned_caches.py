"""KV caches as vLLM 0.33.0 plans and allocates them, in host memory.

`vllm serve --kv-cache-dtype fp8 --kv-cache-dtype-skip-layers 0` keeps layer 0 in the model's
bfloat16. Specs are written here as the attention layers give them; the rest is vLLM's own.
"""

import torch
import vllm.platforms
from vllm.platforms.cpu import CpuPlatform

vllm.platforms.current_platform = CpuPlatform()

from vllm.config import CacheConfig, VllmConfig
from vllm.utils.torch_utils import STR_DTYPE_TO_TORCH_DTYPE
from vllm.v1.core.kv_cache_planning import get_kv_cache_config_from_groups, get_kv_cache_groups
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheLayout,
    get_kv_quant_mode,
)
from vllm.v1.worker.utils import allocate_kv_cache

LAYERS, TOKENS, HEADS, HEAD_SIZE = 4, 32, 2, 64
MEMORY = 1 << 20


def layer(number: int) -> str:
    return f"model.layers.{number}.self_attn.attn"


def plan(
    skipped: list[str], layout: str = "LBNHC"
) -> tuple[VllmConfig, KVCacheConfig, dict[str, torch.Tensor]]:
    """vLLM's configuration, its plan, and the layers' caches by name."""
    cache = CacheConfig(block_size=TOKENS, cache_dtype="fp8", kv_cache_dtype_skip_layers=skipped)
    config = VllmConfig(cache_config=cache)
    config.cache_config.kv_cache_layout = layout
    specs = {layer(i): spec("auto" if str(i) in skipped else "fp8") for i in range(LAYERS)}
    groups = get_kv_cache_groups(config, specs)
    planned = get_kv_cache_config_from_groups(config, groups, MEMORY)
    caches = allocate_kv_cache(planned, torch.device("cpu"), KVCacheLayout[layout])
    return config, planned, caches


def spec(cache_dtype: str) -> FullAttentionSpec:
    stored = {**STR_DTYPE_TO_TORCH_DTYPE, "auto": torch.bfloat16}[cache_dtype]
    return FullAttentionSpec(
        block_size=TOKENS,
        num_kv_heads=HEADS,
        head_size=HEAD_SIZE,
        dtype=stored,
        kv_quant_mode=get_kv_quant_mode(cache_dtype),
    )
