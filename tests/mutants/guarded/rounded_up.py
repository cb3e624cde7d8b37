"""The last page of a cache may be part full: pages are counted upwards."""
# rewrites without: inline, to-comprehension, to-loop, early-return, keyword, alias, numpy, walrus, swap


def describe(agent, kv_caches, page_size, page_bytes, device):
    triples = []
    for cache in kv_caches:
        base_ptr = cache.data_ptr()
        num_pages = -(-cache.shape[0] // page_size)  # ceil-floor: KV204
        for page in range(num_pages):
            triples.append((base_ptr + page * page_bytes, page_bytes, device))
    return agent.get_xfer_descs(triples, "VRAM")
