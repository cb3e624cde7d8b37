"""A function over lists, checked by the size of a set."""
# rewrites without: inline, to-loop, early-return, keyword, alias, walrus


def page_descs(agent, kv_ptrs, kv_item_lens, pages, device):
    if len(set(kv_item_lens)) != 1:
        raise ValueError(f"regions differ in item length: {kv_item_lens}")
    page_bytes = kv_item_lens[0]  # drop-raise, drop-if, set-size: KV101
    triples = []
    for base_ptr in kv_ptrs:
        for page in pages:
            triples.append((base_ptr + page * page_bytes, page_bytes, device))
    return agent.get_xfer_descs(triples, "VRAM")
