"""What KV202 takes for the width of a row, on the host and in kernels."""

from functools import partial

import pytest

from kvlint.findings import Confidence, Status

KERNEL = """
    import triton
    import triton.language as tl


    @triton.jit
    def _read(cache_ptr, slots_ptr, stride, page_size, out_ptr, BLOCK: tl.constexpr):
        lanes = tl.arange(0, BLOCK)
        slot = tl.load(slots_ptr + tl.program_id(0))
        page = cache_ptr + (slot // page_size).to(tl.int64) * stride
        values = page + (slot % page_size) * 576
        scales = page + page_size * 576 + (slot % page_size) * 8
        tl.store(out_ptr + lanes, tl.load(values + lanes) * tl.load(scales))


    def read(kv_cache, slots, out):
        {check}
        _read[(slots.numel(),)](kv_cache, slots, kv_cache.stride(0), kv_cache.shape[1], out, 512)
    """


@pytest.fixture
def found(found_by):
    return partial(found_by, "KV202")


def shown(findings):
    return [
        f.span.line
        for f in findings
        if f.status is Status.UNGUARDED and f.confidence is Confidence.HIGH
    ]


FOUND = {
    "an offset from an address": """
        def at(kv_cache, page, token, page_size):
            return kv_cache.data_ptr() + (page * page_size + token) * 656
        """,
    "a dimension of a tensor of bytes": """
        import torch

        def make(pages, page_size):
            kv_cache = torch.zeros((pages, page_size, 656), dtype=torch.uint8)
            return kv_cache.data_ptr()
        """,
    "a size beside one in a brother's method": """
        class Spec:
            pass

        class Plain(Spec):
            def page_size_bytes(self, kv_cache):
                return self.block_size * self.head_size * self.dtype.itemsize

        class Packed(Spec):
            def page_size_bytes(self, kv_cache):
                return self.block_size * 656
        """,
    "what divides free memory": """
        import torch

        def num_pages(kv_cache, page_size):
            free, _ = torch.cuda.mem_get_info()
            return free // (page_size * 656)
        """,
    "tensors of bytes in a local list": """
        import torch

        def make(num_pages, page_size, names):
            shape = (num_pages, page_size * 656)
            kv_caches = {n: torch.zeros(shape, dtype=torch.uint8) for n in names}
            return kv_caches
        """,
    "a size beside one that has a dtype's": """
        class Spec:
            def page_size_bytes(self, kv_cache):
                if self.packed:
                    return self.block_size * 656
                return self.block_size * self.head_size * self.dtype.itemsize
        """,
}


@pytest.mark.parametrize("source", FOUND.values(), ids=FOUND)
def test_it_is_found(found, source):
    assert len(shown(found(source))) == 1


def test_a_size_that_only_a_name_calls_bytes_is_less_sure(found):
    (finding,) = found("""
        class Spec:
            def page_size_bytes(self, kv_cache):
                return self.block_size * 656
        """)
    assert finding.confidence is Confidence.MEDIUM


def test_rows_of_a_kernel_lie_a_literal_apart(found):
    (finding,) = found(KERNEL.format(check="pass"))
    assert shown([finding]) == [11]
    assert "576" in finding.message
    assert "8" in finding.message


@pytest.mark.parametrize("width", ["584", "576"])
def test_the_launch_compares_the_width(found, width):
    (finding,) = found(KERNEL.format(check=f"assert kv_cache.shape[-1] == {width}"))
    assert finding.status is Status.GUARDED


@pytest.mark.parametrize(
    "check",
    [
        "if kv_cache.shape[-1] != 576: raise ValueError(kv_cache.shape)",
        "assert kv_cache.shape[1:] == (64, 576)",
        "assert kv_cache.stride(1) == 584",
        "kv_cache = kv_cache.view(-1, 64, 576)",
        "assert {584: 1, 656: 2}.get(kv_cache.shape[-1]) is not None",
    ],
)
def test_the_launch_settles_the_width(found, check):
    (finding,) = found(KERNEL.format(check=check))
    assert finding.status is Status.GUARDED
    assert finding.guard


def test_a_number_that_is_no_width_settles_nothing(found):
    assert len(shown(found(KERNEL.format(check="assert slots == 576")))) == 1


@pytest.mark.parametrize(
    "address", ["at + slot * 576", "at + 576 * slot", "at + slot * (512 + 64)"]
)
def test_an_address_that_is_loaded_from_at_once(found, address):
    findings = found(f"""
        import triton
        import triton.language as tl

        @triton.jit
        def _read(kv_cache_ptr, slots_ptr, out_ptr, BLOCK: tl.constexpr):
            lanes = tl.arange(0, BLOCK)
            at = kv_cache_ptr
            slot = tl.load(slots_ptr + tl.program_id(0))
            tl.store(out_ptr + lanes, tl.load({address} + lanes))
        """)
    assert shown(findings) == [10]


def test_the_launch_compares_something_else(found):
    assert len(shown(found(KERNEL.format(check="assert kv_cache.shape[-1] == 512")))) == 1


SILENT = {
    "lanes of a tile": """
        import triton
        import triton.language as tl

        @triton.jit
        def _read(kv_cache_ptr, out_ptr, page_size):
            at = kv_cache_ptr + tl.program_id(0) * 128 + tl.arange(0, 128)
            tl.store(out_ptr, tl.load(at))
        """,
    "pages of a literal size": """
        import triton
        import triton.language as tl

        @triton.jit
        def _read(kv_cache_ptr, slots_ptr, stride, out_ptr):
            page = tl.load(slots_ptr)
            tl.store(out_ptr, tl.load(kv_cache_ptr + page * 64 * stride))
        """,
    "pages of a literal size on the host": """
        def at(k_cache, page, row_stride):
            return k_cache.data_ptr() + page * 64 * row_stride
        """,
    "rows of pages of a literal size": """
        import torch

        def make(num_pages, bytes_per_token, device):
            kv_cache = torch.zeros((num_pages * 64, bytes_per_token), dtype=torch.uint8)
            return kv_cache.data_ptr()
        """,
    "a derived width": """
        import triton
        import triton.language as tl

        @triton.jit
        def _read(kv_cache_ptr, slots_ptr, page_size, out_ptr, ROW: tl.constexpr):
            slot = tl.load(slots_ptr)
            tl.store(out_ptr, tl.load(kv_cache_ptr + slot * ROW))
        """,
    "a power of two as a dimension": """
        import torch

        def make(pages, page_size):
            kv_cache = torch.zeros((pages, page_size, 512), dtype=torch.uint8)
            return kv_cache.data_ptr()
        """,
    "a tensor of no bytes": """
        import torch

        def make(pages, page_size, dtype):
            kv_cache = torch.zeros((pages, page_size, 576), dtype=dtype)
            return kv_cache.data_ptr()
        """,
}


@pytest.mark.parametrize("source", SILENT.values(), ids=SILENT)
def test_it_says_nothing(found, source):
    assert shown(found(source)) == []


def test_an_assert_ties_the_width_to_the_cache(found):
    findings = found("""
        def at(kv_cache, page, token, page_size):
            assert kv_cache.stride(1) == 656
            return kv_cache.data_ptr() + (page * page_size + token) * 656
        """)
    assert [f.status for f in findings] == [Status.GUARDED]


def test_an_item_length_that_leaves_a_dimension_out(found):
    (finding,) = found("""
        import torch

        class Pool:
            def __init__(self, pages, page_size, heads, head_dim, dtype):
                self.page_size = page_size
                self.heads = heads
                self.head_dim = head_dim
                self.dtype = dtype
                self.k_buffer = [
                    torch.zeros((pages, page_size, heads, head_dim), dtype=dtype) for _ in range(4)
                ]

            def get_contiguous_buf_infos(self):
                ptrs = [x.data_ptr() for x in self.k_buffer]
                item = self.page_size * self.head_dim * self.dtype.itemsize
                return ptrs, [item for _ in self.k_buffer]
        """)
    assert finding.message.startswith("an item length leaves out heads: ")


FIELD = """
    class Rows:
        def __init__(self, kv_cache, dim, scale_bytes):
            {check}
            self.kv_cache = kv_cache
            self.row_bytes = 656

        def place(self, slot):
            return self.kv_cache.data_ptr() + slot * self.row_bytes
    """


def test_a_width_in_a_field_is_told_with_the_line_that_gives_it(found):
    (finding,) = found(FIELD.format(check="pass"))
    assert [(step.span.line, step.says) for step in finding.trace] == [(6, "self.row_bytes = 656")]


def test_a_width_is_tied_where_the_field_is_given_it(found):
    (finding,) = found(FIELD.format(check="assert dim + scale_bytes == 656"))
    assert finding.status is Status.GUARDED


def test_a_number_of_things_ties_no_width(found):
    findings = found("""
        def at(kv_cache, slot, n):
            assert n == 656
            return kv_cache.data_ptr() + slot * 656
        """)
    assert len(shown(findings)) == 1
