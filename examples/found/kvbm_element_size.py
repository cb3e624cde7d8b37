"""kvbm 1.6.1: the worker of its vLLM connector gives the configured dtype's size for every layer.

Stand-ins: CUDA events, and the connector in Rust, whose register_kv_caches is recorded.
"""

from unittest.mock import Mock, patch

from release import end, needed

needed("kvbm", "1.6.1")
needed("vllm", "0.33.0")

import torch
from kvbm.vllm_integration.connector_worker import KvConnectorWorker
from planned_caches import layer, plan

BLOCK = 5


def measured(skipped):
    """Bytes of an element as registered and of layer 0; offsets of a block of layer 0 with them."""
    config, _, caches = plan(skipped)
    worker = object.__new__(KvConnectorWorker)
    worker.vllm_config, worker._connector = config, Mock()
    with patch.object(torch.cuda, "Event"), patch.object(torch.cuda, "current_stream"):
        worker.register_kv_caches(caches)
    _, _, _, width, registered, _ = worker._connector.register_kv_caches.call_args.args
    name, cache = registered[0]
    assert name == layer(0)
    # As Rust lays blocks out: block * (outer * page * inner) * dtype_width_bytes.
    taken = BLOCK * cache[0].numel() * width
    return width, cache.element_size(), taken, cache[BLOCK].data_ptr() - cache.data_ptr()


width, size, taken, there = measured(["0"])
print(f"layer 0: dtype_width_bytes is {width}, an element has {size} bytes")
print(f"layer 0 block {BLOCK}: laid out at byte {taken} of the layer, is at byte {there}")
alike = measured([])
print(f"without --kv-cache-dtype-skip-layers: {alike[0]} of {alike[1]}, {alike[2]} of {alike[3]}")
end(
    shows=width != size and taken != there,
    control=alike[0] == alike[1] and alike[2] == alike[3],
)
