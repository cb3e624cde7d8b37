"""Lists of triples in nested loops, numbered by cumulative starts kept in a field."""
# rewrites without: inline, to-comprehension, keyword, numpy, swap

from itertools import accumulate


class BlockReader:
    def __init__(self, agent, kv_caches):
        self.agent = agent
        triples = []
        counts = []
        for cache in kv_caches:
            assert cache.is_contiguous(), "blocks are padded"
            base_addr = cache.data_ptr()
            num_blocks = cache.shape[0]
            block_len = cache[0].nbytes
            for block_id in range(num_blocks):
                addr = base_addr + block_id * block_len  # drop-assert: KV205
                triples.append((addr, block_len, cache.get_device()))
            counts.append(num_blocks)
        self.starts = [0, *accumulate(counts[:-1])]  # starts-stride: KV101, KV103
        self.handle = agent.prep_xfer_dlist("", agent.get_xfer_descs(triples, "VRAM"))

    def read(self, block_ids, peer):
        indices = [start + block_id for start in self.starts for block_id in block_ids]
        return self.agent.make_prepped_xfer("READ", self.handle, indices, peer.handle, peer.indices)
