from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvlint.findings import Claim, Given, Severity, Span, Step
from kvlint.rule import Rule

if TYPE_CHECKING:
    from kvlint.analysis.item_lengths import Misfit
    from kvlint.analysis.link import Program


class HardcodedRowWidth(Rule):
    """A literal stands for the bytes of a packed row or page.

    ## What it assumes

    The row of one token, values and scales together, has this many bytes: `row width = 576`.

    ## Why it breaks

    The width is a sum: head dimensions by their element sizes, scales, padding. One of these
    changes, with the model or the format, and who wrote the literal is not asked. Every row
    but the first is then read from the wrong place, and the scales with it.

    ## Example

    ```python
    row = cache_ptr + block * stride + token * 576
    ```

    ## Use instead

    ```python
    row = cache_ptr + block * stride + token * ROW_BYTES
    ```

    with `ROW_BYTES` worked out from its parts by who knows the layout, or an assert that the
    cache has rows of this width before the literal is used.

    ## How kvlint decides

    It looks for literals from 16 on that multiply a number of tokens, slots or pages, and
    nothing that has a size of its own, in a number of bytes: an offset from an address, a
    dimension of a tensor of bytes, a sum with bytes in it, a size that is returned where other
    cases return one with a dtype's size in it. In a Triton kernel: literals that multiply a
    row's number, loaded or handed in, behind the address of a cache. An item length that a
    pool tells of its buffers and that leaves out a dimension of theirs is one, too. It is
    settled by a comparison with the width that refuses, here or where the kernel is launched.

    ## References

    - https://github.com/sgl-project/sglang/pull/26406
    - https://github.com/vllm-project/vllm/issues/22430
    """

    code = "KV202"
    severity = Severity.ERROR
    since = "0.1.0"
    BAD = """
import torch


def allocate(num_pages, page_size, device):
    kv_cache = torch.zeros((num_pages, page_size * 656), dtype=torch.uint8, device=device)
    return kv_cache, kv_cache.data_ptr()
"""
    GOOD = """
import torch


def allocate(num_pages, page_size, layout, device):
    row = layout.bytes_per_token
    kv_cache = torch.zeros((num_pages, page_size * row), dtype=torch.uint8, device=device)
    return kv_cache, kv_cache.data_ptr()
"""

    def check(self, program: "Program") -> Iterator[Claim]:
        from kvlint.analysis.byte_places import byte_places
        from kvlint.analysis.item_lengths import misfits
        from kvlint.analysis.kernel_rows import kernel_rows
        from kvlint.analysis.showing import brief

        for place in byte_places(program):
            if place.width.row:
                shown = brief(place.width.term, 80)
                at = program.span(place.body, place.mark)
                message = f"{shown} {place.says}"
                scope = place.body.definition.key
                yield self._claim(
                    place.width.value,
                    at,
                    scope,
                    shown,
                    message,
                    place.tie,
                    place.by_name,
                    place.way,
                )
        for misfit in misfits(program):
            if misfit.missing:
                yield self._of_length(program, misfit)
        for row in kernel_rows(program):
            at = program.span(row.body, row.mark)
            others = ", ".join(map(str, row.others))
            beside = f" ({others} place what belongs to them)" if others else ""
            message = f"rows behind {row.pointer} lie so far apart{beside}"
            scope = row.body.definition.key
            yield self._claim(row.width, at, scope, row.pointer, message, row.tie, False)

    def _of_length(self, program: "Program", misfit: "Misfit") -> Claim:
        from kvlint.analysis.showing import brief
        from kvlint.assumptions import Own, Relation, Unknown

        shown = brief(misfit.length, 80)
        missing = " and ".join(misfit.missing)
        return Claim(
            code=self.code,
            relation=Relation(Own("item length"), "=", Unknown(shown)),
            at=program.span(misfit.body, misfit.mark),
            scope=misfit.body.definition.key,
            subject=shown,
            message=f"an item length leaves out {missing}: {shown}; "
            f"{misfit.made.says} ({misfit.made.span})",
            label="does not follow the tensor it describes",
            settle="take the length from the tensor: nbytes, or element_size() times its stride",
            trace=(misfit.made,),
        )

    def _claim(
        self,
        width: int,
        at: Span,
        scope: str,
        subject: str,
        message: str,
        tie: Step | None,
        by_name: bool,
        way: tuple[Step, ...] = (),
    ) -> Claim:
        from kvlint.assumptions import Number, Own, Relation

        return Claim(
            code=self.code,
            relation=Relation(Own("row width"), "=", Number(width)),
            at=at,
            scope=scope,
            subject=subject,
            message=f"{width} stands for the bytes of a row: {message}",
            label="a row width as a literal",
            settle="work it out from its parts, or compare it with the width of the cache's rows",
            trace=way,
            given=(Given(None, tie),) if tie else (),
            by_name_only=by_name,
        )
