"""Rows of a cache fill whole pages, which is asserted before they are counted in pages."""
# rewrites without: inline, to-comprehension, to-loop, keyword, alias, numpy, walrus, swap


def page_descs(agent, kv_caches, page_size, page_bytes, device):
    triples = []
    for cache in kv_caches:
        assert cache.shape[0] % page_size == 0, "the last page is not full"
        num_pages = cache.shape[0] // page_size  # drop-assert, drop-remainder: KV204
        base_ptr = cache.data_ptr()
        for page in range(num_pages):
            triples.append((base_ptr + page * page_bytes, page_bytes, device))
    return agent.get_xfer_descs(triples, "VRAM")
