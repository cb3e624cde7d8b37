from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvlint.findings import Claim, Given, Severity, Step
from kvlint.rule import Rule

if TYPE_CHECKING:
    from kvlint.analysis.link import Program
    from kvlint.analysis.strides import Stepped


class LengthUsedAsStride(Rule):
    """A slot is looked for at its number times what a slot holds, not times the stride.

    ## What it assumes

    Slots follow one another without gaps: the bytes of one slot, as its shape or its share of
    the tensor has them, are the bytes from one slot to the next.

    ## Why it breaks

    A pool that pads its pages, packs several layers into one page, or hands out a permuted
    view keeps its slots further apart than they are long. From slot 1 on, every address then
    lies inside another slot or another layer, and still inside the registered region.

    ## Example

    ```python
    block_len = cache.element_size() * math.prod(cache.shape[1:])
    src = cache.data_ptr() + block_id * block_len
    ```

    ## Use instead

    ```python
    block_stride = cache.stride(0) * cache.element_size()
    src = cache.data_ptr() + block_id * block_stride
    ```

    and the length only for how much is moved; or refuse a tensor that is not contiguous.

    ## How kvlint decides

    It looks for products of a slot number in addresses and follows the other factor to the
    tensor it was measured from. A stride, or a name that speaks of one, is what it should be.
    The shape or size of a tensor that is handed in from elsewhere says nothing of how far its
    slots lie apart. A tensor that the project itself allocates as a whole, and one whose
    contiguity or stride is checked where it is measured, settle it; a length that only a name
    tells, or whose tensor nobody can follow, is conditional.

    ## References

    - https://github.com/vllm-project/vllm-ascend/pull/10342
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.stride.html
    """

    code = "KV205"
    severity = Severity.WARNING
    since = "0.1.0"
    BAD = """
import math


class Sender:
    def __init__(self, engine):
        self.engine = engine
        self.base_addrs = []

    def register_kv_caches(self, kv_caches):
        cache = next(iter(kv_caches.values()))
        self.block_len = cache.element_size() * math.prod(cache.shape[1:])
        for one in kv_caches.values():
            self.base_addrs.append(one.data_ptr())

    def send(self, session, local_block_ids, remote_addrs):
        src, dst, lengths = [], [], []
        for base_addr, remote_addr in zip(self.base_addrs, remote_addrs, strict=True):
            for block_id in local_block_ids:
                src.append(base_addr + block_id * self.block_len)
                dst.append(remote_addr)
                lengths.append(self.block_len)
        self.engine.batch_transfer_sync_write(session, src, dst, lengths)
"""
    GOOD = """
import math


class Sender:
    def __init__(self, engine):
        self.engine = engine
        self.base_addrs = []
        self.block_lens = []
        self.block_strides = []

    def register_kv_caches(self, kv_caches):
        for one in kv_caches.values():
            self.base_addrs.append(one.data_ptr())
            self.block_lens.append(one.element_size() * math.prod(one.shape[1:]))
            self.block_strides.append(one.element_size() * one.stride(0))

    def send(self, session, local_block_ids, remote_addrs):
        src, dst, lengths = [], [], []
        for base_addr, remote_addr, block_len, stride in zip(
            self.base_addrs, remote_addrs, self.block_lens, self.block_strides, strict=True
        ):
            for block_id in local_block_ids:
                src.append(base_addr + block_id * stride)
                dst.append(remote_addr)
                lengths.append(block_len)
        self.engine.batch_transfer_sync_write(session, src, dst, lengths)
"""

    def check(self, program: "Program") -> Iterator[Claim]:
        from kvlint.analysis.strides import stepped

        for found in stepped(program):
            yield self._claim(program, found)

    def _claim(self, program: "Program", found: "Stepped") -> Claim:
        from kvlint.analysis.showing import brief
        from kvlint.assumptions import Number, Own, Relation

        worst = found.ways[0]
        origin, steps = worst.measured.origin, worst.measured.origin.steps
        tensors = [brief(tensor, 50) for tensor, _ in worst.measured.extents]
        unresolved: tuple[str, ...] = ()
        if tensors:
            place = origin.body.place_of(origin.term)
            span = program.span(origin.body, place[0]) if place else None
            shown = (program.written(span) if span else None) or brief(origin.term, 80)
            holds = f"which is what one slot holds: {shown}"
            if span is not None and (span.path, span.line) != (found.at.path, found.at.line):
                holds += f" ({span})"
                steps = (*steps, Step(span, f"measured as {shown}"))
            if not worst.handed and not worst.settled:
                unresolved = (f"nothing tells how {tensors[0]} is laid out",)
        else:
            holds = "by its name what one slot holds"
            unresolved = worst.measured.unknown[:1]
        several = Relation(Number(2), "<=", Own("slots"))
        next_one = Step(found.at, "a region of one slot has no next one")
        return Claim(
            code=self.code,
            relation=Relation(Own("transfer length"), "=", Own("item length")),
            at=found.at,
            scope=found.body.definition.key,
            subject=f"{brief(found.length, 60)}|{brief(origin.term, 60)}",
            message=f"slot p is looked for at p * {brief(found.length, 50)}, {holds}; "
            "padded, packed or permuted slots lie further apart",
            label="a length where the stride belongs",
            settle="multiply the slot number with stride(0) * element_size(), or refuse tensors "
            "that are not contiguous where their length is taken",
            trace=steps[-6:],
            given=(Given(None, worst.settled),) if worst.settled else (Given(several, next_one),),
            unresolved=unresolved,
            by_name_only=origin.by_name or not tensors,
        )
