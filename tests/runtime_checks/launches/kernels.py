"""Kernels as engines write them around a KV cache, and launches of them that are wrong, or right.

For a process where Triton interprets: each function here is called there.
"""

import torch
import triton
import triton.language as tl

from kvlint import runtime_checks
from kvlint.runtime_checks import Violation, arm, guard_pool, status

SLOTS, WIDTH = 16, 24


@triton.jit
def scale(out, x, n, factor, block: tl.constexpr):
    offs = tl.program_id(0) * block + tl.arange(0, block)
    mask = offs < n
    tl.store(out + offs, tl.load(x + offs, mask=mask) * factor, mask=mask)


@triton.jit
def rows(out, x, out_stride, x_stride, width: tl.constexpr, block: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, block)
    mask = lanes < width
    tl.store(out + row * out_stride + lanes, tl.load(x + row * x_stride + lanes, mask=mask), mask)


@triton.jit
def wide_rows(out, x, out_stride, x_stride, width: tl.constexpr, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, block)
    mask = lanes < width
    tl.store(out + row * out_stride + lanes, tl.load(x + row * x_stride + lanes, mask=mask), mask)


@triton.jit
def transposed(out, x, n, m, out_stride, x_stride, step, block: tl.constexpr):
    """Tiles in two dimensions, and in the end a loop."""
    i = tl.program_id(0) * block + tl.arange(0, block)
    source = x + i[:, None] * x_stride
    for start in range(0, m, block):
        j = start + tl.arange(0, block)
        mask = (i[:, None] < n) & (j[None, :] < m)
        tile = tl.load(source + j[None, :] * step, mask=mask)
        tl.store(out + j[None, :] * out_stride + i[:, None], tile, mask=mask)


@triton.jit
def copied_in_steps(out, x, n, block: tl.constexpr):
    """Pointers that grow."""
    lanes = tl.arange(0, block)
    source, target = x + lanes, out + lanes
    for _ in range(tl.cdiv(n, block)):
        tl.store(target, tl.load(source))
        source += block
        target += block


@triton.jit
def picked(cache, slots, stride, lanes):
    return cache + tl.load(slots + tl.program_id(0)).to(tl.int64) * stride + lanes


@triton.jit
def store(cache, x, slots, stride, width: tl.constexpr, block: tl.constexpr):
    """One program a token; a slot below 0 is none."""
    token = tl.program_id(0)
    slot = tl.load(slots + token).to(tl.int64)
    if slot < 0:
        return
    lanes = tl.arange(0, block)
    mask = lanes < width
    value = tl.load(x + token * width + lanes, mask=mask)
    tl.store(cache + slot * stride + lanes, value, mask=mask)


@triton.jit
def store_narrow(cache, x, slots, stride, width: tl.constexpr, block: tl.constexpr):
    token = tl.program_id(0)
    slot = tl.load(slots + token)
    lanes = tl.arange(0, block)
    value = tl.load(x + token * width + lanes, mask=lanes < width)
    tl.store(cache + slot * stride + lanes, value, mask=lanes < width)


@triton.jit
def gather(out, cache, table, lengths, table_stride, page_size: tl.constexpr, width: tl.constexpr):
    """Pages of a request by its block table; beyond its length the table is anything."""
    request, at = tl.program_id(0), tl.program_id(1)
    length = tl.load(lengths + request)
    token = at * page_size + tl.arange(0, page_size)
    mask = token < length
    page = tl.load(table + request * table_stride + at, mask=at * page_size < length)
    lanes = tl.arange(0, width)
    source = (
        cache
        + page.to(tl.int64) * page_size * width
        + (token % page_size)[:, None] * width
        + lanes[None, :]
    )
    value = tl.load(source, mask=mask[:, None])
    target = (
        out + (request * tl.num_programs(1) * page_size + token)[:, None] * width + lanes[None, :]
    )
    tl.store(target, value, mask=mask[:, None])


@triton.jit
def through_a_helper(out, cache, slots, stride, width: tl.constexpr):
    lanes = tl.arange(0, width)
    value = tl.load(picked(cache, slots, stride, lanes))
    tl.store(out + tl.program_id(0) * width + lanes, value)


@triton.jit
def described(out, x, n, m, block: tl.constexpr):
    """A descriptor accesses nothing outside the shape that it is given."""
    source = tl.make_tensor_descriptor(x, [n, m], [m, 1], [block, block])
    target = tl.make_tensor_descriptor(out, [n, m], [m, 1], [block, block])
    at = tl.program_id(0) * block
    target.store([at, 0], source.load([at, 0]))


def cache(slots=SLOTS, width=WIDTH, dtype=torch.bfloat16):
    return torch.zeros(slots, width, dtype=dtype)


def tokens(count, width=WIDTH, dtype=torch.bfloat16):
    return torch.ones(count, width, dtype=dtype)


def scaled(n, *, size=None, offset=0, grid=None):
    size = n if size is None else size
    x, out = torch.ones(size + offset)[offset:], torch.zeros(size)
    scale[grid or (lambda meta: (triton.cdiv(n, meta["block"]),))](out, x, n, 2.0, block=64)
    assert bool((out[:n] == 2).all())


def copied(count, out, x, kernel=rows, strides=None, width=WIDTH):
    out_stride, x_stride = strides or (out.stride(0), x.stride(0))
    kernel[(count,)](out, x, out_stride, x_stride, width=width, block=32)


def stored(slots, *, into=None, stride=None, x=None, kernel=store, dtype=torch.int64):
    into = cache() if into is None else into
    x = tokens(len(slots), dtype=into.dtype) if x is None else x
    stride = into.stride(0) if stride is None else stride
    kernel[(len(slots),)](into, x, torch.tensor(slots, dtype=dtype), stride, width=WIDTH, block=32)
    return into


def gathered(table, lengths, pages=8):
    pages_of = torch.ones(pages, 4, 16)
    shape = torch.tensor(table, dtype=torch.int32)
    out = torch.zeros(len(table), shape.shape[1] * 4, 16)
    grid = (len(table), shape.shape[1])
    gather[grid](
        out, pages_of, shape, torch.tensor(lengths), shape.stride(0), page_size=4, width=16
    )
    return [int(row[:, 0].sum()) for row in out]


def _guarded(how):
    pool = cache()
    guard_pool({"layer 3 key": pool}, name="index keys")
    how(pool)


class Subclass(torch.Tensor):
    pass


WRONG = {
    "a row too many": lambda: copied(5, cache(), tokens(4)),
    "rows of another stride": lambda: copied(4, cache(), tokens(4), strides=(WIDTH, WIDTH + 8)),
    "elements that are not there": lambda: scaled(130, size=100),
    "a view that begins late": lambda: copied(16, cache()[1:], tokens(16)),
    "rows counted from the end": lambda: copied(4, cache(), tokens(4)[3:], strides=(WIDTH, -32)),
    "a grid too large for a kernel without a mask": lambda: copied_in_steps[(1,)](
        torch.zeros(96), torch.zeros(96), 97, block=32
    ),
    "columns for rows": lambda: transposed[(1,)](
        torch.zeros(8, 5), torch.zeros(5, 8), 5, 8, 8, 8, 1, block=16
    ),
    "a shape that is not the tensor's": lambda: described[(2,)](
        torch.zeros(20, 16), torch.zeros(18, 16), 20, 16, block=16
    ),
    "a product of 32 bits": lambda: copied(3, cache(), tokens(3), strides=(1 << 30, WIDTH)),
    "the same in 64 bits": lambda: copied(
        3, cache(), tokens(3), kernel=wide_rows, strides=(1 << 30, WIDTH)
    ),
    "a slot past the end": lambda: stored([3, 4, -1, 16]),
    "a slot before the beginning": lambda: stored([3, -7], kernel=store_narrow),
    "the second half of a cache": lambda: stored([3, 12], into=cache()[8:]),
    "a loaded product of 32 bits": lambda: stored(
        [3, 9], kernel=store_narrow, stride=1 << 29, dtype=torch.int32
    ),
    "tokens that are not there": lambda: stored([3, 4, -1, 5, 6], x=tokens(4)),
    "a page that is not there": lambda: gathered([[1, 2], [3, 8]], [8, 5]),
    "a slot in a helper": lambda: through_a_helper[(2,)](
        torch.zeros(2, 8), torch.zeros(4, 8), torch.tensor([1, 4]), 8, width=8
    ),
    "rows counted in bytes": lambda: _guarded(
        lambda pool: stored([3, 4], into=pool.view(torch.uint8), stride=WIDTH)
    ),
}

RIGHT = {
    "a masked end": lambda: scaled(130),
    "a grid from the arguments": lambda: scaled(64),
    "nothing at all": lambda: scaled(0, grid=(1,)),
    "more programs than work": lambda: scaled(70, grid=(9,)),
    "a view that begins late": lambda: scaled(100, offset=30),
    "the last row of a view": lambda: copied(15, cache()[1:], tokens(15)),
    "every second row": lambda: copied(8, cache()[::2], tokens(8)),
    "rows from the end": lambda: copied(4, cache(), tokens(4)[3:], strides=(WIDTH, -WIDTH)),
    "columns": lambda: transposed[(1,)](
        torch.zeros(8, 5), torch.zeros(5, 8), 5, 8, 5, 8, 1, block=16
    ),
    "steps": lambda: copied_in_steps[(1,)](torch.zeros(96), torch.zeros(96), 96, block=32),
    "a shape that is no multiple of the tile": lambda: described[(2,)](
        torch.zeros(20, 16), torch.zeros(20, 16), 20, 16, block=16
    ),
    "padding": lambda: stored([3, -1, 15]),
    "a tensor of another class": lambda: stored([3], into=cache().as_subclass(Subclass)),
    "a table with anything past the end": lambda: gathered([[1, 2], [3, 77]], [8, 3]),
    "rows counted in bytes": lambda: _guarded(
        lambda pool: stored([3, 4], into=pool.view(torch.uint8), stride=2 * WIDTH)
    ),
    "other elements of the same rows": lambda: _guarded(
        lambda pool: stored(
            [3], into=pool.view(torch.float32), x=tokens(1, dtype=torch.float32), stride=WIDTH // 2
        )
    ),
}


def outcome(kind, name, mode="assert"):
    """What is said of one launch: None, or the check's name and message, and errors of kvlint's."""
    arm(mode)
    try:
        (WRONG if kind == "wrong" else RIGHT)[name]()
        found = None
    except Violation as violation:
        found = (violation.record["check"], violation.record["code"], str(violation))
    told = status()
    runtime_checks.disarm()
    return found, told["violations"], told["tool_errors"]


def untouched(name):
    """Whether a refused launch has left its target alone."""
    arm("assert")
    pool = cache()
    try:
        stored([3, 4, 16], into=pool)
    except Violation:
        return int(pool.count_nonzero())
    finally:
        runtime_checks.disarm()
    return None


def remembered():
    """Verdicts of the same launch many times, and what disarming leaves behind."""
    from triton.runtime.interpreter import InterpretedFunction

    before = InterpretedFunction.run
    arm("log")
    hooks = status()["hooks"]
    pool, x, slots = cache(), tokens(2), torch.tensor([3, 4])
    for _ in range(50):
        store[(2,)](pool, x, slots, WIDTH, width=WIDTH, block=32)
    found = status()["violations"]
    slots[1] = 16
    arena = torch.zeros(64, WIDTH, dtype=torch.bfloat16)
    into = torch.empty(0, dtype=torch.bfloat16).set_(arena.untyped_storage(), 0, (16, WIDTH))
    for _ in range(5):
        store[(2,)](into, x, slots, WIDTH, width=WIDTH, block=32)
    quiet = status()["violations"]
    runtime_checks.disarm()
    return hooks, found, quiet, InterpretedFunction.run is before
