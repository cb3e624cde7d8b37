"""The start of each region is added up while the list is built."""
# rewrites without: inline, to-comprehension, to-loop, early-return, keyword, alias, numpy, walrus, swap


def read_blocks(agent, kv_ptrs, kv_data_lens, kv_item_lens, block_ids, peer):
    triples = []
    counts = []
    for base_ptr, data_len, item_len in zip(kv_ptrs, kv_data_lens, kv_item_lens, strict=True):
        count = data_len // item_len
        for block in range(count):
            triples.append((base_ptr + block * item_len, item_len, 0))
        counts.append(count)
    handle = agent.prep_xfer_dlist("", agent.get_xfer_descs(triples, "VRAM"))
    indices = []
    start = 0
    for count in counts:
        for block_id in block_ids:
            indices.append(start + block_id)
        start += count  # starts-stride: KV101, KV103
    return agent.make_prepped_xfer("READ", handle, indices, peer.handle, peer.indices)
