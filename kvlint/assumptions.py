"""One language for what code assumes about geometry, and one procedure that decides it.

An assumption is data: a `Relation` between two expressions, meant for every region i of one
list. Formula (`str`), verdict on a real list (`holds`, `breaks_on`), counterexample and
discharge (`refute`) all come from it.

Quantities are words: those of `geometry.MEASURED`, which can be read off real regions, and
any other, which is then a free quantity of each region.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import accumulate
from operator import eq, floordiv, le, mul
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from kvlint.geometry import Case, Column, Region, small_cases

MOST_REGIONS: Final = 4
MOST_VALUE: Final = 4

_DEEPEST: Final = 32
_LONGEST: Final = 64
_NONE: Final[Mapping[str, int]] = MappingProxyType({})


class AssumptionError(ValueError):
    """An assumption that cannot be read, or not be decided on this list: one line, why."""


class _Formula:
    __slots__ = ()

    def __str__(self) -> str:
        return _words(self, "i")  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Own(_Formula):
    """The region's own quantity."""

    quantity: str


@dataclass(frozen=True, slots=True)
class Entry(_Formula):
    """The quantity of region k, for all regions; k = -1 is the last region."""

    quantity: str
    k: int


@dataclass(frozen=True, slots=True)
class Least(_Formula):
    """The least quantity of any region."""

    quantity: str


@dataclass(frozen=True, slots=True)
class Most(_Formula):
    """The greatest quantity of any region."""

    quantity: str


@dataclass(frozen=True, slots=True)
class Starts(_Formula):
    """The sum of `count` over the regions before i: cumulative starts of Own("slots"),
    i x S0 of Entry("slots", 0), i itself of Number(1)."""

    count: "Expression"


@dataclass(frozen=True, slots=True)
class Number(_Formula):
    """A literal."""

    value: int


@dataclass(frozen=True, slots=True)
class Unknown(_Formula):
    """A value, one for all regions, of which only the name is known."""

    name: str


@dataclass(frozen=True, slots=True)
class Product(_Formula):
    """left x right."""

    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Quotient(_Formula):
    """left / right, rounded down."""

    left: "Expression"
    right: "Expression"


Expression = Own | Entry | Least | Most | Starts | Number | Unknown | Product | Quotient
Operator = Literal["=", "<=", "divides"]

Search = Callable[[Case], tuple[Column, Column] | None]

_KINDS: Final = MappingProxyType({kind.__name__.lower(): kind for kind in get_args(Expression)})
_TESTS: Final[Mapping[str, Callable[[int, int], bool]]] = MappingProxyType(
    {
        "=": eq,
        "<=": le,
        "divides": lambda left, right: right % left == 0 if left else right == 0,
    }
)


@dataclass(frozen=True, slots=True)
class Relation:
    """`left operator right`, for every region i of a list."""

    left: Expression
    operator: Operator
    right: Expression

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe: an expression is {kind: part} or {kind: [part, part]}, as in
        {"left": {"own": "slots"}, "operator": "=", "right": {"entry": ["slots", 0]}}."""
        return {"left": _form(self.left), "operator": self.operator, "right": _form(self.right)}

    @classmethod
    def from_dict(cls, form: object) -> "Relation":
        """Inverts `to_dict`. Raises `AssumptionError` for what that does not write."""
        if not isinstance(form, dict) or form.keys() != {"left", "operator", "right"}:
            raise AssumptionError("a relation has exactly the fields left, operator and right")
        if form["operator"] not in get_args(Operator):
            raise AssumptionError(f"the operator is none of {', '.join(_TESTS)}")
        left, right = _expression(form["left"]), _expression(form["right"])
        # Of longer ones values can be numbers that nobody can print.
        if sum(1 for side in (left, right) for _ in nodes(side)) > _LONGEST:
            raise AssumptionError(f"a relation has more than {_LONGEST} parts")
        return cls(left, form["operator"], right)


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A list of regions, and the first region of it for which `relation` breaks.

    Quantities other than slots and unknown names are those that were looked at, by name.
    `left` and `right` are the values of the relation's sides.
    """

    relation: Relation
    slots: Column
    quantities: tuple[tuple[str, Column], ...]
    unknowns: tuple[tuple[str, int], ...]
    region: int
    left: int
    right: int

    def __str__(self) -> str:
        regions = "1 region" if len(self.slots) == 1 else f"{len(self.slots)} regions"
        named = [f"{name} {_series(column)}" for name, column in self.quantities]
        named += [f"{name} {value}" for name, value in self.unknowns]
        return (
            f"{regions} of {_series(self.slots)} {'slot' if self.slots == (1,) else 'slots'}"
            f"{' (' + '; '.join(named) + ')' if named else ''}: "
            f"region {self.region}: {self._sides()}"
        )

    def _sides(self) -> str:
        values = ((self.relation.left, self.left), (self.relation.right, self.right))
        sides = [(_words(side, str(self.region)), value) for side, value in values]
        named = [f"{words} is {value}" for words, value in sides if words != str(value)]
        bare = [f"against {value}" for words, value in sides if words == str(value)]
        return ", ".join((*named, *bare))

    @property
    def case(self) -> Case:
        """The list, to decide other relations on it."""
        columns = {"slots": self.slots, **dict(self.quantities)}
        return Case(len(self.slots), columns, dict(self.unknowns))

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe, the relation left out: it is the assumption's."""
        return {
            "slots": list(self.slots),
            "quantities": {name: list(column) for name, column in self.quantities},
            "unknowns": dict(self.unknowns),
            "region": self.region,
            "left": self.left,
            "right": self.right,
        }


def refute(relation: Relation, guards: Sequence[Relation] = ()) -> Counterexample | None:
    """The smallest geometry that meets the guards and breaks the relation, if there is one.

    Tried are lists of 1 to 4 regions, fewest first, each as `geometry.small_cases` orders and
    bounds them. Slots, other quantities and unknown names, where relation or guards mention
    them, run over 1 to 4, and over n and n + 1 for each constant n >= 4, so that a bound can
    be passed.

    A list is skipped where an expression is undefined (no region k, division by 0): code
    fails there by itself. Guards that no list meets settle everything.
    """
    return _refute(relation, tuple(guards))


def breaks_on(
    relation: Relation, regions: Sequence[Region] | Case, unknowns: Mapping[str, int] = _NONE
) -> Counterexample | None:
    """Where the relation breaks on one given list. Raises `AssumptionError` where that cannot
    be decided: no region at all, a quantity not captured, an unknown without a value, a
    region k that the list has not, a division by 0."""
    case, lefts, rights = _sides(relation, regions, unknowns)
    held = all(map(_TESTS[relation.operator], lefts, rights))
    return None if held else _counterexample(relation, case, lefts, rights)


def breaks_at(
    relation: Relation, regions: Sequence[Region] | Case, unknowns: Mapping[str, int] = _NONE
) -> Mapping[int, tuple[int, int]]:
    """Every region of one given list for which the relation breaks, with the values of its sides;
    raises as `breaks_on`."""
    _, lefts, rights = _sides(relation, regions, unknowns)
    held = map(_TESTS[relation.operator], lefts, rights)
    return {i: (lefts[i], rights[i]) for i, right in enumerate(held) if not right}


def _sides(
    relation: Relation, regions: Sequence[Region] | Case, unknowns: Mapping[str, int]
) -> tuple[Case, Column, Column]:
    """The list as a case, and the values of both sides for each of its regions."""
    case = regions
    if not isinstance(case, Case):
        quantities, names, _ = _mentions(relation)
        given = {name: value for name, value in unknowns.items() if name in names}
        case = Case.of(case, quantities, given)
    if not case.count:
        raise AssumptionError(f"{relation}: the list has no region")
    try:
        return case, _evaluator(relation.left)(case), _evaluator(relation.right)(case)
    except KeyError as error:
        raise AssumptionError(f"{relation}: nothing says what {error} is here") from None
    except IndexError:
        raise AssumptionError(f"{relation}: the list has only {case.count} regions") from None
    except ZeroDivisionError:
        raise AssumptionError(f"{relation}: divides by 0 on this list") from None


def values(expression: Expression, regions: Sequence[Region]) -> Column:
    """One number a region of one given list; raises as `breaks_on`."""
    return _sides(Relation(expression, "=", expression), regions, _NONE)[1]


def holds(
    relation: Relation, regions: Sequence[Region] | Case, unknowns: Mapping[str, int] = _NONE
) -> bool:
    """Whether the relation holds for every region of one given list; raises as `breaks_on`."""
    return breaks_on(relation, regions, unknowns) is None


def _evaluator(expression: Expression) -> Callable[[Case], Column]:
    """What computes one number a region. It raises LookupError or ZeroDivisionError where
    the expression is undefined."""
    match expression:
        case Own(quantity):
            return lambda case: case.columns[quantity]
        case Entry(quantity, k):
            return lambda case: (case.columns[quantity][k],) * case.count
        case Least(quantity):
            return lambda case: (min(case.columns[quantity]),) * case.count
        case Most(quantity):
            return lambda case: (max(case.columns[quantity]),) * case.count
        case Number(value):
            return lambda case: (value,) * case.count
        case Unknown(name):
            return lambda case: (case.unknowns[name],) * case.count
        case Starts(count):
            each = _evaluator(count)
            return lambda case: tuple(accumulate(each(case)[:-1], initial=0))
        case Product(left, right) | Quotient(left, right):
            first, second = _evaluator(left), _evaluator(right)
            combine = mul if isinstance(expression, Product) else floordiv
            return lambda case: tuple(map(combine, first(case), second(case)))


def _search(relation: Relation) -> Search:
    """What gives the values of both sides for a case where the relation breaks."""
    left, right = _evaluator(relation.left), _evaluator(relation.right)
    test = _TESTS[relation.operator]

    def search(case: Case) -> tuple[Column, Column] | None:
        lefts, rights = left(case), right(case)
        # Every operator is reflexive, and comparing tuples is the fastest test there is.
        held = lefts == rights or all(map(test, lefts, rights))
        return None if held else (lefts, rights)

    return search


def _counterexample(
    relation: Relation, case: Case, lefts: Column, rights: Column
) -> Counterexample:
    region = list(map(_TESTS[relation.operator], lefts, rights)).index(False)
    others = sorted(item for item in case.columns.items() if item[0] != "slots")
    unknowns = tuple(sorted(case.unknowns.items()))
    return Counterexample(
        relation=relation,
        slots=case.columns["slots"],
        quantities=tuple(others),
        unknowns=unknowns,
        region=region,
        left=lefts[region],
        right=rights[region],
    )


@lru_cache(maxsize=1024)
def _refute(relation: Relation, guards: tuple[Relation, ...]) -> Counterexample | None:
    quantities, unknowns, constants = _mentions(relation, *guards)
    bounds = {n + more for n in constants if n >= MOST_VALUE for more in (0, 1)}
    values = tuple(sorted({*range(1, MOST_VALUE + 1), *bounds}))
    domains = {name: _allowed(name, values, guards) for name in sorted(quantities)}
    if "region length" in domains:
        domains["region length"] = values
    names = tuple((name, values) for name in sorted(unknowns))
    search, guarding = _search(relation), [_search(guard) for guard in guards]
    for count in range(1, MOST_REGIONS + 1):
        for case in small_cases(count, tuple(domains.items()), names):
            try:
                if not any(guard(case) for guard in guarding) and (broken := search(case)):
                    return _counterexample(relation, case, *broken)
            except (IndexError, ZeroDivisionError):
                continue
    return None


def _allowed(quantity: str, values: Column, guards: Sequence[Relation]) -> Column:
    """What the guards leave that speak of the region's own quantity and of nothing else.

    Without it, `item length = 576` would leave a bounded space with hardly a list to try.
    """
    for guard in guards:
        kinds = {type(node) for side in (guard.left, guard.right) for node in nodes(side)}
        if kinds <= {Own, Number, Product} and _mentions(guard)[0] == {quantity}:
            breaks = _search(guard)
            values = tuple(v for v in values if not breaks(Case(1, {quantity: (v,)}, {})))
    return values


def _mentions(*relations: Relation) -> tuple[set[str], set[str], set[int]]:
    """Quantities, unknown names, and the values of what is constant."""
    sides = {side for each in relations for side in (each.left, each.right)}
    found = {node for side in sides for node in nodes(side)}
    return (
        {node.quantity for node in found if isinstance(node, Own | Entry | Least | Most)},
        {node.name for node in found if isinstance(node, Unknown)},
        {value for node in found if (value := _constant(node)) is not None},
    )


def _constant(expression: Expression) -> int | None:
    try:
        return _evaluator(expression)(Case(1, {}, {}))[0]
    except (LookupError, ZeroDivisionError):
        return None


def nodes(expression: Expression) -> Iterator[Expression]:
    """The expression and all that it is made of."""
    yield expression
    for part in fields(expression):
        if isinstance(child := getattr(expression, part.name), Expression):
            yield from nodes(child)


def _words(expression: Expression, i: str) -> str:
    """In words; `i` is the letter or the number of the region that is spoken of."""
    return _text(expression, i).replace("region length of", "length of")


def _text(expression: Expression, i: str) -> str:
    match expression:
        case Own(quantity):
            return f"{quantity} of region {i}"
        case Entry(quantity, k):
            return f"{quantity} of {'the last region' if k == -1 else f'region {k}'}"
        case Least(quantity):
            return f"least {quantity} of any region"
        case Most(quantity):
            return f"greatest {quantity} of any region"
        case Number(name) | Unknown(name):
            return str(name)
        case Product(left, right):
            return f"{_operand(left, i)} * {_operand(right, i)}"
        case Quotient(left, right):
            return f"{_operand(left, i)} // {_operand(right, i)}"
        case Starts(Own("slots")):
            return f"descriptors before region {i}"
        case Starts(Entry("slots", k)) if k >= 0:
            return f"{i} * S{k}"
        case Starts(Number(1)):
            return i
        case Starts(count) if any(isinstance(node, Own | Starts) for node in nodes(count)):
            j = "j" if i.isdecimal() else chr(ord(i) + 1)
            return f"sum of {_operand(count, j)} over {j} < {i}"
        case Starts(count):
            return f"{i} * {_operand(count, i)}"


def _operand(expression: Expression, i: str) -> str:
    text = _text(expression, i)
    return f"({text})" if " " in text else text


def _series(column: Sequence[int]) -> str:
    return ", ".join(map(str, column[:8])) + (", ..." if len(column) > 8 else "")


def _form(expression: Expression) -> dict[str, Any]:
    values = [getattr(expression, part.name) for part in fields(expression)]
    parts = [_form(value) if isinstance(value, Expression) else value for value in values]
    return {type(expression).__name__.lower(): parts if len(parts) > 1 else parts[0]}


def _expression(form: object, depth: int = 0) -> Expression:
    if depth > _DEEPEST:
        raise AssumptionError(f"an expression nests deeper than {_DEEPEST}")
    if not isinstance(form, dict) or len(form) != 1 or not form.keys() <= _KINDS.keys():
        raise AssumptionError(f"an expression has one field, one of {', '.join(_KINDS)}")
    ((kind, content),) = form.items()
    types = [part.type for part in fields(_KINDS[kind])]
    parts = [content] if len(types) == 1 else content
    if not isinstance(parts, list) or len(parts) != len(types):
        raise AssumptionError(f"{kind} takes a list of {len(types)}")
    for number, wanted in enumerate(types):
        if wanted not in (int, str):
            parts = [*parts[:number], _expression(parts[number], depth + 1), *parts[number + 1 :]]
        elif type(parts[number]) is not wanted:
            raise AssumptionError(f"{kind} has a part of the wrong type")
        elif wanted is int and abs(parts[number]) >= 1 << 64:
            raise AssumptionError(f"{kind} has a number that does not fit 64 bits")
    built: Expression = _KINDS[kind](*parts)
    return built
