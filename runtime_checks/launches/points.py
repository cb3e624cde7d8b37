"""One program, one lane and one round of each loop in which something is so: the proof of it.

A range says what may be. Here the kernel's arithmetic is done for one point with its own widths,
so what is found is what the launch would do.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

from kvlint.runtime_checks.launches.bounds import Bounds, Range, Values, conditions_of, narrowing
from kvlint.runtime_checks.launches.terms import Term, apply, wrapped

TRIES: Final = 400
# A search that took more is not worth repeating.
FEW: Final = 64


@dataclass(frozen=True, slots=True)
class Point:
    """Values of the variables, and of the terms there: as the kernel has them, and as they were
    if integers had no end."""

    variables: Mapping[object, int]
    found: Mapping[int, int | None]
    endless: Mapping[int, int | None]


class Search:
    """For a point of an access."""

    def __init__(self, roots: Sequence[Term], conditions: Sequence[Term]) -> None:
        self._bounds = Bounds([*roots, *conditions])
        self._conditions = tuple(conditions)
        self._narrowing = conditions_of(conditions)
        self._variables = [term for term in self._bounds.tape if term.op == "variable"]

    def find(
        self,
        values: Values,
        of: Term,
        upwards: bool,
        beyond: int,
        wanted: Callable[[Point], bool],
    ) -> tuple[Point | None, bool]:
        """The first point that is wanted, of those where the conditions hold and the term is
        greater than `beyond`, or, downwards, less; and whether that was said soon enough for the
        next time. None where there is none, and where too many would have to be tried."""
        order = count()
        whole: dict[int, Range] = {}
        left = [(0, next(order), whole)]
        for tried in range(TRIES):
            if not left:
                return None, tried <= FEW
            _, _, box = heapq.heappop(left)
            found = self._bounds.of(values, box)
            narrowed = narrowing(self._narrowing, found)
            if narrowed is None:
                continue
            if narrowed:
                found = self._bounds.of(values, box, narrowed)
            reach = found[of.number]
            if reach is None or (reach[1] <= beyond if upwards else reach[0] >= beyond):
                continue
            ranges = {term: range_ for term in self._variables if (range_ := found[term.number])}
            if len(ranges) < len(self._variables):
                continue
            if any(low > high for low, high in ranges.values()):
                continue
            for end in (1, 0):
                point = self.at(values, {t.number: r[end] for t, r in ranges.items()})
                if point is not None and wanted(point):
                    return point, True
            widest = max(ranges, key=lambda t: ranges[t][1] - ranges[t][0], default=None)
            if widest is None or ranges[widest][0] == ranges[widest][1]:
                continue
            low, high = ranges[widest]
            middle = (low + high) // 2
            for part in ((low, middle), (middle + 1, high)):
                rank = -reach[1] if upwards else reach[0]
                after = {t.number: r for t, r in ranges.items()} | {widest.number: part}
                # Of equals the upper half first, where most of a grid's ends are.
                heapq.heappush(left, (rank, -next(order), after))
        return None, False

    def at(self, values: Values, variables: Mapping[int, int]) -> Point | None:
        """What is so there; None where there is no such point, or a condition does not hold or
        is not known."""
        found: dict[int, int | None] = {}
        endless: dict[int, int | None] = {}
        for term in self._bounds.tape:
            if term.op == "variable":
                value: int | None = variables.get(term.number)
                count = found[term.operands[0].number]
                if value is None or count is None or not 0 <= value < count:
                    return None
                found[term.number] = endless[term.number] = value
                continue
            found[term.number] = _value(term, found, values, narrow=True)
            endless[term.number] = _value(term, endless, values, narrow=False)
        if not all(found[condition.number] for condition in self._conditions):
            return None
        names = {t.value: variables[t.number] for t in self._variables}
        return Point(names, found, endless)


def _value(
    term: Term, found: Mapping[int, int | None], values: Values, *, narrow: bool
) -> int | None:
    match term.op:
        case "number":
            return int(term.value)
        case "argument":
            return values.arguments.get(str(term.value))
        case "size":
            return values.grid[term.value]
        case "loaded" | "unknown":
            return None
        case "where":
            test, one, other = (found[operand.number] for operand in term.operands)
            return None if test is None else one if test else other
    operands = [found[operand.number] for operand in term.operands]
    if any(operand is None for operand in operands):
        return None
    result = apply(term.op, operands, floor=term.kind == "")  # type: ignore[arg-type]
    if result is None:
        return None
    return wrapped(result, term.kind) if narrow or term.op in ("cast", "not") else result
