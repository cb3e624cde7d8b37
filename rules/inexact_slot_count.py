from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvlint.findings import Claim, Given, Severity
from kvlint.rule import Rule

if TYPE_CHECKING:
    from kvlint.analysis.link import Program
    from kvlint.analysis.quotients import Rounded


class InexactSlotCount(Rule):
    """A quotient that is rounded down decides about memory, and nothing checks the remainder.

    ## What it assumes

    The division leaves no remainder: the item length divides the region length, the page size
    divides the tokens, the slots divide the bytes that are shared out among them.

    ## Why it breaks

    A stride that lost a fraction of a byte in each slot drifts: slot p is looked for p times
    the loss too early. A count that lost a part of a page leaves its tokens without memory.

    ## Example

    ```python
    block_len = cache.nbytes // num_blocks
    src = cache.data_ptr() + block_id * block_len
    ```

    where `num_blocks` comes from a configuration and the tensor has some rows more.

    ## Use instead

    ```python
    if cache.nbytes % num_blocks:
        raise ValueError(f"{num_blocks} blocks do not share {cache.nbytes} bytes evenly")
    ```

    or measure both in the tensor itself: `cache.nbytes // cache.shape[0]`.

    ## How kvlint decides

    It looks for floor divisions of one quantity of geometry by another on the way to the
    stride of an address, the count of a descriptor list or the size of a pool. A check of the
    remainder or of the product settles it, and so does a construction that leaves none: what
    is divided was multiplied by the divisor or aligned to it, or both are measured from one
    tensor. Rounding up on purpose is none. What names alone tell is never sure.

    ## References

    - https://docs.python.org/3/reference/expressions.html#binary-arithmetic-operations
    """

    code = "KV204"
    severity = Severity.ERROR
    since = "0.1.0"
    preview = True
    BAD = """
class Sender:
    def __init__(self, engine):
        self.engine = engine

    def register(self, cache, num_blocks):
        self.base_addr = cache.data_ptr()
        self.block_len = cache.nbytes // num_blocks

    def send(self, session, block_ids, remote_addr):
        src = [self.base_addr + block_id * self.block_len for block_id in block_ids]
        self.engine.batch_transfer_sync_write(session, src, [remote_addr], [self.block_len])
"""
    GOOD = """
class Sender:
    def __init__(self, engine):
        self.engine = engine

    def register(self, cache, num_blocks):
        if cache.nbytes % num_blocks or not cache.is_contiguous():
            raise ValueError("the blocks do not share the tensor evenly")
        self.base_addr = cache.data_ptr()
        self.block_len = cache.nbytes // num_blocks

    def send(self, session, block_ids, remote_addr):
        src = [self.base_addr + block_id * self.block_len for block_id in block_ids]
        self.engine.batch_transfer_sync_write(session, src, [remote_addr], [self.block_len])
"""

    def check(self, program: "Program") -> Iterator[Claim]:
        from kvlint.analysis.quotients import rounded

        for found in rounded(program):
            yield self._claim(found)

    def _claim(self, found: "Rounded") -> Claim:
        from kvlint.analysis.showing import brief
        from kvlint.analysis.terms import last_name
        from kvlint.assumptions import Relation, Unknown

        dividend, divisor = brief(found.dividend, 60), brief(found.divisor, 60)
        whole, part = last_name(found.dividend), last_name(found.divisor)
        becomes = {
            "stride": "tells how far the slots of a region lie apart",
            "count": "tells how many descriptors a region has",
            "shape": "is how many slots a pool is made with",
        }[found.use]
        return Claim(
            code=self.code,
            relation=Relation(Unknown(part or divisor), "divides", Unknown(whole or dividend)),
            at=found.at,
            scope=found.body.definition.key,
            subject=f"{dividend}|{divisor}|{found.use}",
            message=f"{dividend} // {divisor} {becomes}; a remainder is lost unseen",
            label="rounded down",
            settle=f"refuse {dividend} % {divisor} != 0, or say by rounding up that a part counts",
            trace=found.steps[-6:],
            given=(Given(None, found.settled),) if found.settled else (),
            by_name_only=not found.sure,
        )
