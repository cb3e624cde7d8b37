from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvlint.findings import Claim, Given, Severity
from kvlint.rule import Rule

if TYPE_CHECKING:
    from kvlint.analysis.link import Program
    from kvlint.analysis.lists import StridedIndex


class ConstantStrideIndex(Rule):
    """A flat index is `region number * S + slot`, over regions of different sizes.

    ## What it assumes

    The list holds S descriptors for each region that comes before: descriptors before
    region i = i * S.

    ## Why it breaks

    A prepared list is flat. If one region has another slot count than S, every region
    behind it starts somewhere else, and the index selects a valid descriptor of the wrong
    slot or the wrong region. The transport sees nothing wrong as long as the lengths agree.

    ## Example

    ```python
    handle = agent.prep_xfer_dlist("", descriptors_of(ptrs, data_lens, item_lens))
    indices = np.arange(len(ptrs))[:, None] * num_slots + pages[None, :]
    ```

    ## Use instead

    ```python
    starts = np.cumsum([0, *counts[:-1]])
    indices = starts[:, None] + pages[None, :]
    ```

    or build the list and the indices with one and the same count, the minimum of all.

    ## How kvlint decides

    For each posted transfer it follows the indices back to where a region number meets a
    stride, also through helpers, and the handle back to the list it stands for. It then
    compares, case by case, the stride with the count that each region of that list was
    built with. The same count on both sides holds by construction; an own count for each
    region refutes any stride; a list or stride that cannot be followed is conditional.

    ## References

    - https://github.com/sgl-project/sglang/pull/26406
    """

    code = "KV103"
    severity = Severity.ERROR
    since = "0.1.0"
    BAD = """
import numpy as np


def connect(agent, peer, kv_ptrs, kv_data_lens, kv_item_lens, pages):
    rows = []
    for base_ptr, data_len, item_len in zip(kv_ptrs, kv_data_lens, kv_item_lens, strict=True):
        n = data_len // item_len
        addrs = base_ptr + np.arange(n, dtype=np.uint64) * item_len
        rows.append(np.column_stack([addrs, np.full(n, item_len), np.full(n, 0)]))
    handle = agent.prep_xfer_dlist("", np.vstack(rows), "VRAM")
    num_slots = kv_data_lens[0] // kv_item_lens[0]
    indices = np.arange(len(kv_ptrs))[:, None] * num_slots + pages[None, :]
    return agent.make_prepped_xfer("WRITE", handle, indices.ravel(), peer.handle, peer.indices)
"""
    GOOD = """
import numpy as np


def connect(agent, peer, kv_ptrs, kv_data_lens, kv_item_lens, pages):
    counts = [data_len // item_len for data_len, item_len in zip(kv_data_lens, kv_item_lens)]
    rows = []
    for base_ptr, n, item_len in zip(kv_ptrs, counts, kv_item_lens, strict=True):
        addrs = base_ptr + np.arange(n, dtype=np.uint64) * item_len
        rows.append(np.column_stack([addrs, np.full(n, item_len), np.full(n, 0)]))
    handle = agent.prep_xfer_dlist("", np.vstack(rows), "VRAM")
    starts = np.cumsum([0, *counts[:-1]])
    indices = starts[:, None] + pages[None, :]
    return agent.make_prepped_xfer("WRITE", handle, indices.ravel(), peer.handle, peer.indices)
"""

    def check(self, program: "Program") -> Iterator[Claim]:
        from kvlint.analysis.lists import strided_indices

        for found in strided_indices(program):
            yield self._claim(program, found)

    def _claim(self, program: "Program", found: "StridedIndex") -> Claim:
        from kvlint.analysis.meaning import holds_today, trace
        from kvlint.analysis.showing import show
        from kvlint.analysis.terms import last_name
        from kvlint.assumptions import Number, Own, Product, Relation, Starts, Unknown

        stride = found.strides[0] if found.strides else None
        built = found.built[0] if found.built else None
        right = stride.expression if stride else Unknown("S")
        left = built.expression if built else Own("slots")
        # A stride that differs from region to region: region i starts at i times its own.
        strided = Product(Starts(Number(1)), right) if isinstance(right, Own) else Starts(right)
        given: tuple[Given, ...] = ()
        if found.same and found.list_step is not None:
            given = (Given(None, found.list_step),)
        given += tuple(Given(None, step) for step in found.checks)
        steps = trace(stride.origin) if stride else ()
        if found.list_step is not None:
            steps = (*steps, found.list_step)
        of = stride.text if stride else show(found.stride)
        holds = f"has {built.text} descriptors for region i" if built else "is not known"
        if found.same:
            holds = "has the same count"
        return Claim(
            code=self.code,
            relation=Relation(Starts(left), "=", strided),
            at=found.at,
            scope=found.body.definition.key,
            subject=f"{found.side}|{last_name(found.stride)}",
            message=f"index of region i, slot p is i * S + p with S = {of}; "
            f"the {found.side} list {holds}",
            label="one stride for every region",
            settle="build the list and the indices with the same count, min(n_i), "
            "or index by cumulative starts",
            trace=steps,
            given=given,
            unresolved=found.unresolved,
            holds_today=holds_today(program, stride) if stride and not found.same else None,
            by_name_only=bool(stride and stride.origin.by_name),
        )
