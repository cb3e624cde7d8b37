"""Regions that differ are left to another path: an early return is the guard."""
# rewrites without: inline, to-loop, early-return, keyword, alias, walrus


def try_fast_path(agent, kv_ptrs, kv_item_lens, pages, device):
    if any(item_len != kv_item_lens[0] for item_len in kv_item_lens):
        return None
    item_len = kv_item_lens[0]  # drop-if: KV101
    triples = []
    for base_ptr in kv_ptrs:
        for page in pages:
            triples.append((base_ptr + page * item_len, item_len, device))
    return agent.get_xfer_descs(triples, "VRAM")
