"""vllm 0.33.0: OffloadingConnector takes the stride from block to block for a block's bytes.

Stand-in: the worker that copies the rows it is given, which needs a GPU.
"""

import os
from unittest.mock import Mock

from release import end, needed

needed("vllm", "0.33.0")

from planned_caches import HEADS, LAYERS, layer, plan
from vllm.config import VllmConfig
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.worker import (
    OffloadingConnectorWorker,
)
from vllm.v1.attention.backends.flash_attn import FlashAttentionBackend
from vllm.v1.attention.backends.utils import (
    get_supported_kv_cache_layouts,
    resolve_kv_cache_layout,
)

BLOCK = 5


def accepted(name):
    """The layout as vLLM resolves it for FlashAttention where the environment asks for it."""
    os.environ["VLLM_KV_CACHE_LAYOUT"] = name
    supported = get_supported_kv_cache_layouts([FlashAttentionBackend])
    return resolve_kv_cache_layout(VllmConfig(), [[each.name for each in supported]]).name


def measured(layout):
    """Bytes of a block as offloaded and as its layers have it, and which (layer, head) of it are
    in what is offloaded."""
    config, planned, caches = plan([], accepted(layout))
    model, copies = Mock(), Mock()
    model.get_total_num_kv_heads.return_value = HEADS
    vllm_config = Mock(parallel_config=config.parallel_config, model_config=model)
    OffloadingConnectorWorker(copies, vllm_config, planned).register_kv_caches(caches)
    rows = [each.tensor[BLOCK] for each in copies.get_worker.call_args.args[0].tensors]
    within = [
        (number, head)
        for number in range(LAYERS)
        for head in range(HEADS)
        if any(holds(row, caches[layer(number)][BLOCK, head]) for row in rows)
    ]
    has = sum(cache[BLOCK].nbytes for cache in caches.values())
    return sum(row.nbytes for row in rows), has, within


def holds(row, part):
    """Whether the bytes of a part are among those of a row."""
    start = part.data_ptr() - row.data_ptr()
    return part.is_contiguous() and 0 <= start <= row.nbytes - part.nbytes


taken, has, within = measured("LHBNC")
print(f"block {BLOCK} of {LAYERS} layers: offloaded are {taken} bytes, it has {has}")
print(f"of its {LAYERS * HEADS} pairs (layer, head) {len(within)} is among them: {within}")
alike = measured("LBHNC")
print(f"with LBHNC: {alike[0]} of {alike[1]}, {len(alike[2])} of {LAYERS * HEADS}")
end(
    shows=taken < has and len(within) < LAYERS * HEADS,
    control=alike[0] == alike[1] and len(alike[2]) == LAYERS * HEADS,
)
