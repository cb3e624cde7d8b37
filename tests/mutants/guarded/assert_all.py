"""One region's element size for all tensors, after an assert over all of them."""
# rewrites without: to-comprehension, alias, numpy, walrus, swap


class StridedCopy:
    def __init__(self, agent, k_buffers, device):
        assert all(b.element_size() == k_buffers[0].element_size() for b in k_buffers)
        self.agent = agent
        self.k_buffers = k_buffers
        self.device = device
        self.element_size = k_buffers[0].element_size()  # drop-assert: KV101

    def rows(self, first, width):
        return [
            (
                buffer.data_ptr() + first * self.element_size,  # element-size: KV201
                width * self.element_size,
                self.device,
            )
            for buffer in self.k_buffers
        ]

    def describe(self, first, width):
        return self.agent.get_xfer_descs(self.rows(first, width), "VRAM")
