"""Element sizes of one dtype for tensors that have their own: told by a configuration, say."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.bodies import Body, Mark
from kvlint.analysis.link import Program
from kvlint.analysis.quantities import Unit, is_dtype, is_told
from kvlint.analysis.roles import Strength, region_list
from kvlint.analysis.showing import brief
from kvlint.analysis.terms import Call, Field, Parameter, Term, last_name
from kvlint.analysis.vocabulary import words
from kvlint.findings import Step

_SIZE = re.compile(r"itemsize|element_size|dtype_size")
_REGISTERS = re.compile(r"register")


@dataclass(frozen=True, slots=True)
class Borrowed:
    """The size of a dtype that is handed over with tensors it is not taken from.

    `tie`: where the tensors' dtype is compared with another.
    """

    body: Body
    mark: Mark
    size: str
    tensors: str
    call: str
    tie: Step | None


def borrowed_sizes(program: Program) -> Iterator[Borrowed]:
    """Registrations of tensors, by what no project file defines, that are told the size of an
    element from elsewhere."""
    for body in program.holding(_SIZE, _REGISTERS):
        for site in body.calls:
            call = site.call
            if "register" not in words(call.name) or _is_own(program, call, body):
                continue
            values = list(call.values())
            regions = [v for v in values if region_list(v, body) is Strength.STRONG]
            sizes = [
                v
                for v in values
                if is_told(v, body, Unit.ELEMENT_SIZE) and not any(_share(v, r) for r in regions)
            ]
            if regions and sizes:
                yield Borrowed(
                    body=body,
                    mark=site.place,
                    size=brief(sizes[0], 60),
                    tensors=_named(regions[0], body),
                    call=call.name,
                    tie=_compared(program, body),
                )


def _named(regions: Term, body: Body) -> str:
    lists = (p for p in regions.walk() if last_name(p) and region_list(p, body))
    return next(map(last_name, lists), brief(regions, 40))


def _is_own(program: Program, call: Call, body: Body) -> bool:
    """Whether a project file defines what is called: by name, something that takes as much."""
    found, by_name = program.callees(call, body)
    given = len(call.arguments) + len(call.keywords)
    return any(not by_name or given < len(d.parameters) for d in found)


def _share(size: Term, regions: Term) -> bool:
    """Whether the size is taken from one of the regions."""
    return any(size.contains(p) for p in regions.walk() if isinstance(p, Parameter | Field))


def _compared(program: Program, body: Body) -> Step | None:
    """Where a dtype is refused that is not the one expected."""
    for guard in body.guards:
        if guard.raises and guard.condition.contains(is_dtype):
            says = f"checks {brief(guard.condition, 80)}"
            return Step(program.span(body, guard.place), says)
    return None
