"""Where the parts of a value were given theirs."""

from textwrap import dedent

from kvlint.analysis.given import given

CODE = dedent("""
    class Rows:
        def __init__(self, dtype):
            self.row_bytes = 656
            self.dtype = dtype

        def place(self, base_ptr, page, cache):
            element_size = 2
            tokens = page * 64
            self.first = base_ptr + tokens * self.row_bytes
            self.second = base_ptr + tokens * cache.shape[1] * element_size
            self.third = base_ptr + page * self.dtype
    """)


def test_locals_and_fields_of_one_number_are_told_with_their_lines(program):
    known = program(m=CODE)
    body = known.body(known.definition("m.py::Rows.place"))
    told = {
        store.name: [
            (step.span.line, step.says) for step in given(known, body, store.value, store.place)
        ]
        for store in body.stores
    }
    assert told["first"] == [(9, "tokens = page * 64"), (4, "self.row_bytes = 656")]
    assert told["second"] == [(9, "tokens = page * 64"), (8, "element_size = 2")]
    assert told["third"] == []
