"""Item lengths of a pool, worked out from the heads and the element size of each buffer."""
# rewrites without: to-comprehension, to-loop, early-return, keyword, numpy, swap

import torch


class PagedPool:
    def __init__(self, num_pages, page_size, head_num, head_dim, layer_num, dtype, device):
        self.page_size = page_size
        self.head_num = head_num
        self.head_dim = head_dim
        self.kv_buffers = [
            torch.zeros((num_pages, page_size, head_num, head_dim), dtype=dtype, device=device)
            for _ in range(layer_num)
        ]

    def page_elements(self):
        return self.page_size * self.head_num * self.head_dim

    def get_contiguous_buf_infos(self):
        kv_data_ptrs, kv_data_lens, kv_item_lens = [], [], []
        for buffer in self.kv_buffers:
            kv_data_ptrs.append(buffer.data_ptr())
            kv_data_lens.append(buffer.nbytes)
            item_len = self.page_elements() * buffer.element_size()  # element-size: KV201
            kv_item_lens.append(item_len)
        return kv_data_ptrs, kv_data_lens, kv_item_lens
