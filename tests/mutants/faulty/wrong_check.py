"""What is checked is another quantity than the one that stands for all regions."""
# rewrites without: inline, to-comprehension, keyword, alias, split


def describe(agent, kv_ptrs, kv_data_lens, kv_item_lens, pages, device):
    assert len(kv_ptrs) == len(kv_item_lens), "one item length a region"
    if any(data_len != kv_data_lens[0] for data_len in kv_data_lens):
        raise ValueError("regions differ in length")
    item_len = kv_item_lens[0]  # KV101
    triples = [
        (base_ptr + page * item_len, item_len, device) for base_ptr in kv_ptrs for page in pages
    ]
    return agent.get_xfer_descs(triples, "VRAM")
