"""Literal row widths in Triton kernels: rows of a cache that lie a literal number apart."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.bodies import Body, Mark
from kvlint.analysis.link import Program
from kvlint.analysis.quantities import Unit, named
from kvlint.analysis.roles import is_address
from kvlint.analysis.showing import brief
from kvlint.analysis.terms import Call, Literal, Operation, Parameter, Term, last_name
from kvlint.analysis.vocabulary import nouns, words
from kvlint.analysis.widths import NARROWEST, Product, summands
from kvlint.findings import Step

_STRIDES = re.compile(r"\* ?\d\d")
_LANGUAGE = re.compile(r"\btl\.")


@dataclass(frozen=True, slots=True)
class KernelRow:
    """Rows behind `pointer` lie `width` apart; `others`: literals that place what is beside them
    in a page (scales, say). `tie`: where who launches the kernel compares a width."""

    body: Body
    pointer: str
    width: int
    others: tuple[int, ...]
    mark: Mark
    shown: str
    tie: Step | None


def kernel_rows(program: Program) -> Iterator[KernelRow]:
    """One for each pointer of a kernel whose rows are a literal apart."""
    for body in program.holding(_STRIDES, _LANGUAGE, kernels=True):
        found: dict[str, list[tuple[Product, Mark]]] = {}
        for root in body.roots:
            parts = summands(root.term)
            pointer = next((p for part in parts if (p := _pointer(part)) is not None), None)
            if pointer is None:
                continue
            for part in parts:
                if _strides_rows(part):
                    found.setdefault(pointer, []).append((part, root.place))
        for pointer, strides in found.items():
            literals = sorted({part.coefficient for part, _ in strides}, reverse=True)
            if literals[0] < NARROWEST:
                continue
            widest, mark = next(s for s in strides if s[0].coefficient == literals[0])
            yield KernelRow(
                body=body,
                pointer=pointer,
                width=literals[0],
                others=tuple(literals[1:]),
                mark=mark,
                shown=brief(widest.term, 60),
                tie=_tied_by_launch(program, body, literals),
            )


def _pointer(part: Product) -> str | None:
    """The parameter that is the address of cache memory."""
    match part.factors:
        case (Parameter(_, name) as only,) if not part.literals:
            known = set(words(name))
            if known & nouns().not_cache or not known & nouns().region:
                return None
            return name if is_address(only) or known & nouns().tensor else None
    return None


def _strides_rows(part: Product) -> bool:
    return part.coefficient > 1 and any(_numbers_row(f, part.coefficient) for f in part.factors)


def _numbers_row(factor: Term, literal: int) -> bool:
    """A row's number: loaded from a table, or a slot or a count of them by name; no lane of a
    tile, and nothing rounded to a multiple."""
    match factor:
        case Operation("//", _, Literal(divisor)) if divisor == literal:
            return False
    if factor.contains(lambda t: isinstance(t, Call) and t.name == "load"):
        return True
    if factor.contains(lambda t: isinstance(t, Call) and t.name in ("arange", "program_id")):
        return False
    return factor.contains(
        lambda t: isinstance(t, Parameter) and named(last_name(t)) in (Unit.SLOTS, Unit.TOKENS)
    )


def _tied_by_launch(program: Program, kernel: Body, literals: list[int]) -> Step | None:
    """A comparison with the width, or with all that a row takes, before the kernel is launched."""
    told = {literals[0], sum(literals)}
    for definition in program.mentioning(kernel.definition.short, after="["):
        body = program.body(definition)
        for guard in body.guards if body else ():
            if not guard.raises or body is None:
                continue
            for part in guard.condition.walk():
                match part:
                    case Operation("==", one, other):
                        if {one, other} & {Literal(value) for value in told}:
                            says = f"checks {brief(guard.condition, 80)}"
                            return Step(program.span(body, guard.place), says)
    return None
