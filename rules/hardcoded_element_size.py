from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvlint.findings import Claim, Given, Severity
from kvlint.rule import Rule

if TYPE_CHECKING:
    from kvlint.analysis.borrowed_sizes import Borrowed
    from kvlint.analysis.item_lengths import Misfit
    from kvlint.analysis.link import Program
    from kvlint.analysis.told_bytes import Place


class HardcodedElementSize(Rule):
    """A literal stands for the bytes of one element.

    ## What it assumes

    The elements that are counted have this many bytes each, whatever their dtype:
    `element size = 2`.

    ## Why it breaks

    The dtype is chosen elsewhere: by a flag, a quantisation, another pool. The tensor follows
    it, the literal does not. Pages are then cut too short or too long, an address that is
    worked out so lies in another row, and a pool that is sized so gets the wrong number of
    pages.

    ## Example

    ```python
    kv_bytes = nope_dim + rope_dim * 2 + nope_dim // 64
    ```

    ## Use instead

    ```python
    kv_bytes = nope_dim * nope_dtype.itemsize + rope_dim * rope_dtype.itemsize + nope_dim // 64
    ```

    or assert the dtype, or the number of bytes, beside the literal.

    ## How kvlint decides

    It looks for numbers of bytes: what is added to an address, lengths beside one, dimensions
    of a tensor of bytes, and sums that only make sense in bytes, as values and a scale for
    each block of them do. A product in it that has elements and a literal, and no element
    size, has that in its literal. A factor in front of a lone product counts K and V as well
    as it can count bytes: it is no finding where nothing else tells. A name that says bytes
    makes a finding of medium confidence where arithmetic does not say the same. It is settled
    by a check of the dtype, by an assert that compares the number, and by a view or an array
    of such elements in the same function. What a pool tells of its buffers, beside their
    addresses, is held against the tensors that the project makes for it: a literal, or the
    size of a dtype other than the tensor's, is named with both places. Tensors that are
    registered with the size of a dtype from elsewhere, while their own can be asked, are one
    more case.

    ## References

    - https://github.com/sgl-project/sglang/pull/26406
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.element_size.html
    """

    code = "KV201"
    severity = Severity.ERROR
    since = "0.1.0"
    BAD = """
def row_bytes(k_cache, pages, page_size, agent):
    head_dim = k_cache.shape[-1]
    blocks = []
    for page in pages:
        blocks.append((k_cache.data_ptr() + page * page_size * head_dim * 2, page_size, 0))
    return agent.get_xfer_descs(blocks, "VRAM")
"""
    GOOD = """
def row_bytes(k_cache, pages, page_size, agent):
    row = k_cache.stride(1) * k_cache.element_size()
    blocks = []
    for page in pages:
        blocks.append((k_cache.data_ptr() + page * page_size * row, page_size * row, 0))
    return agent.get_xfer_descs(blocks, "VRAM")
"""

    def check(self, program: "Program") -> Iterator[Claim]:
        from kvlint.analysis.borrowed_sizes import borrowed_sizes
        from kvlint.analysis.byte_places import byte_places
        from kvlint.analysis.item_lengths import misfits

        for borrowed in borrowed_sizes(program):
            yield self._of_registration(program, borrowed)
        told = []
        for misfit in misfits(program):
            if misfit.size or misfit.dtype:
                told.append(misfit.length)
                yield self._of_length(program, misfit)
        for place in byte_places(program):
            if not place.width.row and not any(t.contains(place.width.term) for t in told):
                yield self._claim(program, place)

    def _of_registration(self, program: "Program", found: "Borrowed") -> Claim:
        from kvlint.assumptions import Own, Relation, Unknown

        return Claim(
            code=self.code,
            relation=Relation(Own("element size"), "=", Unknown(found.size)),
            at=program.span(found.body, found.mark),
            scope=found.body.definition.key,
            subject=f"{found.call}|{found.size}",
            message=f"{found.size} is taken for the bytes of one element of {found.tensors}, "
            f"whose own is at hand; {found.call} is told no other",
            label="the size of another dtype",
            settle="take element_size() of the tensors, and refuse those that differ",
            given=(Given(None, found.tie),) if found.tie else (),
        )

    def _of_length(self, program: "Program", misfit: "Misfit") -> Claim:
        from kvlint.analysis.showing import brief
        from kvlint.assumptions import Number, Own, Relation, Unknown

        shown = brief(misfit.length, 80)
        size = Number(misfit.size) if misfit.size else Unknown(misfit.dtype)
        return Claim(
            code=self.code,
            relation=Relation(Own("element size"), "=", size),
            at=program.span(misfit.body, misfit.mark),
            scope=misfit.body.definition.key,
            subject=shown,
            message=f"an item length takes {size} for the bytes of one element: {shown}; "
            f"{misfit.made.says} ({misfit.made.span})",
            label="does not follow the tensor it describes",
            settle="take the length from the tensor: nbytes, or element_size() times its stride",
            trace=(misfit.made,),
            given=(Given(None, misfit.tie),) if misfit.tie else (),
        )

    def _claim(self, program: "Program", place: "Place") -> Claim:
        from kvlint.analysis.showing import brief
        from kvlint.assumptions import Number, Own, Relation

        width = place.width
        shown = brief(width.term, 80)
        if width.default:
            message = f"every dtype that is not named has {_bytes(width.value)}: {shown}"
        elif width.value == 1:
            message = f"one element is one byte: {shown} {place.says}"
        else:
            message = f"{width.value} stands for the bytes of one element: {shown} {place.says}"
        return Claim(
            code=self.code,
            relation=Relation(Own("element size"), "=", Number(width.value)),
            at=program.span(place.body, place.mark),
            scope=place.body.definition.key,
            subject=shown,
            message=message,
            label="one size for every dtype" if width.default else "an element size as a literal",
            settle="use element_size() or the itemsize of the dtype, or assert the dtype here",
            trace=place.way,
            given=(Given(None, place.tie),) if place.tie else (),
            holds_today=place.holds,
            by_name_only=place.by_name,
        )


def _bytes(value: int) -> str:
    return "1 byte" if value == 1 else f"{value} bytes"
