from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvlint.findings import Claim, Given, Severity, Step
from kvlint.rule import Rule

if TYPE_CHECKING:
    from kvlint.analysis.link import Program
    from kvlint.analysis.lists import SharedCount


class SharedSlotCount(Rule):
    """One slot count is given to every region in place of its own.

    ## What it assumes

    The count that a descriptor list or a registration uses for all regions is at most each
    region's own: `c <= n_i` for each region i.

    ## Why it breaks

    A region with fewer slots gets descriptors past its end. The transport refuses the list,
    or, where one registration covers the neighbour, accepts it and moves the neighbour's
    bytes.

    ## Example

    ```python
    for base, item_len, data_len in zip(ptrs, item_lens, data_lens):
        n = num_slots if num_slots is not None else data_len // item_len
        runs.append((base, item_len, device, item_len, n))
    ```

    called with `num_slots=data_lens[0] // item_lens[0]`.

    ## Use instead

    ```python
    num_slots = min(data // item for data, item in zip(data_lens, item_lens, strict=True))
    ```

    for this list and for the indices into it, or each region's own count.

    ## How kvlint decides

    It looks for descriptor lists whose count does not vary with the loop over regions, and
    asks where that count comes from: through parameters, fields, return values and what the
    peer sends, one consistent case at a time. A count of one region refutes the
    assumption; the minimum over the regions holds by construction; a count that nobody
    can follow is conditional.

    ## References

    - https://github.com/sgl-project/sglang/pull/26406
    - https://github.com/vllm-project/vllm/issues/22430
    """

    code = "KV102"
    severity = Severity.ERROR
    since = "0.1.0"
    BAD = """
import numpy as np


def build(agent, kv_ptrs, kv_item_lens, num_slots, device):
    runs = []
    for base_ptr, item_len in zip(kv_ptrs, kv_item_lens, strict=True):
        addrs = np.arange(num_slots, dtype=np.uint64) * item_len + base_ptr
        lengths, devices = np.full(num_slots, item_len), np.full(num_slots, device)
        runs.append(np.column_stack([addrs, lengths, devices]))
    return agent.prep_xfer_dlist("", np.vstack(runs), "VRAM")


def connect(agent, pool):
    num_slots = pool.kv_data_lens[0] // pool.kv_item_lens[0]
    return build(agent, pool.kv_data_ptrs, pool.kv_item_lens, num_slots, 0)
"""
    GOOD = """
import numpy as np


def build(agent, kv_ptrs, kv_item_lens, num_slots, device):
    runs = []
    for base_ptr, item_len in zip(kv_ptrs, kv_item_lens, strict=True):
        addrs = np.arange(num_slots, dtype=np.uint64) * item_len + base_ptr
        lengths, devices = np.full(num_slots, item_len), np.full(num_slots, device)
        runs.append(np.column_stack([addrs, lengths, devices]))
    return agent.prep_xfer_dlist("", np.vstack(runs), "VRAM")


def connect(agent, pool):
    num_slots = min(d // i for d, i in zip(pool.kv_data_lens, pool.kv_item_lens, strict=True))
    return build(agent, pool.kv_data_ptrs, pool.kv_item_lens, num_slots, 0)
"""

    def check(self, program: "Program") -> Iterator[Claim]:
        from kvlint.analysis.lists import shared_counts

        for found in shared_counts(program):
            yield self._claim(program, found)

    def _claim(self, program: "Program", found: "SharedCount") -> Claim:
        from kvlint.analysis.meaning import holds_today, trace
        from kvlint.assumptions import Least, Own, Relation

        worst = found.meanings[0]
        given: tuple[Given, ...] = ()
        steps = trace(worst.origin)
        if isinstance(worst.expression, Least):
            at_least = steps[-1] if steps else Step(found.at, "here")
            bound = Relation(Least("slots"), "<=", Own("slots"))
            given = (Given(bound, Step(at_least.span, f"the least of all regions: {worst.text}")),)
        given += tuple(Given(None, step) for step in found.checks)
        instead = " instead of its own" if found.replaces else ""
        others = {m.text for m in found.meanings[1:]} - {worst.text}
        can = f"; it can be {worst.text}" if worst.text != found.shown else ""
        also = f", elsewhere {sorted(others)[0]}" if others else ""
        return Claim(
            code=self.code,
            relation=Relation(worst.expression, "<=", Own("slots")),
            at=found.at,
            scope=found.body.definition.key,
            subject=f"{found.address}|{found.kind}",
            message=f"every region gets {found.shown}{instead}{can}{also}",
            label="the same count for every region",
            settle="give min(n_i) over the same regions, to this list and to its indices, "
            "or each region its own count",
            trace=steps,
            given=given,
            unresolved=(worst.unresolved,) if worst.unresolved else (),
            holds_today=holds_today(program, worst),
            by_name_only=worst.origin.by_name,
        )
