"""What KV201 takes for an element size, what settles it, and what only counts."""

import time
from functools import partial

import pytest

from kvlint.findings import Confidence, Status


@pytest.fixture
def found(found_by):
    return partial(found_by, "KV201")


def shown(findings):
    return [
        f.span.line
        for f in findings
        if f.status is Status.UNGUARDED and f.confidence is Confidence.HIGH
    ]


FOUND = {
    "an offset from an address": """
        def at(k_cache, page, heads, head_dim):
            return k_cache.data_ptr() + page * heads * head_dim * 2
        """,
    "elements as the length beside an address": """
        def send(agent, k_cache, device):
            return agent.get_xfer_descs([(k_cache.data_ptr(), k_cache.numel(), device)], "VRAM")
        """,
    "values with a scale for each block": """
        def kv_cache_dim(head_dim, block, kv_cache):
            return head_dim + head_dim // block * 4
        """,
    "elements of different widths in what is bytes by name": """
        def kv_bytes_per_token(nope_dim, rope_dim, kv_cache):
            return nope_dim + rope_dim * 2 + 8
        """,
    "a summand of what is bytes by its other summands": """
        def token_bytes(kv_cache, head_dim, rope_dim, dtype):
            return head_dim * dtype.itemsize + rope_dim * 2
        """,
    "a local that is a size": """
        def token_bytes(kv_cache, head_dim, rope_dim, dtype):
            state_size = 4
            return head_dim * dtype.itemsize + 2 * rope_dim * state_size
        """,
    "a dimension of a tensor of bytes": """
        import torch

        def make(pages, page_size, head_dim, block):
            index_buffer = torch.zeros(
                (pages, page_size * (head_dim + head_dim // block * 4)), dtype=torch.uint8
            )
            return index_buffer.data_ptr()
        """,
    "what dtypes fall back on": """
        import torch

        def token_bytes(kv_cache, head_dim, rope_dim, dtype, kv_dtype):
            size = 1 if kv_dtype == torch.float8_e4m3fn else 2
            return head_dim * dtype.itemsize + rope_dim * size
        """,
    "a field on its way to an address": """
        class P:
            def __init__(self, k_cache, heads, head_dim):
                self.k_cache = k_cache
                self.row = heads * head_dim * 2

            def at(self, page):
                return self.k_cache.data_ptr() + page * self.row
        """,
    "a property on its way to an address": """
        class P:
            @property
            def block_len(self):
                return self.heads * self.head_size * 2

            def at(self, page):
                return self.k_cache.data_ptr() + page * self.block_len
        """,
    "a helper on its way to an address": """
        def row(heads, head_dim):
            return heads * head_dim * 2

        def at(k_cache, page, heads, head_dim):
            return k_cache.data_ptr() + page * row(heads, head_dim)
        """,
    "lengths in a list that a transport is handed": """
        def register(engine, k_caches):
            lens = [c.numel() * 2 for c in k_caches]
            engine.batch_register_memory([c.data_ptr() for c in k_caches], lens)
        """,
    "a length that a transport is handed": """
        def send(engine, session, src, dst, page_size, heads, head_dim):
            engine.transfer_sync_write(session, src, dst, page_size * heads * head_dim * 2)
        """,
    "a length by name beside an address": """
        def describe(Args, k_cache, heads, head_dim):
            return Args(ptr=k_cache.data_ptr(), item_len=heads * head_dim * 2)
        """,
    "columns of descriptors": """
        import numpy as np

        def blocks(agent, k_cache, pages, row, heads, head_dim):
            addrs = k_cache.data_ptr() + pages * row
            lens = np.full(len(pages), heads * head_dim * 2)
            return agent.get_xfer_descs(np.column_stack([addrs, lens]), "VRAM")
        """,
    "a shift": """
        def at(k_cache, page, heads, head_dim):
            return k_cache.data_ptr() + (page * heads * head_dim << 1)
        """,
    "an augmented product": """
        def at(k_cache, page, heads, head_dim):
            off = page * heads * head_dim
            off *= 2
            return k_cache.data_ptr() + off
        """,
    "a registration": """
        def register(agent, k_cache):
            agent.register_memory([(k_cache.data_ptr(), k_cache.numel(), 0, "")], "VRAM")
        """,
    "a length beside addresses that a pool returns": """
        def infos(kv_caches, page_size, head_dim):
            ptrs = [x.data_ptr() for x in kv_caches]
            return ptrs, [page_size * head_dim * 2 for _ in kv_caches]
        """,
    "the size of a configured dtype, told with tensors": """
        class Worker:
            def register_caches(self, kv_caches):
                size = self.config.dtype.itemsize
                self.native.register_memory_of(len(kv_caches), size, kv_caches)
        """,
}


@pytest.mark.parametrize("source", FOUND.values(), ids=FOUND)
def test_it_is_found(found, source):
    assert len(shown(found(source))) == 1


SILENT = {
    "K and V are counted": """
        def kv_dim(num_kv_heads, head_dim, q_dim, kv_cache):
            return q_dim + 2 * num_kv_heads * head_dim
        """,
    "K and V are counted beside a size": """
        def kv_bytes(num_kv_heads, head_dim, num_layers, dtype, kv_cache):
            return 2 * num_kv_heads * head_dim * num_layers * dtype.itemsize
        """,
    "K and V beside a query, times a size": """
        def kv_bytes(num_kv_heads, head_dim, q_dim, dtype, kv_cache):
            return (q_dim + 2 * num_kv_heads * head_dim) * dtype.itemsize
        """,
    "a lone factor in a tensor of bytes": """
        import torch

        def make(pages, heads, head_dim):
            kv_cache = torch.zeros((pages, 2 * heads * head_dim), dtype=torch.uint8)
            return kv_cache.data_ptr()
        """,
    "half of a tensor": """
        def halves(kv_cache):
            return kv_cache.data_ptr(), kv_cache.nbytes // 2
        """,
    "an unknown size may be an element's": """
        def kv_bytes(num_kv_heads, head_dim, kv_size, kv_cache):
            return num_kv_heads * (head_dim + head_dim // 16) * 2 * kv_size
        """,
    "a field that is given the size": """
        class Pool:
            def __init__(self, kv_cache, head_dim):
                self.kv_cache, self.head_dim = kv_cache, head_dim
                self.per = kv_cache.element_size()

            def at(self, page, heads):
                return self.kv_cache.data_ptr() + page * 2 * heads * self.head_dim * self.per
        """,
    "elements in a field, and the size where it is used": """
        class P:
            def __init__(self, kv_cache, heads, head_dim, dtype):
                self.kv_cache, self.dtype = kv_cache, dtype
                self.kv_dim = 2 * heads * head_dim

            def at(self, page):
                return self.kv_cache.data_ptr() + page * self.kv_dim * self.dtype.itemsize
        """,
    "parts of a dimension": """
        def split(kv_cache, head_dim):
            rest_bytes = head_dim - 2 * (head_dim // 6)
            return rest_bytes
        """,
    "a multiple of four": """
        def kv_bytes(kv_cache, head_dim, dtype):
            return head_dim * dtype.itemsize + (head_dim + 3) // 4 * 4
        """,
    "elements of a field that nobody sees filled": """
        class Connector:
            def register(self):
                self.store.register_buffer(self.pool.buffer.data_ptr(), self.pool.buffer.numel())
        """,
    "two of a length": """
        def write(engine, session, src, dst, block_len):
            engine.transfer_sync_write(session, src, dst, block_len * 2)
        """,
    "bytes of a storage": """
        def register(engine, kv_cache):
            engine.batch_register_memory([kv_cache.data_ptr()], [kv_cache.untyped_storage().size()])
        """,
    "bits": """
        def at(kv_cache, page, heads, head_dim, nbits):
            return kv_cache.data_ptr() + page * 2 * heads * (head_dim * nbits // 8)
        """,
    "MiB": """
        def pool_bytes(kv_cache, mebibytes):
            return kv_cache.nbytes + mebibytes * 1024 * 1024
        """,
    "scratch space": """
        def work(kv_cache, head_dim, block):
            logits_bytes = head_dim + head_dim // block * 4
            return logits_bytes
        """,
    "elements beside the size of one": """
        def meta(kv_caches):
            register_memory = [(x.data_ptr(), x.numel(), x.element_size()) for x in kv_caches]
            return register_memory
        """,
    "a key of a cache of results": """
        def key(kv_cache):
            return (kv_cache.data_ptr(), kv_cache.numel())
        """,
}


@pytest.mark.parametrize("source", SILENT.values(), ids=SILENT)
def test_it_says_nothing(found, source):
    assert shown(found(source)) == []


SETTLED = {
    "the dtype of the tensor": """
        import torch

        def at(k_cache, page, k_rope):
            assert k_rope.dtype == torch.bfloat16
            return k_cache.data_ptr() + page * k_rope.shape[1] * 2
        """,
    "one of several dtypes of that size": """
        import torch

        def at(k_cache, page, head_dim, dtype):
            if dtype not in (torch.bfloat16, torch.float16):
                raise TypeError(dtype)
            return k_cache.data_ptr() + page * head_dim * 2
        """,
    "the number itself": """
        def kv_bytes_per_token(nope_dim, rope_dim, kv_cache):
            kv_bytes = nope_dim + rope_dim * 2 + 8
            assert kv_bytes == 584
            return kv_bytes
        """,
    "a view of that part": """
        import torch

        def pack(kv_cache, head_dim, block):
            row = torch.empty((8, head_dim + head_dim // block * 4), dtype=torch.uint8)
            return row, row[:, head_dim : head_dim + head_dim // block * 4].view(torch.float32)
        """,
    "an array of such elements": """
        import torch

        def kv_bytes(kv_cache, head_dim, block):
            scales = torch.empty((head_dim // block,), dtype=torch.float32)
            return scales, head_dim + head_dim // block * 4
        """,
    "the element's size": """
        def at(k_cache, page, heads, head_dim):
            if k_cache.element_size() != 2:
                raise TypeError(k_cache.dtype)
            return k_cache.data_ptr() + page * heads * head_dim * 2
        """,
    "a constructor": """
        import torch

        class Sender:
            def __init__(self, k_cache, head_dim):
                if k_cache.dtype != torch.bfloat16:
                    raise ValueError("bfloat16 only")
                self.k_cache, self.head_dim = k_cache, head_dim

            def at(self, page):
                return self.k_cache.data_ptr() + page * self.head_dim * 2
        """,
    "a helper": """
        import torch

        def require(cache):
            assert cache.dtype in (torch.float16, torch.bfloat16)

        def at(k_cache, page, head_dim):
            require(k_cache)
            return k_cache.data_ptr() + page * head_dim * 2
        """,
    "the dtype of each tensor": """
        import torch

        def at(k_caches, page, head_dim):
            if any(c.dtype != torch.bfloat16 for c in k_caches):
                raise TypeError("bfloat16 only")
            return [c.data_ptr() + page * head_dim * 2 for c in k_caches]
        """,
    "the name of a dtype": """
        def at(k_cache, page, head_dim, config):
            assert config.kv_cache_dtype == "bfloat16"
            return k_cache.data_ptr() + page * head_dim * 2
        """,
    "a view as bytes": """
        import torch

        def register(agent, kv_cache, device):
            flat = kv_cache.view(torch.uint8)
            return agent.get_xfer_descs([(flat.data_ptr(), flat.numel(), device)], "VRAM")
        """,
    "the function that makes the tensor": """
        import torch

        def at(pages, heads, head_dim):
            k_cache = torch.zeros((pages, heads, head_dim), dtype=torch.float16)
            return [k_cache.data_ptr() + p * heads * head_dim * 2 for p in range(pages)]
        """,
    "the class that makes the tensor": """
        import torch

        class KVPool:
            def __init__(self, size):
                self.positions = torch.zeros((size, 3), dtype=torch.int64)

            def kv_bytes(self, kv_cache):
                return kv_cache.nbytes + self.positions.numel() * 8
        """,
}


@pytest.mark.parametrize("source", SETTLED.values(), ids=SETTLED)
def test_it_is_settled(found, source):
    findings = found(source)
    assert {f.status for f in findings} == {Status.GUARDED}
    assert all(f.guard for f in findings)


UNSETTLED = {
    "a dtype of another size": """
        import torch

        def at(k_cache, page, k_rope):
            assert k_rope.dtype == torch.float32
            return k_cache.data_ptr() + page * k_rope.shape[1] * 2
        """,
    "the dtype of another tensor": """
        import torch

        def at(k_cache, page, k_rope, q):
            assert q.dtype == torch.bfloat16
            return k_cache.data_ptr() + page * k_rope.shape[1] * 2
        """,
    "the dtype of the query": """
        import torch

        def at(k_cache, q, page, heads, head_dim):
            assert q.dtype == torch.bfloat16
            return k_cache.data_ptr() + page * heads * head_dim * 2
        """,
    "a check that comes too late to be passed": """
        import torch

        def at(k_cache, page, head_dim, dtype, careful):
            if careful:
                assert dtype == torch.bfloat16
            return k_cache.data_ptr() + page * head_dim * 2
        """,
    "the dimensions, not their bytes": """
        def kv_bytes_per_token(nope_dim, rope_dim, kv_cache):
            assert nope_dim == 448
            return nope_dim + rope_dim * 2 + 8
        """,
}


@pytest.mark.parametrize("source", UNSETTLED.values(), ids=UNSETTLED)
def test_it_is_not_settled(found, source):
    assert len(shown(found(source))) == 1


def test_what_only_a_name_says_is_less_sure(found):
    (finding,) = found("def kv_row_bytes(head_dim, kv_cache):\n    return head_dim * 2\n")
    assert (finding.confidence, finding.by_name_only) == (Confidence.MEDIUM, True)


def test_a_pool_s_item_length_is_held_against_its_tensor(found):
    (finding,) = found("""
        import torch

        class Pool:
            def __init__(self, pages, page_size, head_dim, dtype):
                self.page_size = page_size
                self.head_dim = head_dim
                self.k_buffer = [
                    torch.zeros((pages, page_size, head_dim), dtype=dtype) for _ in range(4)
                ]

            def get_contiguous_buf_infos(self):
                ptrs = [x.data_ptr() for x in self.k_buffer]
                return ptrs, [self.page_size * self.head_dim * 2 for _ in self.k_buffer]
        """)
    assert finding.message == (
        "an item length takes 2 for the bytes of one element: self.page_size * self.head_dim * 2; "
        "the tensor is made as (pages, page_size, head_dim) of dtype (pool.py:9)"
    )
    assert str(finding.counterexample) == (
        "1 region of 1 slot (element size 1): region 0: element size of region 0 is 1, against 2"
    )


def test_a_field_that_is_only_ever_one_literal_is_that_literal(found):
    findings = found("""
        class Sender:
            def __init__(self, kv_cache):
                self.kv_cache = kv_cache
                self.element_size = 2

            def at(self, slot, row):
                return self.kv_cache.data_ptr() + slot * row * self.element_size
        """)
    assert shown(findings) == [8]


def test_a_field_that_is_given_what_a_caller_knows_is_no_literal(found):
    findings = found("""
        class Sender:
            def __init__(self, kv_cache, element_size):
                self.kv_cache = kv_cache
                self.element_size = element_size

            def at(self, slot, row):
                return self.kv_cache.data_ptr() + slot * row * self.element_size
        """)
    assert findings == []


def test_an_item_length_that_a_helper_works_out(found):
    findings = found("""
        class Pool:
            def page_bytes(self):
                return self.page_size * self.head_num * self.head_dim * 2

            def infos(self):
                ptrs = [buffer.data_ptr() for buffer in self.k_buffers]
                return ptrs, [self.page_bytes() for _ in self.k_buffers]
        """)
    assert len(shown(findings)) == 1


def test_two_bytes_an_element_beside_the_address_of_that_tensor(found):
    findings = found("""
        def spans(buffers):
            return [(buffer.data_ptr(), buffer.numel() * 2) for buffer in buffers]
        """)
    assert shown(findings) == [3]


def test_a_size_in_a_class_body_is_a_literal(found):
    findings = found("""
        class Sender:
            element_size = 2

            def at(self, kv_cache, slot, row):
                return kv_cache.data_ptr() + slot * row * self.element_size
        """)
    assert shown(findings) == [6]


def test_a_distant_making_is_said_and_is_no_guard(found):
    (finding,) = found("""
        import torch

        class Arena:
            def __init__(self, size):
                self.buffer = torch.empty(size, dtype=torch.uint8)

        def register(agent, arena: Arena, device):
            blocks = [(arena.buffer.data_ptr(), arena.buffer.numel(), device)]
            return agent.get_xfer_descs(blocks, "VRAM")
        """)
    assert shown([finding]) == [9]
    assert finding.holds_today == "the tensor is made of uint8 (pool.py:6)"


def test_a_two_beside_a_factor_of_which_nothing_is_known_is_less_sure(found):
    (finding,) = found("""
        def at(kv_cache, page, heads, head_dim, e):
            return kv_cache.data_ptr() + page * heads * head_dim * 2 * e
        """)
    assert finding.confidence is Confidence.MEDIUM


def test_a_long_sum_is_read_in_time(found):
    lines = [f"    total += page_{n} * head_dim * 4\n" for n in range(90)]
    head = "def at(kv_cache, head_dim):\n    total = kv_cache.data_ptr()\n"
    started = time.process_time()
    findings = found(f"{head}{''.join(lines)}    return total\n")
    assert len(shown(findings)) == len(lines)
    assert time.process_time() - started < 20
