"""Triton kernels that put index keys into pages and score queries against them, and what they
should do, in torch. The planted faults are compile-time switches."""

import torch
import triton
import triton.language as tl

from examples.index_k_bf16.pools import HEAD_DIM, PAGE

HEADS = 16


@triton.jit
def store_kernel(
    cache,
    scales,
    keys,
    key_scales,
    slots,
    count,
    page_elements,
    page_scales,
    DIM: tl.constexpr,
    SLOTS: tl.constexpr,
    SCALED: tl.constexpr,
    PAGES_OFF: tl.constexpr,
):
    """One program moves SLOTS entries, whatever their type: bytes, or words of two."""
    entry = tl.program_id(0) * SLOTS + tl.arange(0, SLOTS)
    there = entry < count
    slot = tl.load(slots + entry, mask=there, other=0)
    page, row = slot // SLOTS - PAGES_OFF, slot % SLOTS
    d = tl.arange(0, DIM)
    key = tl.load(keys + entry[:, None] * DIM + d[None, :], mask=there[:, None])
    at = page[:, None] * page_elements + row[:, None] * DIM + d[None, :]
    tl.store(cache + at, key, mask=there[:, None])
    if SCALED:
        scale = tl.load(key_scales + entry, mask=there)
        tl.store(scales + page * page_scales + SLOTS * DIM // 4 + row, scale, mask=there)


@triton.jit
def logits_kernel(
    queries,
    weights,
    cache,
    scales,
    table,
    lengths,
    out,
    table_row,
    out_row,
    page_elements,
    page_scales,
    HEADS: tl.constexpr,
    DIM: tl.constexpr,
    SLOTS: tl.constexpr,
    SCALED: tl.constexpr,
    ONE_TABLE: tl.constexpr,
):
    """One program scores one page of one request."""
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    length = tl.load(lengths + row)
    if block * SLOTS < length:
        entry = block * SLOTS + tl.arange(0, SLOTS)
        there = entry < length
        if ONE_TABLE:
            page = tl.load(table + block).to(tl.int64)
        else:
            page = tl.load(table + row * table_row + block).to(tl.int64)
        d = tl.arange(0, DIM)
        at = page * page_elements + tl.arange(0, SLOTS)[:, None] * DIM + d[None, :]
        key = tl.load(cache + at, mask=there[:, None], other=0.0).to(tl.float32)
        heads = row * HEADS + tl.arange(0, HEADS)
        query = tl.load(queries + heads[:, None] * DIM + d[None, :]).to(tl.float32)
        # Of bf16 and fp8 numbers TF32 loses nothing.
        products = tl.maximum(tl.dot(query, tl.trans(key)), 0.0)
        score = tl.sum(products * tl.load(weights + heads)[:, None], axis=0)
        if SCALED:
            place = page * page_scales + SLOTS * DIM // 4 + tl.arange(0, SLOTS)
            score *= tl.load(scales + place, mask=there, other=0.0)
        tl.store(out + row * out_row + entry, score, mask=there)


def quantized(keys, dtype):
    """(entries, 128) as they are kept, and (entries,) float32 scales, of bf16 none."""
    if dtype == "bf16":
        return keys.to(torch.bfloat16), None
    scale = keys.abs().amax(dim=1).clamp(min=1e-4) / 448
    return (keys / scale[:, None]).to(torch.float8_e4m3fn), scale


def restored(keys, scale):
    """(entries, 128) float32, what was kept."""
    return keys.float() if scale is None else keys.float() * scale[:, None]


def store(cache, keys, scale, slots, pages_off=0):
    """Put entries into their slots of a layer's buffer (pages, bytes a page).

    pages_off  the planted fault: so many pages too early
    """
    scaled = scale is not None
    words = torch.uint8 if scaled else torch.int16
    typed, floats = cache.view(words), cache.view(torch.float32)
    store_kernel[(triton.cdiv(len(slots), PAGE),)](
        typed,
        floats,
        keys.view(words),
        scale if scaled else floats,
        slots,
        len(slots),
        typed.stride(0),
        floats.stride(0),
        DIM=HEAD_DIM,
        SLOTS=PAGE,
        SCALED=scaled,
        PAGES_OFF=pages_off,
    )


def store_in_torch(cache, keys, scale, slots):
    """What `store` should do."""
    page, row = slots // PAGE, slots % PAGE
    keys = keys.view(torch.uint8)
    d = torch.arange(keys.shape[1], device=cache.device)
    cache[page[:, None], row[:, None] * keys.shape[1] + d] = keys
    if scale is not None:
        four = torch.arange(4, device=cache.device)
        at = PAGE * HEAD_DIM + row[:, None] * 4 + four
        cache[page[:, None], at] = scale.view(torch.uint8).reshape(-1, 4)


def logits(queries, weights, cache, table, lengths, dtype, one_table=False):
    """(batch, entries that the table has room for) float32, -inf past a request's length.

    queries    (batch, HEADS, 128) bf16
    weights    (batch, HEADS) float32
    cache      (pages, bytes a page) uint8
    table      (batch, n) int32 pages
    lengths    (batch,) int32 entries
    one_table  the planted fault: the first request's pages for all
    """
    batch, blocks = table.shape
    scaled = dtype == "fp8"
    out = torch.full((batch, blocks * PAGE), -torch.inf, device=cache.device)
    typed = cache.view(torch.float8_e4m3fn if scaled else torch.bfloat16)
    floats = cache.view(torch.float32)
    logits_kernel[(batch, blocks)](
        queries,
        weights,
        typed,
        floats,
        table,
        lengths,
        out,
        table.stride(0),
        out.stride(0),
        typed.stride(0),
        floats.stride(0),
        HEADS=HEADS,
        DIM=HEAD_DIM,
        SLOTS=PAGE,
        SCALED=scaled,
        ONE_TABLE=one_table,
    )
    return out


def scores(queries, weights, keys):
    """(entries,) of one request: (HEADS, 128), (HEADS,) and (entries, 128)."""
    return torch.einsum("h,hn->n", weights, (queries.float() @ keys.T).relu())


def logits_in_torch(queries, weights, cache, table, lengths, dtype):
    """What `logits` should do."""
    out = torch.full((len(table), table.shape[1] * PAGE), -torch.inf, device=cache.device)
    for row, length in enumerate(lengths.tolist()):
        pages = cache[table[row].long()]
        width = HEAD_DIM if dtype == "fp8" else 2 * HEAD_DIM
        keys = pages[:, : PAGE * width].reshape(-1, width)[:length].contiguous()
        if dtype == "fp8":
            scale = pages[:, PAGE * width :].contiguous().view(torch.float32).reshape(-1)[:length]
            kept = restored(keys.view(torch.float8_e4m3fn), scale)
        else:
            kept = restored(keys.view(torch.bfloat16), None)
        out[row, :length] = scores(queries[row], weights[row], kept)
    return out
