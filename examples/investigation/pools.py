"""DeepSeek-V4's pool, as the installed sglang (0.5.13 to 0.5.23) makes it, in host memory.

    kvlint geometry capture pools:fp8

in this folder. What is built is the released class, whole, for a few layers and tokens.
"""

import inspect
from contextlib import contextmanager
from math import prod
from unittest.mock import patch

import torch
from sglang.srt.mem_cache.deepseek_v4_memory_pool import (
    DeepSeekV4IndexerPool,
    DeepSeekV4TokenToKVPool,
)

TOKENS, PAGE = 40_960, 256
RATIOS = [0, 4, 128, 4, 128]  # tokens of one entry, layer by layer; 0: only a window is kept


def fp8():
    """As released. An index key takes 132 bytes: 128 numbers and a scale."""
    return build()


def bf16():
    """An index key takes 256 bytes, and nothing else changes. Each of these releases asks the
    method before it allocates."""
    with patch.object(DeepSeekV4IndexerPool, "get_bytes_per_token", lambda index: 256):
        return build()


def bf16_in_fp8_bytes():
    """And the index pool holds as many of them as fit the bytes of the fp8 one."""
    make = DeepSeekV4IndexerPool.__init__

    def with_fewer(index, size, *given, **named):
        make(index, size * 132 // 256, *given, **named)

    with patch.object(DeepSeekV4IndexerPool, "__init__", with_fewer):
        return bf16()


def bf16_told_as_fp8():
    """No pool is like this one: it tells the transport the item length of fp8."""
    pool = bf16()
    addresses, lengths, item_lengths = pool.get_contiguous_buf_infos()
    told = [64 * 132 if length == 64 * 256 else length for length in item_lengths]
    pool.get_contiguous_buf_infos = lambda: (addresses, lengths, told)
    return pool


KINDS = {make.__name__: make for make in (fp8, bf16, bf16_in_fp8_bytes)}


def build():
    publish_configuration()
    options = {
        "max_num_reqs": 4,
        "swa_size": 4096,
        "c4_size": TOKENS // 4,
        "c128_size": TOKENS // 128,
        "c4_state_pool_size": 256,
        "c128_state_pool_size": 256,
        "page_size": PAGE,
        "swa_page_size": PAGE,
        "dtype": torch.float8_e4m3fn,
        "state_dtype": torch.float32,
        "c4_state_dtype": torch.float32,
        "c128_state_dtype": torch.float32,
        "qk_nope_head_dim": 448,
        "qk_rope_head_dim": 64,
        "indexer_head_dim": 128,
        "layer_num": len(RATIOS),
        "compression_ratios": RATIOS,
        "full_size": TOKENS,
        "device": "cpu",
        "enable_memory_saver": False,
    }
    known = inspect.signature(DeepSeekV4TokenToKVPool.__init__).parameters
    return DeepSeekV4TokenToKVPool(**{name: options[name] for name in options if name in known})


def publish_configuration():
    """Pools read that of the server. SGLang's own tests publish one so."""
    try:
        from sglang.srt.runtime_context import get_context
    except ImportError:  # 0.5.13
        from sglang.srt import server_args

        args = server_args.ServerArgs(model_path="dummy", device="cpu")
        server_args.set_global_server_args_for_scheduler(args)
    else:
        get_context().override_server_args(device="cpu").install()


@contextmanager
def side_by_side():
    """What is allocated meanwhile lies one behind the other in one piece of memory."""
    whole, used = torch.zeros(1 << 26, dtype=torch.uint8), 0

    def carve(*shape, dtype=torch.float32, **more):
        nonlocal used
        shape = tuple(shape if isinstance(shape[0], int) else shape[0])
        begin, used = used, used + prod(shape) * dtype.itemsize
        return whole[begin:used].view(dtype).view(shape)

    with patch.object(torch, "zeros", carve):
        yield whole
