"""Code terms as geometry: which expression over regions is a slot count?"""

from dataclasses import dataclass, replace

from kvlint.analysis.entries import entries
from kvlint.analysis.evidence import beside_addresses
from kvlint.analysis.formulas import one_formula
from kvlint.analysis.link import Program
from kvlint.analysis.origins import Origin, Origins
from kvlint.analysis.roles import Strength, list_quantity, region_list
from kvlint.analysis.showing import brief
from kvlint.analysis.terms import (
    Arange,
    Choice,
    Each,
    Field,
    Fold,
    Index,
    Item,
    Literal,
    Many,
    Operation,
    Parameter,
    Sequence,
    Term,
    free,
    last_name,
)
from kvlint.assumptions import Entry, Expression, Least, Most, Number, Own, Unknown
from kvlint.findings import Step


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a count is over the regions; `unresolved`: why it is only a name."""

    expression: Expression
    origin: Origin
    unresolved: str | None = None

    @property
    def text(self) -> str:
        return brief(self.origin.term, 90)


SLOTS = "slots"


def meaning(origin: Origin, program: Program) -> Meaning | None:
    """None for what is no count: None, 0, the empty case of a guard."""
    term, body = origin.term, origin.body
    match term:
        case Literal(None) | Literal(0):
            return None
        case Literal(int(value)) if not isinstance(value, bool):
            return Meaning(Number(value), origin)
        case Fold("min" | "max" as kind, of) if _over_regions(of, origin):
            return Meaning(Least(SLOTS) if kind == "min" else Most(SLOTS), origin)
    found = entries(term, body)
    if found and all(
        e.strength is Strength.STRONG
        or beside_addresses(program, body.definition.path, last_name(e.item.of))
        for e in found
    ):
        return Meaning(Entry(SLOTS, found[0].number), origin)
    if varies(term, origin):
        return Meaning(Own(SLOTS), origin)
    return Meaning(Unknown(last_name(term) or "c"), origin, _why(origin))


def _over_regions(of: Term, origin: Origin) -> bool:
    match of:
        case Many(_, _, _, when) if when is not None:
            return False  # of some of them
        case Many(element, over, loop):
            if isinstance(over, Arange):
                return element.contains(lambda t: isinstance(t, Each) and t.loop == loop)
            return element.contains(
                lambda t: (
                    isinstance(t, Each | Index)
                    and t.loop == loop
                    and (
                        isinstance(t, Index) or region_list(t.of, origin.body) is not Strength.NONE
                    )
                )
            )
        case Operation("//", left, right):
            return all(region_list(x, origin.body) for x in (left, right))
        case Sequence():
            return False
    return bool(region_list(of, origin.body)) and list_quantity(last_name(of)) == "slots"


def varies(term: Term, origin: Origin) -> bool:
    """Whether a count differs from region to region of the list it is used for."""
    return any(
        isinstance(part, Each) and region_list(part.of, origin.body) is not Strength.NONE
        for part in free(term)
    ) or term.contains(lambda t: isinstance(t, Item) and isinstance(t.key, Index))


def _why(origin: Origin) -> str:
    match origin.term:
        case Parameter(_, name):
            return f"no caller of {origin.body.definition.short} is known, so {name} is not either"
        case Field(_, name):
            return f"no statement is known that sets {name}"
        case Choice():
            return "it depends on a test that is not followed"
    return f"{brief(origin.term, 60)} is not followed"


def meanings(origins: Origins, origin: Origin) -> list[Meaning]:
    """All that a count can be, worst case first: another region's, unknown, the least."""
    found: list[Meaning] = []
    for one in origins.of(origin.term, origin.body, origin.frame):
        match one.term:
            case Operation("*", left, right):
                # A count times what is the same for all regions (tokens a page, say).
                sides = [meanings(origins, replace(one, term=side)) for side in (left, right)]
                known = [m for side in sides for m in side if not _is_plain(m)]
                found.extend(known or [m for side in sides[:1] for m in side])
                continue
        said = meaning(one, origins.program)
        if said is not None:
            found.append(said)
    told = {text for m in found if m.origin.wire for text, taken in m.origin.facts if taken}
    found = [_unless_told(m, told) for m in found]
    return sorted(found, key=_worst_first)


def _worst_first(said: Meaning) -> tuple[bool, int]:
    hidden = said.unresolved is not None and not _is_plain(said)
    return hidden, _RANK.index(type(said.expression))


def _unless_told(said: Meaning, told: set[str]) -> Meaning:
    """A count that stands in only for a peer that does not tell its own."""
    if not said.origin.wire and any(t in told and not taken for t, taken in said.origin.facts):
        return replace(said, unresolved="only for a peer that does not tell its own count")
    return said


def _is_plain(said: Meaning) -> bool:
    return isinstance(said.expression, Unknown | Number)


_RANK = [Entry, Most, Unknown, Number, Own, Least]


def holds_today(program: Program, said: Meaning) -> str | None:
    """Where one region stands for all: the formula by which all pools agree today."""
    if not isinstance(said.expression, Entry):
        return None
    found = entries(said.origin.term, said.origin.body)
    return one_formula(program, found[0].item.of) if found else None


def trace(origin: Origin) -> tuple[Step, ...]:
    return origin.steps[-6:]
