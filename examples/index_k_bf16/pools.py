"""What one side caches: c4 entries and index keys, page by page, two layers of each.

A page is 64 entries. Of index keys it holds 64 x 128 numbers: in fp8 with a float32 scale for each
entry after them, 8,448 bytes, in bf16 without, 16,384. Where sglang is installed the index keys
lie in its own pool, else in tensors of the same shape.
"""

import torch

PAGE = 64
HEAD_DIM = 128
LAYERS = 2
C4_PAGES, INDEX_PAGES = 128, 96
C4_PAGE_BYTES = 2048
FP8_PAGE_BYTES = PAGE * (HEAD_DIM + 4)
BF16_PAGE_BYTES = PAGE * HEAD_DIM * 2
PAGE_BYTES = {"fp8": FP8_PAGE_BYTES, "bf16": BF16_PAGE_BYTES}

try:
    from sglang.srt.mem_cache.deepseek_v4_memory_pool import DeepSeekV4IndexerPool
except Exception as error:
    SGLANG, WHY = False, f"{type(error).__name__}: {error}"
else:

    class BF16IndexerPool(DeepSeekV4IndexerPool):
        """The patch: two bytes a number, and no scales."""

        def get_bytes_per_token(self):
            return 2 * self.index_head_dim

    # Releases before 0.5.20 do not ask this method.
    SGLANG, WHY = hasattr(DeepSeekV4IndexerPool, "get_bytes_per_token"), "sglang is too old"


def index_buffers(dtype, device):
    """(pages, bytes a page) uint8, one a layer."""
    if not SGLANG:
        shape = (INDEX_PAGES, PAGE_BYTES[dtype])
        return [torch.zeros(shape, dtype=torch.uint8, device=device) for _ in range(LAYERS)]
    kind = DeepSeekV4IndexerPool if dtype == "fp8" else BF16IndexerPool
    pool = kind(
        size=(INDEX_PAGES - 1) * PAGE,
        page_size=PAGE,
        dtype=torch.uint8,
        index_head_dim=HEAD_DIM,
        layer_num=LAYERS,
        device=device,
        enable_memory_saver=False,
        use_fp4_indexer=False,
    )
    return pool.contiguous_page_row_buffers()


class Pools:
    """The buffers of one side. Page 0 is where padding goes, and no request's."""

    def __init__(self, dtype, device, item_bytes=None):
        """item_bytes  what the transport is told that a page of index keys takes"""
        self.dtype, self.device = dtype, device
        shape = (C4_PAGES, C4_PAGE_BYTES)
        self.c4 = [torch.zeros(shape, dtype=torch.uint8, device=device) for _ in range(LAYERS)]
        self.index = index_buffers(dtype, device)
        self.item_bytes = item_bytes or PAGE_BYTES[dtype]
        # So that the second request's pages lie between the first one's.
        self.free = [*range(2, 24, 2), *range(3, 24, 2), *range(24, 64)]

    def take(self, count):
        taken, self.free = self.free[:count], self.free[count:]
        return taken

    def give(self, pages):
        """They are the next that are taken."""
        self.free = [*pages, *self.free]

    def told(self):
        """Addresses, lengths and item lengths, in bytes, of the regions that are moved."""
        buffers = [*self.c4, *self.index]
        item_lens = [C4_PAGE_BYTES] * LAYERS + [self.item_bytes] * LAYERS
        return [b.data_ptr() for b in buffers], [b.nbytes for b in buffers], item_lens

    def regions(self):
        """The same by name."""
        names = [f"layer {layer} {kind}" for kind in ("c4", "index-K") for layer in range(LAYERS)]
        return dict(zip(names, zip(*self.told(), strict=True), strict=True))
