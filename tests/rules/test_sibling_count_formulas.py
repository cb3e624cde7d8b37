"""Which buffers of one list KV105 takes to be counted by different formulas."""

from textwrap import dedent, indent

import pytest

from kvlint.engine.check import check
from kvlint.engine.registry import all_rules
from kvlint.findings import Confidence, Severity, Status

PAGES = "(size + page_size) // page_size"

POOLS = """
import math

import torch


def cdiv(a, b):
    return -(-a // b)


def count_pages(size, page_size):
    return (size + page_size) // page_size


class KeyPool:
    def __init__(self, size, page_size, layers, num_pages=None):
        self.size = size
        self.page_size = page_size
        self.kv_buffer = [torch.zeros({keys}, 584, dtype=torch.uint8) for _ in range(layers)]


class IndexPool:
    def __init__(self, size, page_size, layers, num_pages=None):
        self.size = size
        self.page_size = page_size
        count = {index}
        self.index_buffer = [torch.zeros((count, 132), dtype=torch.uint8) for _ in range(layers)]


class Pools:
    def __init__(self, size, page_size, layers):
        self.page_size = page_size
        self.keys = KeyPool(size, page_size, layers, num_pages=size // page_size)
        self.index = IndexPool({made})
{checked}

    def buffer_infos(self):
        buffers = self.keys.kv_buffer + self.index.index_buffer
        data_ptrs = [buffer.data_ptr() for buffer in buffers]
        data_lens = [buffer.nbytes for buffer in buffers]
        item_lens = [buffer[0].nbytes{rows} for buffer in buffers]
        return data_ptrs, data_lens, item_lens
"""


def pools(
    index: str, keys: str = PAGES, made: str = "size, page_size, layers", rows: str = "",
    checked: str = "", user: str = "",
) -> str:  # fmt: skip
    checked = indent(dedent(checked), " " * 8)
    text = POOLS.format(keys=keys, index=index, made=made, rows=rows, checked=checked)
    return text + dedent(user)


@pytest.fixture
def found(project):
    def run(text, **files):
        root = project({"pools.py": text, **{f"{name}.py": dedent(t) for name, t in files.items()}})
        report = check(root, [root], all_rules())
        assert not report.faults
        return [finding for finding in report.findings if finding.code == "KV105"]

    return run


def shown(findings):
    return [f for f in findings if f.status is Status.UNGUARDED and f.confidence is Confidence.HIGH]


def test_it_names_both_formulas_both_places_and_numbers_that_tell_them_apart(found):
    text = pools("(size + page_size + 1) // page_size")
    (finding,) = found(text)
    lines = text.splitlines()
    assert lines[finding.span.line - 1].strip() == "count = (size + page_size + 1) // page_size"
    assert "IndexPool.index_buffer has (size + page_size + 1) // page_size" in finding.message
    assert "KeyPool.kv_buffer in the same list has (size + page_size) // page_size" in (
        finding.message
    )
    assert finding.message.endswith("with size 1, page_size 1: 3 and 2")
    other = next(n for n, line in enumerate(lines, 1) if "torch.zeros((size" in line)
    assert f"pools.py:{other}" in finding.message
    assert other in {step.span.line for step in finding.trace}
    assert finding.severity is Severity.WARNING
    assert shown([finding])


@pytest.mark.parametrize(
    "index",
    [
        PAGES, "(page_size + size) // page_size", "size // page_size + 1",
        "count_pages(size, page_size)", "count_pages(self.size, self.page_size)",
        "int(1 + size // self.page_size)", "cdiv(size + 1, page_size)",
        "math.ceil((size + 1) / page_size)", "(size + 2 * page_size - page_size) // page_size",
        "max(size + page_size, page_size) // page_size",
    ],
)  # fmt: skip
def test_a_formula_may_be_spelled_in_other_words(found, index):
    assert found(pools(index)) == []


@pytest.mark.parametrize(
    "index",
    [
        "cdiv(size + page_size, page_size)", "size // page_size", "count_pages(size, 64)",
        "count_pages(size, page_size) + 1", "size", "cdiv(size, page_size) * page_size",
        "(size + 512) // page_size",
    ],
)  # fmt: skip
def test_another_formula_is_found(found, index):
    assert len(shown(found(pools(index)))) == 1


def test_other_sizes_for_one_formula_are_no_finding(found):
    assert found(pools(PAGES, made="size * 4, page_size // 2, layers")) == []


def test_a_count_that_the_maker_works_out_alike_is_no_finding(found):
    made = "size, page_size, layers, num_pages=size // page_size"
    assert found(pools("num_pages", keys="size // page_size", made=made)) == []


def test_a_count_that_the_maker_works_out_otherwise_is_found(found):
    made = "size, page_size, layers, num_pages=cdiv(size, page_size)"
    assert len(shown(found(pools("num_pages", keys="size // page_size", made=made)))) == 1


def test_names_of_fields_are_those_of_each_object(found):
    other = pools("(self.tokens + self.block_size) // self.block_size").replace(
        "count =", "self.tokens, self.block_size = size, page_size\n        count ="
    )
    assert found(other) == []


def test_a_number_of_bytes_is_never_a_number_of_tokens(found):
    made = "layers.cache_bytes, layers.page_bytes, layers"
    text = pools("budget_bytes // block_bytes", keys="size // page_size", made=made)
    text = text.replace(
        "class IndexPool:\n    def __init__(self, size, page_size, layers, num_pages=None):",
        "class IndexPool:\n    def __init__(self, budget_bytes, block_bytes, layers):",
    ).replace(
        "        self.size = size\n        self.page_size = page_size\n        count",
        "        count",
    )
    (finding,) = found(text)
    assert finding.status is Status.UNGUARDED
    assert finding.confidence is Confidence.MEDIUM  # nothing but the names tells them apart


def test_rows_that_one_item_takes_are_divided_out(found):
    tokens = pools("size + page_size", keys="self.size + self.page_size")
    assert found(tokens.replace("buffer[0].nbytes", "buffer[0].nbytes * self.page_size")) == []
    mixed = tokens.replace(
        """        item_lens = [buffer[0].nbytes for buffer in buffers]
""",
        """        item_lens = [b[0].nbytes for b in self.keys.kv_buffer]
        item_lens += [b[0].nbytes * self.page_size for b in self.index.index_buffer]
""",
    ).replace(
        "data_ptrs = [buffer.data_ptr() for buffer in buffers]",
        """data_ptrs = [b.data_ptr() for b in self.keys.kv_buffer]
        data_ptrs += [b.data_ptr() for b in self.index.index_buffer]""",
    )
    assert len(shown(found(mixed))) == 1


def test_lists_that_are_handed_over_apart_may_differ(found):
    apart = pools("size // page_size").replace(
        """        buffers = self.keys.kv_buffer + self.index.index_buffer
        data_ptrs = [buffer.data_ptr() for buffer in buffers]
        data_lens = [buffer.nbytes for buffer in buffers]
        item_lens = [buffer[0].nbytes for buffer in buffers]
        return data_ptrs, data_lens, item_lens
""",
        """        kv_ptrs = [buffer.data_ptr() for buffer in self.keys.kv_buffer]
        state_ptrs = [buffer.data_ptr() for buffer in self.index.index_buffer]
        return kv_ptrs, state_ptrs
""",
    )
    assert found(apart) == []


def test_one_of_two_lists_is_handed_over(found):
    either = pools("size // page_size").replace(
        "buffers = self.keys.kv_buffer + self.index.index_buffer",
        "buffers = self.keys.kv_buffer if self.keys else self.index.index_buffer",
    )
    assert found(either) == []


def test_what_stands_in_the_same_branch_goes_together(found):
    text = """
    import torch

    class Pool:
        def __init__(self, size, page_size, paged):
            self.paged = paged
            if paged:
                self.k_buffer = [torch.zeros(size // page_size, page_size, 64)]
                self.v_buffer = [torch.zeros(size // page_size, page_size, 64)]
            else:
                self.k_buffer = [torch.zeros(size + page_size, 64)]
                self.v_buffer = [torch.zeros(size + page_size, 64)]

        def buffer_infos(self):
            buffers = self.k_buffer + self.v_buffer
            return [b.data_ptr() for b in buffers], [b.nbytes for b in buffers]
    """
    assert found(dedent(text)) == []
    odd = text.replace(
        "self.v_buffer = [torch.zeros(size + page_size, 64)]",
        "self.v_buffer = [torch.zeros(size + 1, 64)]",
    )
    assert len(shown(found(dedent(odd)))) == 1


def test_each_formula_that_differs_from_the_usual_one_is_told(found):
    text = """
    import torch

    class Pool:
        def __init__(self, size, page_size):
            self.buffers = [torch.zeros(size + 1, 64), torch.zeros(size + page_size, 64)]
            self.more = [torch.zeros(size + page_size, 32) for _ in range(4)]
            self.last = torch.zeros(size + 2, 64)

        def buffer_infos(self):
            buffers = [*self.buffers, *self.more, self.last]
            return [b.data_ptr() for b in buffers]
    """
    told = sorted(f.message.partition(":")[0] for f in shown(found(dedent(text))))
    assert len(told) == 2
    assert "has size + 1 slots" in told[0]
    assert "has size + 2 slots" in told[1]
    assert all("in the same list has size + page_size" in one for one in told)


LEAST = """
    class Sender:
        def __init__(self, pools):
            self.data_ptrs, self.data_lens, self.item_lens = pools.buffer_infos()
            self.num_slots = {count}
"""


def test_the_least_count_of_the_list_settles_it(found):
    count = "min(d // i for d, i in zip(self.data_lens, self.item_lens))"
    text = pools("size // page_size")
    (finding,) = found(text, sender=LEAST.format(count=count))
    assert finding.status is Status.GUARDED
    assert finding.guard.span.path == "sender.py"
    assert "the least of all regions" in finding.guard.says


def test_the_count_of_one_region_does_not(found):
    text = pools("size // page_size")
    (finding,) = shown(
        found(text, sender=LEAST.format(count="self.data_lens[0] // self.item_lens[0]"))
    )
    assert any(step.span.path == "sender.py" for step in finding.trace)


def test_a_list_of_which_each_region_is_used_by_its_own_length_is_settled(found):
    sender = """
    class Sender:
        def __init__(self, pools):
            self.data_ptrs, self.data_lens, self.item_lens = pools.buffer_infos()

        def addresses(self, pages):
            return [
                [pointer + page * item_len for page in pages]
                for pointer, item_len in zip(self.data_ptrs, self.item_lens)
            ]
    """
    (finding,) = found(pools("size // page_size"), sender=sender)
    assert finding.status is Status.GUARDED


@pytest.mark.parametrize(
    "check_",
    [
        "if len({d // i for d, i in zip(self.data_lens, self.item_lens)}) != 1:\n"
        "                raise ValueError",
        "assert all(d == self.data_lens[0] for d in self.data_lens)",
    ],
)
def test_a_check_of_all_counts_settles_it(found, check_):
    sender = (
        LEAST.format(count="self.data_lens[0] // self.item_lens[0]") + f"            {check_}\n"
    )
    (finding,) = found(pools("size // page_size"), sender=sender)
    assert finding.status is Status.GUARDED


@pytest.mark.parametrize(
    "check_",
    [
        "assert self.keys.num_pages == self.index.num_pages",
        "if self.index.num_pages != self.keys.num_pages:\n    raise ValueError",
        "assert self.keys.kv_buffer[0].shape[0] == self.index.index_buffer[0].shape[0]",
    ],
)
def test_a_check_of_the_two_pools_settles_it(found, check_):
    text = pools("size // page_size", checked=check_)
    text = text.replace("        count =", "        self.num_pages = count =").replace(
        "        self.kv_buffer", f"        self.num_pages = {PAGES}\n        self.kv_buffer"
    )
    (finding,) = found(text)
    assert finding.status is Status.GUARDED


def test_a_check_of_something_else_settles_nothing(found):
    text = pools("size // page_size", checked="assert self.keys.page_size == self.index.page_size")
    assert len(shown(found(text))) == 1


@pytest.mark.parametrize(
    ("size", "status"),
    [("shape[0]", Status.GUARDED), ("shape", Status.GUARDED), ("shape[1]", Status.UNGUARDED)],
)
def test_a_check_where_the_list_is_made_settles_it(found, size, status):
    text = pools("size // page_size").replace(
        "        data_ptrs =",
        f"        assert len({{buffer.{size} for buffer in buffers}}) == 1\n        data_ptrs =",
    )
    (finding,) = found(text)
    assert finding.status is status


def test_a_check_of_item_lengths_settles_nothing(found):
    sender = LEAST.format(count="self.data_lens[0] // self.item_lens[0]")
    sender += "            assert len(set(self.item_lens)) == 1\n"
    assert len(shown(found(pools("size // page_size"), sender=sender))) == 1


def test_heirs_that_replace_what_fills_a_field_are_read_by_their_own(found):
    text = """
    import torch

    class Pool:
        def __init__(self, size, page_size):
            self.size, self.page_size = size, page_size
            self.create_buffers()

        def create_buffers(self):
            self.fill()

        def fill(self):
            self.k_buffer = [torch.zeros(self.size + self.page_size, 64)]
            self.v_buffer = [torch.zeros(self.size + self.page_size, 64)]

        def buffer_infos(self):
            buffers = self.k_buffer + self.v_buffer
            return [b.data_ptr() for b in buffers], [b.nbytes for b in buffers]


    class NoPool(Pool):
        def create_buffers(self):
            self.k_buffer = [torch.zeros(self.page_size, 64)]
            self.v_buffer = [torch.zeros({}, 64)]
    """
    assert found(dedent(text.format("self.page_size"))) == []
    assert len(shown(found(dedent(text.format("self.page_size + 1"))))) == 1


def test_a_formula_of_another_file_is_told_where_the_list_is_handed_over(found):
    text = pools("size // page_size")
    classes, provider = text.split("class Pools:")
    pool = f"from pools import IndexPool, KeyPool\n\n\nclass Pools:{provider}"
    (finding,) = shown(found(classes, both=pool))
    assert finding.span.path == "both.py"
    assert "pools.py:" in finding.message


@pytest.mark.parametrize("step", ["self.b{0}() + self.b{0}()", "[*self.b{0}(), *self.b{0}()]"])
def test_a_ladder_of_calls_comes_to_an_end(found, step):
    methods = "\n\n".join(
        f"    def b{n}(self):\n        return "
        + (step.format(n - 1) if n else "[torch.zeros(self.n0(), 8)]")
        + f"\n\n    def n{n}(self):\n        return self.n{n + 1}() + self.n{n + 1}()"
        for n in range(40)
    )
    last = "    def infos(self):\n        return [b.data_ptr() for b in self.b39()]"
    found(f"import torch\n\n\nclass Pool:\n{methods}\n\n{last}\n")
