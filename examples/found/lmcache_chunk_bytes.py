"""lmcache 0.5.6: a chunk's bytes come from the model's head size and the configured dtype.

Stand-ins: packages that nothing here calls, where they are not installed.
"""

from release import end, needed, stand_in

needed("lmcache", "0.5.6")
stand_in("numba", "aiofile", "cryptography")

import torch
from lmcache.utils import EngineType
from lmcache.v1.config import LMCacheEngineConfig
from lmcache.v1.gpu_connector.utils import normalize_and_discover_per_layer_formats
from lmcache.v1.kv_layer_groups import KVLayerGroupsManager
from lmcache.v1.metadata import LMCacheMetadata
from lmcache.v1.storage_backend.local_cpu_backend import LocalCPUBackend

LAYERS, CHUNK, BLOCKS, TOKENS = 4, 256, 8, 64
HEADS, HEAD_SIZE, GIB = 2, 64, 0.05
FP8 = torch.uint8  # as vLLM keeps it


def measured(*stored):
    """Bytes of a full chunk as the backend has them and as allocated, how many chunks it would
    admit, and how many there is room for; `stored` are the dtypes of the layers' caches."""
    caches = [torch.zeros(BLOCKS, HEADS, TOKENS, 2 * HEAD_SIZE, dtype=dtype) for dtype in stored]
    metadata = LMCacheMetadata(
        model_name="a model with 4 layers",
        world_size=1,
        local_world_size=1,
        worker_id=0,
        local_worker_id=0,
        # What the vLLM adapter gives under --kv-cache-dtype fp8.
        kv_dtype=FP8,
        kv_shape=(LAYERS, 2, CHUNK, HEADS, HEAD_SIZE),
        chunk_size=CHUNK,
    )
    # As VLLMPagedMemGPUConnectorV3 does with the registered caches.
    metadata.kv_layer_groups_manager = KVLayerGroupsManager(
        *normalize_and_discover_per_layer_formats(caches, [], EngineType.VLLM, {"kv_layout": "HND"})
    )
    config = LMCacheEngineConfig.from_defaults(chunk_size=CHUNK, max_local_cpu_size=GIB)
    backend = LocalCPUBackend(config, metadata, dst_device="cpu")
    shapes, dtypes, chunks = metadata.get_shapes(), metadata.get_dtypes(), []
    while (chunk := backend.allocate(shapes, dtypes, eviction=False, busy_loop=False)) is not None:
        chunks.append(chunk)
    size, room = chunks[0].get_size(), len(chunks)
    for chunk in chunks:
        chunk.ref_count_down()
    return backend.get_full_chunk_size_bytes(), size, backend.calculate_chunk_budget(), room


said, size, budget, room = measured(torch.bfloat16, FP8, FP8, FP8)
print(f"chunk of 4 layers: get_full_chunk_size_bytes() is {said}, allocated are {size} bytes")
print(f"{GIB} GiB: calculate_chunk_budget() is {budget} chunks, there is room for {room}")
alike = measured(FP8, FP8, FP8, FP8)
print(f"without --kv-cache-dtype-skip-layers: {alike[0]} of {alike[1]}, {alike[2]} of {alike[3]}")
end(shows=said < size and budget > room, control=alike[0] == alike[1] and alike[2] == alike[3])
