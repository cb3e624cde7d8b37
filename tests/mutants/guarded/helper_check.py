"""The check stands in a helper, the use in the function that calls it."""
# rewrites without: to-comprehension, early-return, alias, split


def require_equal(found, what):
    if len(set(found)) > 1:
        raise ValueError("regions differ in " + what)


def whole_pages(agent, kv_ptrs, kv_item_lens, first, last, device):
    require_equal(kv_item_lens, "item length")
    item_len = kv_item_lens[0]  # drop-raise, drop-if, set-size: KV101
    triples = [
        (base_ptr + page * item_len, item_len, device)
        for base_ptr in kv_ptrs
        for page in range(first, last)
    ]
    return agent.get_xfer_descs(triples, "VRAM")
