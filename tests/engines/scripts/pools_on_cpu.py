"""Pools of the installed sglang, as an operator builds them for `kvlint geometry capture`."""

import torch
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool


def mha(pool=MHATokenToKVPool):
    return pool(
        size=1024,
        page_size=16,
        dtype=torch.bfloat16,
        head_num=2,
        head_dim=64,
        layer_num=3,
        device="cpu",
        enable_memory_saver=False,
    )


class MHAInBytes(MHATokenToKVPool):
    """Takes an element for a byte."""

    def get_contiguous_buf_infos(self):
        pointers, lengths, item_lengths = super().get_contiguous_buf_infos()
        return pointers, lengths, [length // 2 for length in item_lengths]


def wrong():
    return mha(MHAInBytes)
