"""Blocks share the bytes of a cache evenly, or the cache is refused."""
# rewrites without: inline, to-comprehension, keyword, alias, numpy


class Sender:
    def __init__(self, engine):
        self.engine = engine

    def register(self, cache, num_blocks):
        assert cache.is_contiguous(), "blocks are padded"
        if cache.nbytes % num_blocks != 0:
            raise ValueError(f"{num_blocks} blocks do not share {cache.nbytes} bytes evenly")
        self.base_addr = cache.data_ptr()
        self.block_len = cache.nbytes // num_blocks  # drop-raise, drop-if, drop-remainder: KV204

    def send(self, session, block_ids, remote_addr):
        base_addr, block_len = self.base_addr, self.block_len
        src = [base_addr + block_id * block_len for block_id in block_ids]  # drop-assert: KV205
        self.engine.batch_transfer_sync_write(session, src, [remote_addr], [block_len])
