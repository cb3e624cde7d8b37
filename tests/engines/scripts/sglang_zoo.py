"""Pools of the SGLang that can be imported here, made by its own classes in host memory.

Run in the engines' environment; nothing here is of kvlint.
"""

import contextlib
import importlib
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

TOKENS, PAGE, DSV4_PAGE = 512, 16, 256
HOST = {"device": "cpu", "enable_memory_saver": False}
CACHES = "sglang.srt.mem_cache"


def publish(**given: Any) -> None:
    """A configuration: pools of some versions, and managers, read one. SGLang publishes it so in
    its own tests."""
    try:
        from sglang.srt import runtime_context
    except ImportError:
        from sglang.srt import server_args

        args = server_args.ServerArgs(model_path="dummy", device="cpu")
        server_args.set_global_server_args_for_scheduler(args)
    else:
        runtime_context.get_context().override_server_args(device="cpu", **given).install()


def _class(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"{CACHES}.{module}"), name)


def _first_of(*names: str) -> Any:
    *before, last = names
    for name in before:
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(name)
    return importlib.import_module(last)


def made(cls: Any, **given: Any) -> Any:
    """With those of the arguments that this version of the class has."""
    known = inspect.signature(cls.__init__).parameters
    return cls(**{name: value for name, value in given.items() if name in known})


def mha(dtype: Any = torch.bfloat16, **more: Any) -> Any:
    given = {"size": TOKENS, "page_size": PAGE, "dtype": dtype, "head_num": 2, "head_dim": 16}
    return _class("memory_pool", "MHATokenToKVPool")(**given, layer_num=3, **HOST, **more)


def mha_float8() -> Any:
    return mha(torch.float8_e4m3fn)


def mha_second_stage() -> Any:
    return mha(start_layer=3, end_layer=5)


def mla() -> Any:
    given = {"size": TOKENS, "page_size": PAGE, "dtype": torch.bfloat16, "layer_num": 3}
    cls = _class("memory_pool", "MLATokenToKVPool")
    return cls(**given, kv_lora_rank=32, qk_rope_head_dim=8, **HOST)


def dsa() -> Any:
    return made(
        _class("memory_pool", "DSATokenToKVPool"),
        size=1024,
        page_size=64,
        dtype=torch.bfloat16,
        kv_lora_rank=512,
        qk_rope_head_dim=64,
        layer_num=3,
        index_head_dim=128,
        kv_cache_dim=576,
        skip_topk_layers=[False, True, False],
        **HOST,
    )


def swa() -> Any:
    return made(
        _class("swa_memory_pool", "SWAKVPool"),
        size=TOKENS,
        size_swa=TOKENS // 2,
        page_size=PAGE,
        dtype=torch.bfloat16,
        head_num=2,
        head_dim=16,
        swa_attention_layer_ids=[0, 2],
        full_attention_layer_ids=[1, 3],
        enable_kvcache_transpose=False,
        device="cpu",
    )


def _states(layers: list[int]) -> Any:
    shape = SimpleNamespace(
        conv=[(8, 3)],
        temporal=(2, 4, 4),
        disable_conv_window_dedup=True,
        conv_shard_groups=None,
        conv_slice_axis=0,
    )
    dtype = SimpleNamespace(conv=torch.bfloat16, temporal=torch.float32)
    return SimpleNamespace(shape=shape, dtype=dtype, layers=layers, is_kda=False)


def mamba(slots: int = 10, layers: tuple[int, ...] = (0, 2, 3)) -> Any:
    given = {"size": slots, "spec_state_size": slots, "mamba_layer_ids": list(layers)}
    cls = _class("memory_pool", "MambaPool")
    return made(cls, **given, cache_params=_states(list(layers)), **HOST)


def mamba_of_one_layer() -> Any:
    return mamba(layers=(2,))


def mamba_of_as_many_layers_as_slots() -> Any:
    return mamba(slots=2, layers=(0, 1, 2))


def hybrid() -> Any:
    return made(
        _class("memory_pool", "HybridLinearKVPool"),
        size=TOKENS,
        dtype=torch.bfloat16,
        page_size=PAGE,
        head_num=2,
        head_dim=16,
        full_attention_layer_ids=[1, 4],
        enable_kvcache_transpose=False,
        device="cpu",
        mamba_pool=mamba(),
    )


def requests() -> Any:
    return made(
        _class("memory_pool", "HybridReqToTokenPool"),
        size=8,
        mamba_size=10,
        mamba_spec_state_size=8,
        max_context_len=64,
        cache_params=_states([0, 2, 3]),
        mamba_layer_ids=[0, 2, 3],
        enable_mamba_extra_buffer=False,
        **HOST,
    )


def dsv4(tokens: int = 40960) -> Any:
    """Layers 0 and 1 with windows only, then C4 and C128 in turn."""
    return made(
        _class("deepseek_v4_memory_pool", "DeepSeekV4TokenToKVPool"),
        max_num_reqs=4,
        swa_size=4096,
        c4_size=tokens // 4,
        c128_size=tokens // 128,
        c4_state_pool_size=256,
        c128_state_pool_size=256,
        page_size=DSV4_PAGE,
        swa_page_size=DSV4_PAGE,
        dtype=torch.float8_e4m3fn,
        state_dtype=torch.float32,
        c4_state_dtype=torch.float32,
        c128_state_dtype=torch.float32,
        qk_nope_head_dim=448,
        qk_rope_head_dim=64,
        indexer_head_dim=128,
        layer_num=6,
        compression_ratios=[0, 0, 4, 128, 4, 128],
        full_size=tokens,
        **HOST,
    )


def dsv4_small() -> Any:
    """C128 buffers have more pages than entries here: the padding is most of them."""
    return dsv4(8192)


def dsv4_unified() -> Any:
    """Windows and compressed pages of a layer in one buffer: of AMD's devices, so that the question
    whether this is one is answered by hand."""
    gate = _first_of(
        "sglang.srt.layers.attention.dsv4.unified_kv_gate",
        "sglang.kernels.ops.attention.dsv4.unified_kv_kernels.env_gate",
    )
    kept, gate.is_unified_kv_triton = gate.is_unified_kv_triton, lambda: True
    try:
        return dsv4()
    finally:
        gate.is_unified_kv_triton = kept


def minimax() -> Any:
    return made(
        _class("memory_pool", "MiniMaxSparseKVPool"),
        size=TOKENS,
        page_size=PAGE,
        dtype=torch.bfloat16,
        head_num=2,
        head_dim=16,
        idx_head_dim=8,
        dense_layer_ids=[0],
        sparse_layer_ids=[1, 2],
        disable_value_sparse_layer_ids=[1, 2],
        start_layer=0,
        end_layer=2,
        **HOST,
    )


def mxfp8() -> Any:
    given = {"size": TOKENS, "page_size": PAGE, "head_num": 2, "head_dim": 64, "layer_num": 2}
    cls = _class("memory_pool", "MHATokenToKVPoolMXFP8")
    return made(cls, **given, dtype=torch.float8_e4m3fn, **HOST)


def qsa() -> Any:
    return made(
        _class("qsa_kv_pool", "QSATokenToKVPool"),
        size=TOKENS,
        dtype=torch.bfloat16,
        page_size=PAGE,
        head_num=2,
        head_dim=16,
        full_attention_layer_ids=[1, 4],
        mamba_pool=mamba(),
        qsa_index_kv_heads=1,
        qsa_index_head_dim=16,
        qsa_compress_ratio=4,
        qsa_token_topk=8,
        num_request_slots=4,
        **HOST,
    )


def unified_swa() -> Any:
    module = importlib.import_module(f"{CACHES}.unified_memory_pool")
    specs = [
        made(
            module.MHASubPoolSpec,
            name=name,
            layer_num=2,
            head_num=2,
            head_dim=16,
            dtype=torch.bfloat16,
            store_dtype=torch.bfloat16,
            page_size=PAGE,
            grow_direction=direction,
        )
        for name, direction in (("full", "up"), ("swa", "down"))
    ]
    buffer = made(
        module.UnifiedKVPool, total_bytes=1 << 20, sub_pool_specs=specs, page_size=PAGE, **HOST
    )
    return made(
        module.UnifiedSWAKVPool,
        unified_buffer=buffer,
        swa_attention_layer_ids=[0, 2],
        full_attention_layer_ids=[1, 3],
        page_size=PAGE,
    )


# What a version, or a machine without a device, lacks for some pool.
CANNOT = (AttributeError, ModuleNotFoundError, NotImplementedError)

ZOO: dict[str, Callable[[], Any]] = {
    one.__name__: one
    for one in (
        mha,
        mha_float8,
        mha_second_stage,
        mla,
        dsa,
        swa,
        mamba,
        mamba_of_one_layer,
        mamba_of_as_many_layers_as_slots,
        hybrid,
        requests,
        dsv4,
        dsv4_small,
        dsv4_unified,
        minimax,
        mxfp8,
        qsa,
        unified_swa,
    )
}


def answers(cls: type) -> list[str]:
    """The methods by which pools of a class say what their regions are."""
    return [name for name in dir(cls) if name.startswith("get_") and name.endswith("buf_infos")]
