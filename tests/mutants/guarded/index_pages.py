"""Pages of an index hold keys, then a scale for each group of them; the bytes follow from both."""
# rewrites without: inline, to-comprehension, to-loop, early-return, keyword, alias, numpy, swap


def index_page_descs(agent, index_caches, page_size, head_dim, group, scale_dtype, pages, device):
    scale_bytes = page_size * (head_dim // group) * scale_dtype.itemsize  # element-size: KV201
    page_bytes = page_size * head_dim + scale_bytes
    triples = []
    for cache in index_caches:
        base_ptr = cache.data_ptr()
        for page in pages:
            page_ptr = base_ptr + page * page_bytes  # fixed-width: KV202
            triples.append((page_ptr, page_bytes, device))
    return agent.get_xfer_descs(triples, "VRAM")
