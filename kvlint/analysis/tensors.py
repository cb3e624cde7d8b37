"""What a tensor is made as: shape and dtype, where the project's own code makes it."""

from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.bodies import Body
from kvlint.analysis.link import Program
from kvlint.analysis.outline import module_of
from kvlint.analysis.terms import (
    Call,
    Choice,
    Each,
    Field,
    Global,
    Item,
    Literal,
    Many,
    Sequence,
    Slice,
    Term,
)
from kvlint.analysis.vocabulary import apis

DEPTH = 8
MOST = 8  # makings of one tensor; more are not worth telling apart


@dataclass(frozen=True, slots=True)
class Tensor:
    """One allocation that a tensor can be.

    `shape`: its dimensions, as `body` writes them; `dtype`: None where torch's default holds;
    `call`: the allocation, a term of `body`.
    """

    shape: tuple[Term, ...]
    dtype: Term | None
    call: Call
    body: Body


def allocation(term: Term, body: Body) -> Tensor | None:
    """The tensor that `term` makes, where it is a call of `torch.zeros`, `empty` or the like, or
    any that is given a shape and a dtype. A placeholder without elements is none."""
    if not isinstance(term, Call):
        return None
    given = dict(term.keywords)
    shape = term.arguments
    if term.name not in apis().makes_tensor and not (
        "dtype" in given
        and shape
        and isinstance(shape[0], Sequence)
        and (term.receiver is None or not term.callee)
    ):
        return None
    if "size" in given and not shape:
        shape = (given["size"],)
    if shape and isinstance(shape[0], Sequence):
        shape = shape[0].items
    if (
        not shape
        or Literal(0) in shape
        or term.name.endswith("_like")
        or term.name in ("as_strided", "frombuffer")
    ):
        return None
    return Tensor(shape, given.get("dtype"), term, body)


def tensors(program: Program, term: Term, body: Body, depth: int = DEPTH) -> list[Tensor]:
    """What the tensor `term` (a list's element stands for each) can be made as; [] where it is
    handed in from elsewhere. Fields, list elements and helpers are followed."""
    found: list[Tensor] = []
    for one in _makings(program, term, body, depth):
        if one not in found:
            found.append(one)
        if len(found) >= MOST:
            break
    return found


def _makings(program: Program, term: Term, body: Body, depth: int) -> Iterator[Tensor]:
    if depth <= 0:
        return
    made = allocation(term, body)
    if made is not None:
        yield made
        return
    match term:
        case Choice(_, then, other):
            yield from _makings(program, then, body, depth)
            yield from _makings(program, other, body, depth)
        case Many(element, _, _):
            yield from _makings(program, element, body, depth)
        case Sequence(items):
            for one in items:
                yield from _makings(program, one, body, depth - 1)
        case Item(of, _) | Each(of, _) | Slice(of, _, _):
            yield from _makings(program, of, body, depth - 1)
        case Call(callee=name, receiver=of) if of is not None and name in apis().same_memory:
            yield from _makings(program, of, body, depth - 1)
        case Call():
            yield from _returned(program, term, body, depth)
        case Field(of, name):
            yield from _stored(program, of, name, body, depth)


def _returned(program: Program, call: Call, body: Body, depth: int) -> Iterator[Tensor]:
    found, by_name = program.callees(call, body)
    for callee in found if len(found) <= 3 and not by_name else ():
        inner = program.body(callee)
        if inner is None or callee.short == "__init__":
            continue
        for root in inner.returns:
            for one in _makings(program, root.term, inner, depth - 1):
                put = [
                    program.substitute(part, callee, program.bind(call, callee), call.receiver)
                    for part in one.shape
                ]
                # As the caller sees it, while the call stays where it is written.
                yield Tensor(tuple(put), one.dtype, one.call, one.body)


def _stored(program: Program, of: Term, name: str, body: Body, depth: int) -> Iterator[Tensor]:
    owner = program.type_of(of, body)
    family = program.family(owner) if owner else ()
    for member in family:
        computed = program.definition(f"{member}.{name}")
        if computed is not None and "property" in computed.decorators:
            yield from _returned(program, Call(name, of, ()), body, depth)
            return
    # What objects of other classes keep under the same name says nothing.
    for other, store in program.stores(name, owner) if owner else ():
        if program.type_of(store.of, other) in family:
            yield from _makings(program, store.value, other, depth - 1)


def bytes_of(program: Program, dtype: Term | None, body: Body, depth: int = 4) -> int | None:
    """Bytes that one element of a dtype has; None where the code does not fix it."""
    match dtype:
        case Global(name) | Literal(str(name)):
            return apis().dtype_bytes.get(name.rpartition(".")[2])
        case Choice(_, then, other):
            one, two = (bytes_of(program, part, body, depth) for part in (then, other))
            return one if one == two else None
        case Field(of, name) if depth > 0:
            sizes = {
                bytes_of(program, value, at, depth - 1)
                for value, at in given_values(program, of, name, body)
            }
            return sizes.pop() if len(sizes) == 1 else None
    return None


def given_values(program: Program, of: Term, name: str, body: Body) -> Iterator[tuple[Term, Body]]:
    """What a field can be: what methods store in it, and what its class starts with."""
    owner = program.type_of(of, body)
    family = program.family(owner) if owner else ()
    stored = False
    for other, store in program.stores(name, owner):
        if store.key is None and program.type_of(store.of, other) in family:
            stored = True
            yield store.value, other
    for member in family if not stored else ():
        known = program.class_at(member)
        constant = dict(known.constants).get(name) if known else None
        if known is not None and constant is not None:
            if isinstance(constant, int):
                yield Literal(constant), body
            else:
                yield resolved(program, known.path, constant), body
            return


def resolved(program: Program, path: str, dotted: str) -> Term:
    """A dotted name as a file's imports read it."""
    found = program.outline(path)
    head, _, tail = dotted.partition(".")
    whole = found.imports.get(head, f"{module_of(path)}.{head}") if found else head
    return Global(f"{whole}.{tail}" if tail else whole)
