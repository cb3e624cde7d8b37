"""Literal row widths in Triton kernels: rows of a cache that lie a literal number apart."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.bodies import Body, CallSite, Guard, Mark
from kvlint.analysis.guards import refusals, step_of
from kvlint.analysis.link import Program
from kvlint.analysis.quantities import Unit, named
from kvlint.analysis.roles import is_address
from kvlint.analysis.showing import brief
from kvlint.analysis.tensors import allocation
from kvlint.analysis.terms import Call, Literal, Mapping, Operation, Parameter, Term, last_name
from kvlint.analysis.ties import comparisons, is_width, measures
from kvlint.analysis.vocabulary import nouns, words
from kvlint.analysis.widths import NARROWEST, Product, summands, sums_in
from kvlint.findings import Step

_WIDTHS = re.compile(r"\* ?\d\d|\b[1-9]\d\d+\b")
_LANGUAGE = re.compile(r"\btl\.")
_CACHE = re.compile(r"cache|buf|pool|kv|page")


@dataclass(frozen=True, slots=True)
class KernelRow:
    """Rows behind `pointer` lie `width` apart; `others`: literals that place what is beside them
    in a page (scales, say). `tie`: where a width is compared, in the kernel or where it is
    launched."""

    body: Body
    pointer: str
    width: int
    others: tuple[int, ...]
    mark: Mark
    shown: str
    tie: Step | None


def kernel_rows(program: Program) -> Iterator[KernelRow]:
    """One for each pointer of a kernel whose rows are a literal apart."""
    for body in program.holding(_WIDTHS, _LANGUAGE, _CACHE, kernels=True):
        found: dict[str, list[Product]] = {}
        seen: set[Term] = set()
        for address in _addresses(body):
            for total in sums_in(address, seen):
                parts = summands(total)
                pointer = next((p for part in parts if (p := _pointer(part)) is not None), None)
                if pointer is not None:
                    found.setdefault(pointer, []).extend(filter(_strides_rows, parts))
        for pointer, strides in found.items():
            literals = sorted({part.coefficient for part in strides}, reverse=True)
            if not literals or literals[0] < NARROWEST or literals[0] & (literals[0] - 1) == 0:
                continue  # a power of two is a tile's or a page's as often as a row's
            widest = [part for part in strides if part.coefficient == literals[0]]
            places = [place[0] for part in widest if (place := body.place_of(part.term))]
            if not places:
                continue
            told = {literals[0], sum(literals), *(literals[0] + n for n in literals[1:])}
            yield KernelRow(
                body=body,
                pointer=pointer,
                width=literals[0],
                others=tuple(literals[1:]),
                mark=min(places),
                shown=brief(widest[0].term, 60),
                tie=_tied_by_launch(program, body, told),
            )


def _addresses(body: Body) -> Iterator[Term]:
    """What a kernel loads from or stores to, and values that it works out, the last one first:
    what an address grows to tells of what it grew from."""
    for site in reversed(body.calls):
        if site.call.name in ("load", "store") and site.call.arguments:
            yield site.call.arguments[0]
    for root in reversed(body.roots):
        yield root.term


def _pointer(part: Product) -> str | None:
    """The parameter that is the address of cache memory."""
    match part.factors:
        case (Parameter(_, name) as only,) if not part.literals:
            known = set(words(name))
            if known & (nouns().not_cache | nouns().table) or not known & nouns().region:
                return None
            return name if is_address(only) or known & nouns().tensor else None
    return None


def _strides_rows(part: Product) -> bool:
    """Whether a literal is all that a row's number is multiplied with."""
    literal = part.coefficient
    return literal > 1 and all(_numbers_row(factor, literal) for factor in part.factors)


def _numbers_row(factor: Term, literal: int) -> bool:
    """A row's number: loaded from a table, what is left of one in its page, or a slot or a count
    of them by name; no lane of a tile, and nothing rounded to a multiple."""
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


def _tied_by_launch(program: Program, kernel: Body, told: set[int]) -> Step | None:
    """Where one of these widths is compared with something's shape or stride before the kernel
    is launched, or is how what it is handed is made or viewed."""
    name = kernel.definition.short
    for definition in program.mentioning(name, after="[") or program.mentioning(name):
        body = program.body(definition)
        if body is None:
            continue
        for inner, guard, condition in _refused(program, body):
            for _, left, right in comparisons(condition):
                if is_width(left, right, told, body) or is_width(right, left, told, body):
                    return step_of(program, inner, guard)
        for site in body.calls:
            if _chooses(site.call, told):
                return Step(program.span(body, site.place), "chooses a kernel by the width")
            if _makes(site, body, told):
                return Step(program.span(body, site.place), "makes rows of this width")
    return None


def _refused(program: Program, body: Body) -> Iterator[tuple[Body, Guard, Term]]:
    for guard in body.guards:
        if guard.raises:
            yield body, guard, guard.condition
    for site in body.calls:
        yield from refusals(program, site.call, body)


def _chooses(call: Call, told: set[int]) -> bool:
    """`{576: one, 656: other}.get(x.shape[-1])`."""
    match call:
        case Call(callee="get", receiver=Mapping(keys, _), arguments=(asked, *_)):
            known = {key.value for key in keys if isinstance(key, Literal)}
            return asked.contains(measures) and not known.isdisjoint(told)
    return False


def _makes(site: CallSite, body: Body, told: set[int]) -> bool:
    made = allocation(site.call, body)
    shape = made.shape if made is not None else ()
    if site.call.name == "view" and len(site.call.arguments) > 1:
        shape = site.call.arguments
    return bool(shape) and isinstance(shape[-1], Literal) and shape[-1].value in told
