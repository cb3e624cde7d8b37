"""What a tensor is made as, found through fields, lists, helpers and properties."""

from textwrap import dedent

from kvlint.analysis.showing import show
from kvlint.analysis.tensors import bytes_of, tensors

POOL = dedent("""
    import torch


    class Base:
        index_dtype = torch.uint8

        def __init__(self, size, page_size, dtype):
            self.size = size
            self.page_size = page_size
            self.dtype = dtype
            self.state_dtype = torch.float32
            self._create()


    class Pool(Base):
        def _create(self):
            self.k_buffer = [self._one(128) for _ in range(4)]
            self.index = [
                torch.zeros(self.size, self.page_size * 132, dtype=self.index_dtype)
                for _ in range(4)
            ]

        def _one(self, head_dim):
            return torch.zeros((self.size, self.page_size, head_dim), dtype=self.dtype)

        @property
        def state(self):
            return torch.empty((self.size, 8), dtype=self.state_dtype)

        def infos(self, foreign):
            return [
                self.k_buffer[0], [x for x in self.index], self.state, foreign,
            ]
    """)


def _made(program):
    known = program(pool=POOL)
    body = known.body(known.definition("pool.py::Pool.infos"))
    return known, body, body.returns[0].term.items


def test_shapes_are_read_where_they_are_written(program):
    known, body, (k, index, state, foreign) = _made(program)
    shapes = [
        [tuple(map(show, t.shape)) for t in tensors(known, term, body)]
        for term in (k, index, state)
    ]
    assert shapes == [
        [("self.size", "self.page_size", "128")],
        [("self.size", "self.page_size * 132")],
        [("self.size", "8")],
    ]
    assert tensors(known, foreign, body) == []


def test_bytes_of_a_dtype_that_a_class_fixes(program):
    known, body, (k, index, state, _) = _made(program)
    sizes = []
    for term in (k, index, state):
        (made,) = tensors(known, term, body)
        sizes.append(bytes_of(known, made.dtype, made.body))
    assert sizes == [None, 1, 4]
