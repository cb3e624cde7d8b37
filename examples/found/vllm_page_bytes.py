"""vllm 0.33.0: HF3FSKVConnector takes the first layer's element size for every layer's."""

from release import end, needed

needed("vllm", "0.33.0")

from planned_caches import layer, plan
from vllm.distributed.kv_transfer.kv_connector.v1.hf3fs.hf3fs_connector import HF3FSKVConnector

BLOCK = 5


def measured(skipped):
    """Of a page the bytes as the connector has it and as the layers have it, and the offsets of
    a block in its layer, for a layer kept in fp8."""
    *_, caches = plan(skipped)
    connector = object.__new__(HF3FSKVConnector)
    connector._kv_caches = caches
    connector._setup_kv_cache_config()
    # The gather kernel: the layer's pointer, as one to _dtype, + block * block_stride.
    taken = BLOCK * connector._kv_cache_strides[0] * connector._dtype.itemsize
    cache = caches[layer(1)]
    there = cache[BLOCK].data_ptr() - cache.data_ptr()
    return connector._bytes_per_page, sum(c[0].nbytes for c in caches.values()), taken, there


page, layers, taken, there = measured(["0"])
print(f"page of 4 layers: _bytes_per_page is {page}, their blocks have {layers} bytes")
print(f"layer 1 block {BLOCK}: gathered from byte {taken} of the layer, is at byte {there}")
alike = measured([])
print(f"without --kv-cache-dtype-skip-layers: {alike[0]} of {alike[1]}, {alike[2]} of {alike[3]}")
end(
    shows=page != layers and taken != there,
    control=alike[0] == alike[1] and alike[2] == alike[3],
)
