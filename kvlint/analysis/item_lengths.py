"""Lengths that a pool tells of its buffers, held against how the buffers are made.

`return [b.data_ptr() for b in bufs], ..., [page * row * 2 for b in bufs]` describes tensors that
the same class makes: with a dtype and dimensions that the length either follows or repeats.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kvlint.analysis.bodies import Body, Mark, Where
from kvlint.analysis.link import Program
from kvlint.analysis.quantities import Unit, unit_of
from kvlint.analysis.showing import brief, show
from kvlint.analysis.tensors import Tensor, bytes_of, given_values, tensors
from kvlint.analysis.terms import (
    Call,
    Choice,
    Field,
    Many,
    Operation,
    Sequence,
    Term,
    last_name,
)
from kvlint.analysis.ties import tie
from kvlint.analysis.widths import ELEMENT, Width, by_dtype, summands
from kvlint.findings import Step

_POINTERS = re.compile(r"\.data_ptr\(\)")
_GIVES = re.compile(r"\breturn\b|_lens?\b|_lengths?\b")


@dataclass(frozen=True, slots=True)
class Misfit:
    """A length that does not follow the tensor it describes.

    `length` is the term. `size`: bytes of an element that it takes as a literal, or `dtype`:
    whose size it takes; else `missing`: dimensions of a slot that it leaves out. `made`: where
    the tensor is made, and as what; `tie`: what guards the length.
    """

    body: Body
    mark: Mark
    length: Term
    made: Step
    size: int | None = None
    dtype: str = ""
    missing: tuple[str, ...] = ()
    tie: Step | None = None


def misfits(program: Program) -> Iterator[Misfit]:
    """Lengths beside the addresses of tensors that the project makes, where they do not follow
    the tensor."""
    for body in program.holding(_POINTERS, _GIVES):
        seen: set[Term] = set()
        for root in body.returns:
            for buffers, length in described(root.term):
                if length not in seen:
                    seen.add(length)
                    place = body.place_of(length) or (root.place, root.where)
                    put = program.inline(length, body)
                    yield from _misfit(program, body, place, buffers, put)


def described(term: Term) -> Iterator[tuple[Term, Term]]:
    """Tensors and the lengths that are returned beside their addresses."""
    if not isinstance(term, Sequence) or len(term.items) < 2:
        return
    pointed = [_pointed(item) for item in term.items]
    buffers = next((p for p in pointed if p is not None), None)
    if buffers is None:
        return
    for item, of in zip(term.items, pointed, strict=True):
        if of is None:
            # A count alone beside an address is as often the key of a cache of results.
            match item:
                case Many(Operation() | Choice() | Call() as length, _, _):
                    yield buffers, length
                case Operation() | Choice():
                    yield buffers, item


def _pointed(item: Term) -> Term | None:
    """xs of `[x.data_ptr() for x in xs]`, x of `x.data_ptr()`."""
    match item:
        case (
            Many(Call(callee="data_ptr", receiver=of), _, _) | Call(callee="data_ptr", receiver=of)
        ):
            return of
    return None


def _misfit(
    program: Program, body: Body, place: tuple[Mark, Where], buffers: Term, length: Term
) -> Iterator[Misfit]:
    if _measures(length):
        return
    parts = summands(length)
    made = tensors(program, buffers, body)
    if len(parts) != 1 or not made:
        return
    (part,) = parts
    mark, where = place
    for tensor in made:
        step = _making(program, tensor)
        misfit = Misfit(body, mark, length, step)
        dtypes = [f for f in part.factors if unit_of(f, body) is Unit.ELEMENT_SIZE]
        literals = [n for n in part.literals if n in ELEMENT and n > 1]
        missing = _left_out(tensor, part.factors, body)
        if dtypes:
            other = next((d for d in dtypes if not _same_dtype(program, d, tensor, body)), None)
            if other is not None and by_dtype(other) is None:
                yield replace(misfit, dtype=show(other))
        elif literals and unit_of(part.term, body) is not Unit.BYTES:
            size = max(literals)
            near = step if bytes_of(program, tensor.dtype, tensor.body) == size else None
            guard = tie(program, body, Width(length, size), where)
            yield replace(misfit, size=size, tie=guard or near)
        if missing:
            yield replace(misfit, missing=missing)


def _making(program: Program, tensor: Tensor) -> Step:
    place = tensor.body.place_of(tensor.call)
    dtype = brief(tensor.dtype, 40) if tensor.dtype is not None else "torch's default dtype"
    shape = ", ".join(brief(dimension, 30) for dimension in tensor.shape)
    span = program.span(tensor.body, place[0] if place else -1)
    return Step(span, f"the tensor is made as ({shape}) of {dtype}")


def _measures(length: Term) -> bool:
    """Whether the length is taken from a tensor: `nbytes`, `shape`, a stride, `numel()`."""
    return length.contains(
        lambda t: (
            (isinstance(t, Field) and t.name in ("nbytes", "shape"))
            or (isinstance(t, Call) and t.callee in ("numel", "stride", "size", "element_size"))
        )
    )


def _same_dtype(program: Program, size: Term, tensor: Tensor, body: Body) -> bool:
    """Whether a size is that of the dtype the tensor is made with, or kept from it in a field."""
    if tensor.dtype is None:
        return False
    known = _names(tensor.dtype, tensor.body)
    told = [(size, body)]
    if isinstance(size, Field):
        told += given_values(program, size.of, size.name, body)
    return any(_names(part, tensor.body) & known for value, _ in told for part in value.walk())


def _names(term: Term, body: Body) -> set[str]:
    """What a value goes by: its own name, and the fields that it is kept in."""
    name = last_name(term)
    kept = {s.name for s in body.stores if s.value == term and s.key is None}
    return {name, *kept} - {""}


def _left_out(tensor: Tensor, factors: tuple[Term, ...], body: Body) -> tuple[str, ...]:
    """Dimensions of a slot that the length has no factor for, where each factor is one."""
    rows = [f for d in tensor.shape[1:] for part in summands(d) for f in part.factors]
    named = [(row, _names(row, tensor.body)) for row in rows]
    told = {last_name(f) for f in factors if unit_of(f, body) is not Unit.ELEMENT_SIZE}
    known = {name for _, names in named for name in names}
    # What is no dimension may be the product of some; pages may be counted beside them.
    others = [f for f in factors if last_name(f) in told - known]
    if any(unit_of(f, body) not in (Unit.TOKENS, Unit.SLOTS) for f in others):
        return ()
    missing = tuple(show(row) for row, names in named if not names & told)
    whole = all(names for _, names in named) and len(missing) < len(named)
    return missing if whole else ()
