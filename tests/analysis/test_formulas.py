"""What is said of pools that count their slots by one formula today."""

from textwrap import dedent

import pytest

from kvlint.analysis.formulas import one_formula
from kvlint.analysis.terms import Field, Parameter

POOL = """
import torch

class Pool:
    def __init__(self, size, page_size):
        self.size, self.page_size = size, page_size
        self.k_buffer = [torch.zeros((size + page_size, 8)) for _ in range(4)]
        self.v_buffer = {made}

    def infos(self):
        buffers = self.k_buffer + self.v_buffer
        return [b.data_ptr() for b in buffers], [b.nbytes for b in buffers]

def collect(args, pool):
    args.kv_ptrs, args.kv_lens = pool.infos()
"""


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("[torch.zeros(size + page_size, 8)]", "in Pool every count is size + page_size (p.py:7)"),
        ("[self.row() for _ in range(4)]", None),  # nobody can read it
        ("[torch.zeros(size + 1, 8)]", None),
    ],
)
def test_one_formula_is_said_where_all_can_be_read_and_agree(program, made, said):
    found = program(p=dedent(POOL.format(made=made)))
    found.begin("p.py")
    args = Parameter("p.py::send", "args")
    assert one_formula(found, Field(args, "kv_lens")) == said
    assert one_formula(found, Field(args, "other_lens")) is None
