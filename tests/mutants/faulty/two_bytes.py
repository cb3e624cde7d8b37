"""Item lengths for elements of two bytes, whatever the buffers hold."""
# rewrites without: to-comprehension, early-return, keyword, alias, numpy, swap


class HalfPool:
    def __init__(self, k_buffers, page_size, head_num, head_dim):
        self.k_buffers = k_buffers
        self.page_size = page_size
        self.head_num = head_num
        self.head_dim = head_dim

    def page_bytes(self):
        return self.page_size * self.head_num * self.head_dim * 2

    def get_contiguous_buf_infos(self):
        kv_data_ptrs = [buffer.data_ptr() for buffer in self.k_buffers]
        kv_data_lens = [buffer.nbytes for buffer in self.k_buffers]
        kv_item_lens = [self.page_bytes() for _ in self.k_buffers]  # KV201
        return kv_data_ptrs, kv_data_lens, kv_item_lens
