"""Rows of a padded cache: their places by the stride, their lengths by the width."""
# rewrites without: inline, to-comprehension, to-loop, early-return, keyword, alias, numpy, swap


def row_descs(agent, kv_caches, slots, device):
    triples = []
    for cache in kv_caches:
        element_size = cache.element_size()
        base_ptr = cache.data_ptr()
        width = cache.shape[1] * element_size  # element-size: KV201
        for slot in slots:
            at = slot * cache.stride(0) * element_size  # element-size: KV201; stride-length: KV205
            triples.append((base_ptr + at, width, device))
    return agent.get_xfer_descs(triples, "VRAM")
