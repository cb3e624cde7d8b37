"""A page of the index cache is cut by the widths of one layout."""
# rewrites without: inline, to-comprehension, to-loop, early-return, keyword, alias, numpy, walrus, swap


def scales_of(agent, index_caches, pages, device):
    triples = []
    for cache in index_caches:
        base_ptr = cache.data_ptr()
        for page in pages:
            triples.append((base_ptr + page * 8448 + 8192, 256, device))  # KV202
    return agent.get_xfer_descs(triples, "VRAM")
