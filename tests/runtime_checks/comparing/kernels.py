"""Triton kernels of index queries against index keys: a right one, and wrong ones. They run where
this module is imported with TRITON_INTERPRET=1, which the fixture `interpreted` sees to."""

import torch
import triton
import triton.language as tl

from kvlint.runtime_checks.comparing import Report, cases, compare

SMALL = {"batches": (1, 3), "lengths": (40,)}
SHAPES = {"out": ["out"], "within_lengths": True, "top_k": 8}


@triton.jit
def score_rows(
    queries,
    keys,
    lengths,
    out,
    query_row,
    key_row,
    key_column,
    out_row,
    dim: tl.constexpr,
    block: tl.constexpr,
    row_axis: tl.constexpr,
    mask_lengths: tl.constexpr,
):
    row = tl.program_id(row_axis).to(tl.int64)
    own = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * block + tl.arange(0, block)
    length = tl.load(lengths + own)
    inside = columns < length
    d = tl.arange(0, dim)
    query = tl.load(queries + row * query_row + d).to(tl.float32)
    at = keys + row * key_row + columns[:, None] * key_column + d[None, :]
    key = tl.load(at, mask=inside[:, None], other=0.0).to(tl.float32)
    score = tl.sum(key * query[None, :], axis=1)
    if mask_lengths:
        tl.store(out + own * out_row + columns, score, mask=inside)
    else:
        tl.store(out + own * out_row + columns, score)


def launch(queries, keys, lengths, out, *, query_row, row_axis=0, mask_lengths=True):
    batch, longest, dim = keys.shape
    grid = (batch, triton.cdiv(longest, 32))
    strides = (query_row, keys.stride(0), keys.stride(1), out.stride(0))
    score_rows[grid](
        queries, keys, lengths, out, *strides, dim, 32, row_axis=row_axis, mask_lengths=mask_lengths
    )


def right(queries, keys, lengths, out):
    launch(queries, keys, lengths, out, query_row=queries.stride(0))


def of_the_wrong_axis(queries, keys, lengths, out):
    launch(queries, keys, lengths, out, query_row=queries.stride(0), row_axis=1)


def of_packed_queries(queries, keys, lengths, out):
    launch(queries, keys, lengths, out, query_row=queries.shape[1])


def past_the_length(queries, keys, lengths, out):
    launch(queries, keys, lengths, out, query_row=queries.stride(0), mask_lengths=False)


def into_a_handed_buffer(queries, keys, lengths, out):
    """But for the last row."""
    right(queries[:-1], keys[:-1], lengths[:-1], out[:-1])


def into_an_own_buffer(queries, keys, lengths, out):
    """But for the last row."""
    mine = torch.empty_like(out)
    right(queries[:-1], keys[:-1], lengths[:-1], mine[:-1])
    return mine


def reference(queries, keys, lengths, out):
    """(batch, longest) float32, -inf past a row's length."""
    scores = torch.einsum("bd,bnd->bn", queries.float(), keys.float())
    past = torch.arange(keys.shape[1], device=keys.device) >= lengths[:, None]
    return scores.masked_fill(past, -torch.inf)


def make(case):
    return {
        "queries": case.randn(case.batch, 16),
        "keys": case.randn(case.batch, case.longest, 16),
        "lengths": case.counts(),
        "out": case.empty(case.batch, case.longest, dtype="float32"),
    }


def compared(kernel, choices=None, asked=None) -> Report:
    some = cases(make, **{**SMALL, **(choices or {})})
    return compare(kernel, reference, some, **{**SHAPES, **(asked or {})})
