from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvlint.findings import Claim, Given, Severity
from kvlint.rule import Rule

if TYPE_CHECKING:
    from kvlint.analysis.flow import Sink
    from kvlint.analysis.link import Program
    from kvlint.analysis.stand_ins import StandIn


class FirstRegionStandsForAll(Rule):
    """A quantity of the first (or last) region is used for every region.

    ## What it assumes

    Every region has region 0's quantity: slot count, item length, element size, dtype,
    device or head size; `q_i = q_0` for each region i.

    ## Why it breaks

    A cache is handed over as several regions: keys and values, one region a layer, an
    index pool beside a latent pool. They agree until one of them gets another dtype, page
    formula or pool. Then an address, length or count worked out from region 0 points into
    the wrong page of the others, and nothing complains.

    ## Example

    ```python
    page_bytes = item_lens[0]
    for base in ptrs:
        blocks.append((base + page * page_bytes, page_bytes, device))
    ```

    ## Use instead

    ```python
    for base, page_bytes in zip(ptrs, item_lens, strict=True):
        blocks.append((base + page * page_bytes, page_bytes, device))
    ```

    or refuse lists whose entries differ before the first is used; for a slot count give
    every region `min(...)` and index with the same number.

    ## How kvlint decides

    It starts where an entry of a list of regions is taken (`xs[0]`, `next(iter(...))`, the
    value a loop leaves in a field) and follows the value through locals, fields, arguments
    and return values to a sink: an address, length, count, stride or device of a
    descriptor, or a message to the peer. A value that is only logged, compared or tested
    reaches none. It is settled by a check of that quantity over all regions that stands
    before the use, by a minimum, by a pool of one region, and by a list whose entries the
    same class makes alike.

    ## References

    - https://github.com/sgl-project/sglang/pull/26406
    - https://github.com/vllm-project/vllm/issues/22430
    - https://github.com/LMCache/LMCache/pull/2495
    """

    code = "KV101"
    severity = Severity.ERROR
    since = "0.1.0"
    BAD = """
def build(agent, kv_ptrs, kv_item_lens, pages, device):
    page_bytes = kv_item_lens[0]
    blocks = []
    for base_ptr in kv_ptrs:
        for page in pages:
            blocks.append((base_ptr + page * page_bytes, page_bytes, device))
    return agent.get_xfer_descs(blocks, "VRAM")
"""
    GOOD = """
def build(agent, kv_ptrs, kv_item_lens, pages, device):
    if len(set(kv_item_lens)) != 1:
        raise ValueError(f"regions differ in item length: {kv_item_lens}")
    page_bytes = kv_item_lens[0]
    blocks = []
    for base_ptr in kv_ptrs:
        for page in pages:
            blocks.append((base_ptr + page * page_bytes, page_bytes, device))
    return agent.get_xfer_descs(blocks, "VRAM")
"""

    def check(self, program: "Program") -> Iterator[Claim]:
        from kvlint.analysis.stand_ins import stand_ins

        for found in stand_ins(program):
            yield self._claim(found)

    def _claim(self, found: "StandIn") -> Claim:
        from kvlint.assumptions import Entry, Own, Relation

        sink = (found.open or found.sinks)[0]
        which = "the last region" if found.number else "region 0"
        relation = Relation(Entry(found.quantity, found.number), "=", Own(found.quantity))
        uniform = Relation(Own(found.quantity), "=", Entry(found.quantity, 0))
        given: tuple[Given, ...] = ()
        if found.construction is not None:
            given = (Given(None, found.construction),)
        elif not found.open:
            given = tuple(Given(uniform, step) for step in found.guards)
        return Claim(
            code=self.code,
            relation=relation,
            at=found.at,
            scope=found.body.definition.key,
            subject="|".join((found.regions, found.quantity, *found.beside)),
            message=_message(found, sink, which),
            label=f"taken from {which}",
            settle=_settle(found.quantity),
            trace=found.trace,
            given=given,
            holds_today=found.holds_today,
            by_name_only=found.by_name,
        )


def _message(found: "StandIn", sink: "Sink", which: str) -> str:
    quantity = "slot count" if found.quantity == "slots" else found.quantity
    stands = "stands"
    if found.beside:
        quantity, stands = " and ".join((quantity, *found.beside)), "stand"
    text = f"{quantity} of {which} {stands} for every region: {found.shown} {sink.says}"
    if found.guards and found.open:
        text += f"; the check at line {found.guards[0].span.line} does not cover this use"
    return text


def _settle(quantity: str) -> str:
    if quantity == "slots":
        return "give every region the minimum over all of them, or its own count"
    return f"use each region's own {quantity}, or refuse lists in which it differs"
