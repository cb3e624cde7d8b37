"""Lengths that a pool tells of its buffers, against the tensors that it makes."""

from textwrap import dedent

import pytest

from kvlint.analysis.item_lengths import misfits

POOL = """
    import torch


    class Pool:
        def __init__(self, pages, page_size, heads, head_dim, dtype, store_dtype):
            self.pages = pages
            self.page_size = page_size
            self.heads = heads
            self.head_dim = head_dim
            self.row = heads * head_dim
            self.elt = store_dtype.itemsize
            self.dtype = dtype
            self.store_dtype = store_dtype
            self.k_buffer = [
                torch.zeros((pages, page_size, heads, head_dim), dtype={dtype})
                for _ in range(4)
            ]

        def get_contiguous_buf_infos(self):
            ptrs = [x.data_ptr() for x in self.k_buffer]
            lens = [x.nbytes for x in self.k_buffer]
            item_lens = [{length} for _ in self.k_buffer]
            return ptrs, lens, item_lens
    """


def _found(program, length, dtype="store_dtype"):
    text = dedent(POOL).replace("{dtype}", dtype).replace("{length}", length)
    return list(misfits(program(pool=text)))


def test_a_literal_beside_a_dtype_that_is_chosen_elsewhere(program):
    (found,) = _found(program, "self.page_size * self.heads * self.head_dim * 2")
    assert (found.size, found.missing, found.tie) == (2, (), None)
    assert found.made.says == (
        "the tensor is made as (pages, page_size, heads, head_dim) of store_dtype"
    )


def test_the_size_of_another_dtype(program):
    (found,) = _found(program, "self.page_size * self.heads * self.head_dim * self.dtype.itemsize")
    assert (found.size, found.dtype) == (None, "self.dtype.itemsize")


def test_a_dimension_that_is_left_out(program):
    (found,) = _found(program, "self.page_size * self.head_dim * self.store_dtype.itemsize")
    assert (found.size, found.dtype, found.missing) == (None, "", ("heads",))


def test_a_literal_that_the_making_agrees_with_is_tied_to_it(program):
    (found,) = _found(
        program, "self.page_size * self.heads * self.head_dim * 2", dtype="torch.bfloat16"
    )
    assert found.tie is not None
    assert found.tie.says.endswith("of bfloat16")


@pytest.mark.parametrize(
    "length",
    [
        "self.page_size * self.heads * self.head_dim * self.store_dtype.itemsize",
        "self.page_size * self.row * self.store_dtype.itemsize",
        "self.page_size * self.heads * self.head_dim * self.elt",
        "self.k_buffer[0][0].nbytes",
        "self.k_buffer[0].element_size() * self.k_buffer[0].stride(0)",
    ],
)
def test_a_length_that_follows_its_tensor(program, length):
    assert not _found(program, length)


def test_nothing_is_said_of_tensors_that_others_make(program):
    text = dedent("""
        class Worker:
            def infos(self, kv_caches, page_size, head_dim):
                ptrs = [x.data_ptr() for x in kv_caches]
                return ptrs, [page_size * head_dim * 2 for _ in kv_caches]
        """)
    assert not list(misfits(program(worker=text)))
