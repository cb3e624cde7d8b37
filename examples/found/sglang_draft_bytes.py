"""sglang 0.5.23: bytes a token of a draft's KV pool, from the dtype's element size."""

from types import SimpleNamespace

from release import end, needed

needed("sglang", "0.5.23")

import torch
from sglang.srt import runtime_context

runtime_context.get_context().override_server_args(device="cpu").install()

from sglang.srt.layers.quantization.fp4_kv_cache_quant_method import (
    get_kv_cache_quant_method,
    resolve_kv_cache_quant,
)
from sglang.srt.mem_cache.kv_cache_dtype import configure_kv_cache_dtype
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, MHATokenToKVPoolMXFP8
from sglang.srt.speculative.dflash_utils import dflash_draft_cell_size_per_token

LAYERS, HEADS, HEAD_DIM, PAGE, TOKENS = 5, 8, 128, 16, 1024
DRAFT = SimpleNamespace(
    get_num_kv_heads=lambda ranks: HEADS // ranks, head_dim=HEAD_DIM, v_head_dim=HEAD_DIM
)


def measured(name):
    """Bytes of a token in all layers, as the budget has it and as in the pool of that dtype."""
    _, dtype = configure_kv_cache_dtype(
        server_args_kv_cache_dtype=name,
        model=None,
        model_dtype=torch.bfloat16,
        is_draft_worker=True,
        is_dflash=True,
        speculative_draft_attention_backend="triton",
        speculative_draft_kv_cache_dtype=None,
    )
    said = dflash_draft_cell_size_per_token(
        draft_model_config=DRAFT, draft_num_layers=LAYERS, draft_kv_cache_dtype=dtype, tp_size=1
    )
    more = {}
    if recipe := resolve_kv_cache_quant(name):
        more["quant_method"] = get_kv_cache_quant_method(
            recipe, num_layers=LAYERS, device="cpu", page_size=PAGE
        )
    pool = (MHATokenToKVPoolMXFP8 if name == "mxfp8" else MHATokenToKVPool)(
        size=TOKENS,
        page_size=PAGE,
        dtype=dtype,
        head_num=HEADS,
        head_dim=HEAD_DIM,
        layer_num=LAYERS,
        device="cpu",
        enable_memory_saver=False,
        **more,
    )
    return said, sum(pool.get_kv_size_bytes()) // (TOKENS + PAGE)


packed, scaled, plain = (measured(name) for name in ("fp4_mx_block16", "mxfp8", "fp8_e4m3"))
print(f"fp4_mx_block16: {packed[0]} bytes a token are budgeted, the pool has {packed[1]}")
print(f"mxfp8: {scaled[0]} bytes a token are budgeted, the pool has {scaled[1]}")
print(f"fp8_e4m3: {plain[0]} of {plain[1]}")
end(shows=packed[0] != packed[1] and scaled[0] != scaled[1], control=plain[0] == plain[1])
