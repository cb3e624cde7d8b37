from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvlint.findings import Claim, Given, Severity, Step
from kvlint.rule import Rule

if TYPE_CHECKING:
    from kvlint.analysis.consumers import Uses
    from kvlint.analysis.formulas import Siblings
    from kvlint.analysis.link import Program


class SiblingCountFormulas(Rule):
    """Buffers of one list count their slots by different formulas.

    ## What it assumes

    All regions that are handed over in one list have the same number of slots: `n_i = n_0` for
    each region i. Whoever gets the list takes one count for all of it, or page numbers of one
    allocator for each of its buffers.

    ## Why it breaks

    Two pool classes that round in their own ways agree for the sizes somebody tried and differ
    for others: `(size + page + 1) // page` beside `ceil_div(size + page, small_page)`. Then a
    stride taken from one buffer lands in the wrong slots of the next, and a count taken from
    the larger ends past the smaller.

    ## Example

    ## Use instead

    One helper that all pool classes call with their own sizes. Where counts may differ on
    purpose, let whoever gets the list take the least of all regions.

    ## How kvlint decides

    It looks for methods that return a list of `data_ptr()`, follows each address to the tensor
    and to the class that allocated it, and reads the first dimension as a formula over the
    fields of that object: helpers, computed fields and arguments are put in, and the rows that
    one item takes are divided out. Two formulas are the same when they agree for all small
    numbers that are tried, so how they are spelled makes no difference; the first numbers for
    which they do not are shown. Different sizes given to one formula are no finding, and
    neither are two formulas that come to one in terms of whoever makes both objects. A count of
    bytes and a count of tokens are never one formula. What nobody can read is left out.

    It is settled where the least count of all regions is taken of the very list, where a check
    compares the counts, and where everybody who gets the list uses each region by its own
    length.

    ## References

    - https://github.com/sgl-project/sglang/pull/26406
    - https://github.com/vllm-project/vllm/issues/22430
    """

    code = "KV105"
    severity = Severity.WARNING
    since = "0.1.0"
    BAD = """
import torch


class KeyPool:
    def __init__(self, size, page_size, row_bytes, layers):
        num_pages = (size + page_size) // page_size
        self.kv_buffer = [
            torch.zeros(num_pages, row_bytes, dtype=torch.uint8) for _ in range(layers)
        ]


class IndexPool:
    def __init__(self, size, page_size, row_bytes, layers):
        num_pages = (size + page_size + 1) // page_size
        self.index_buffer = [
            torch.zeros(num_pages, row_bytes, dtype=torch.uint8) for _ in range(layers)
        ]


class Pools:
    def __init__(self, size, page_size, layers):
        self.keys = KeyPool(size, page_size, 584, layers)
        self.index = IndexPool(size, page_size, 132, layers)

    def buffer_infos(self):
        buffers = self.keys.kv_buffer + self.index.index_buffer
        data_ptrs = [buffer.data_ptr() for buffer in buffers]
        data_lens = [buffer.nbytes for buffer in buffers]
        item_lens = [buffer[0].nbytes for buffer in buffers]
        return data_ptrs, data_lens, item_lens
"""
    GOOD = """
import torch


def count_pages(size, page_size):
    return (size + page_size) // page_size


class KeyPool:
    def __init__(self, size, page_size, row_bytes, layers):
        num_pages = count_pages(size, page_size)
        self.kv_buffer = [
            torch.zeros(num_pages, row_bytes, dtype=torch.uint8) for _ in range(layers)
        ]


class IndexPool:
    def __init__(self, size, page_size, row_bytes, layers):
        num_pages = count_pages(size, page_size)
        self.index_buffer = [
            torch.zeros(num_pages, row_bytes, dtype=torch.uint8) for _ in range(layers)
        ]


class Pools:
    def __init__(self, size, page_size, layers):
        self.keys = KeyPool(size, page_size, 584, layers)
        self.index = IndexPool(size, page_size, 132, layers)

    def buffer_infos(self):
        buffers = self.keys.kv_buffer + self.index.index_buffer
        data_ptrs = [buffer.data_ptr() for buffer in buffers]
        data_lens = [buffer.nbytes for buffer in buffers]
        item_lens = [buffer[0].nbytes for buffer in buffers]
        return data_ptrs, data_lens, item_lens
"""

    def check(self, program: "Program") -> Iterator[Claim]:
        from kvlint.analysis.consumers import uses
        from kvlint.analysis.formulas import siblings

        used: dict[str, Uses] = {}
        for found in siblings(program):
            key = found.by.definition.key
            if key not in used:
                used[key] = uses(program, found.by.definition)
            yield self._claim(found, used[key])

    def _claim(self, found: "Siblings", used: "Uses") -> Claim:
        from kvlint.analysis.showing import show
        from kvlint.assumptions import Entry, Own, Relation

        odd, usual, by = found.odd, found.usual, found.by.definition
        here = odd.at.path == by.path
        formula, other = show(odd.formula), show(usual.formula)
        steps = [
            Step(usual.at, f"{usual.whose} has {other} slots"),
            Step(odd.at, f"{odd.whose} has {formula} slots"),
            Step(odd.handed_at, f"{by.short} hands them over in one list"),
        ]
        if used.one is not None:
            steps.append(used.one)
        settled = found.checked or used.settled
        return Claim(
            code=self.code,
            relation=Relation(Own("slots"), "=", Entry("slots", 0)),
            at=odd.at if here else odd.handed_at,
            scope=odd.scope if here else by.key,
            subject=f"{odd.whose}|{formula}|{usual.whose}|{other}",
            message=f"{odd.whose} has {formula} slots, but {usual.whose} in the same list has "
            f"{other} ({usual.at}): {found.apart}",
            label="a formula of its own",
            settle="let one helper count the slots of both, or take min(n_i) over all regions "
            "where the list is used",
            trace=tuple(steps),
            given=(Given(None, settled),) if settled else (),
            unresolved=found.unresolved,
            by_name_only=found.apart.by_name,
        )
