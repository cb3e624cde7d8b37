"""sglang 0.5.23: values pass the staging buffers with the keys' head size.

Two prefill ranks with a head each hand three pages to a decode rank with both. Released code: the
pools, the layout of the staging buffers, gather and scatter, whose Triton kernels are interpreted.
Stand-ins: the device's streams, and RDMA between the staging buffers, which is a copy here.
"""

import os
from contextlib import nullcontext
from unittest.mock import Mock, patch

from release import end, needed

needed("sglang", "0.5.23")
os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
from sglang.srt import runtime_context

runtime_context.get_context().override_server_args(device="cpu").install()

from sglang.srt.disaggregation.common import staging_buffer
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool

# Pages are low ones of larger pools: with higher ones the kernels leave the values' buffers.
PAGE, PAGES, LAYERS, RANKS = 16, 32, 2, 2
THERE, HERE = [1, 3, 4], [2, 5, 6]


def made(heads, key, value, seed=None):
    pool = MHATokenToKVPool(
        size=PAGES * PAGE,
        page_size=PAGE,
        dtype=torch.bfloat16,
        head_num=heads,
        head_dim=key,
        v_head_dim=value,
        layer_num=LAYERS,
        device="cpu",
        enable_memory_saver=False,
    )
    if seed is not None:
        numbers = torch.Generator().manual_seed(seed)
        for buffer in pool.k_buffer + pool.v_buffer:
            buffer.copy_(torch.randint(1, 200, buffer.shape, generator=numbers))
    return pool


def staging(size):
    return Mock(buffer=torch.zeros(size, dtype=torch.uint8), device=torch.device("cpu"))


def rows(buffer, pages):
    return torch.cat([buffer[page * PAGE : (page + 1) * PAGE] for page in pages])


def measured(key, value):
    """Bytes a rank stages and has; of layer 0's values how many tokens arrive, and how many are
    written that are none of the request's."""
    prefill = [made(1, key, value, seed) for seed in range(RANKS)]
    decode = made(RANKS, key, value)
    first, tokens = prefill[0], len(THERE) * PAGE
    each = first.k_buffer[0][0].nbytes  # of a token in one head
    _, staged, total = staging_buffer.compute_staging_layout(
        RANKS, 1, 0, RANKS, tokens, each, LAYERS
    )
    arrived = torch.zeros(total, dtype=torch.uint8)
    with patch.object(staging_buffer, "device_stream_context", lambda stream: nullcontext()):
        for rank, pool in enumerate(prefill):
            own, start = staging(staged[rank]), sum(staged[:rank])
            size = staging_buffer.gather_all_layers_to_staging(
                pool.k_buffer, pool.v_buffer, np.array(THERE), own, 0, 1, PAGE
            )
            arrived[start : start + size] = own.buffer[:size]
        staging_buffer.scatter_staging_to_kv(
            arrived, decode.k_buffer, decode.v_buffer, torch.tensor(HERE), PAGE, RANKS, 1, 0, RANKS
        )
    have = sum(rows(buffer, THERE).nbytes for buffer in first.k_buffer + first.v_buffer)
    sent = torch.cat([rows(pool.v_buffer[0], THERE) for pool in prefill], dim=1)
    values = decode.v_buffer[0]
    right = (rows(values, HERE) == sent).flatten(1).all(1).sum().item()
    others = [page for page in range(PAGES + 1) if page not in HERE]
    spilt = rows(values, others).flatten(1).any(1).sum().item()
    return staged[0], have, right, tokens, spilt


staged, have, right, tokens, spilt = measured(key=192, value=128)
print(f"keys of 192, values of 128: a rank stages {staged} bytes, its pages have {have}")
print(f"layer 0 values: {right} of {tokens} tokens are right, {spilt} of other pages overwritten")
alike = measured(key=128, value=128)
print(f"keys and values of 128: {alike[0]} of {alike[1]}, {alike[2]} of {alike[3]}, {alike[4]}")
end(
    shows=staged != have and right < tokens and spilt > 0,
    control=alike[0] == alike[1] and alike[2] == alike[3] and alike[4] == 0,
)
