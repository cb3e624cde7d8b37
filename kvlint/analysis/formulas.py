"""Whether the pools behind a list of regions count their slots by one formula.

A construction that lies far from the use is no guard: nothing keeps the two together.
But when it can be read it is said, so that nobody calls the finding false today.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kvlint.analysis.arithmetic import Apart, variables
from kvlint.analysis.bodies import Body
from kvlint.analysis.handed import Count, Providers
from kvlint.analysis.link import Program
from kvlint.analysis.outline import Definition
from kvlint.analysis.showing import show
from kvlint.analysis.sibling_checks import compared
from kvlint.analysis.terms import Call, Field, Item, Parameter, Term
from kvlint.analysis.vocabulary import apis
from kvlint.findings import Span, Step

MOST_PROVIDERS = 24
MOST_HEIRS = 8
POINTERS = re.compile(r"data_ptr\(\)")
RETURNS = re.compile(r"\breturn\b")
# An address that is appended, computed for each of something, or the last in brackets.
LISTED = re.compile(
    r"append\(\s*\(*\w[^\n]*data_ptr\(\)|data_ptr\(\)[^\]\n]*\]"
    r"|data_ptr\(\)(?:[^\n:]*\n){0,3}?[^\n:]*\bfor\b[^\n:]*$",
    re.M,
)


_Places = tuple[Span, Span]


@dataclass(frozen=True, eq=False, slots=True)
class Siblings:
    """Two buffers of one list whose slots are counted by different formulas; `usual` has the
    one that most buffers of the list have. `by`: the definition that hands them over, of the
    class `kind`; `checked`: where the two are compared."""

    by: Body
    odd: Count
    usual: Count
    apart: Apart
    kind: str | None = None
    checked: Step | None = None

    @property
    def size(self) -> int:
        """How much there is to read: of several cases the plainest is told."""
        return self.odd.formula.size + self.usual.formula.size

    @property
    def unresolved(self) -> tuple[str, ...]:
        """A count that is only given to whoever allocates, by whom nobody knows."""
        return tuple(
            f"who makes {count.whose} is not known, so {show(count.rows)} is not either"
            for count, other in ((self.odd, self.usual), (self.usual, self.odd))
            if isinstance(count.rows, Parameter)
            and count.rows.name not in variables(other.rows)
            and not count.made
        )


def siblings(program: Program) -> Iterator[Siblings]:
    """Each formula of a list of buffers that differs from the one most of them have."""
    providers = Providers(program)
    for body in program.holding(POINTERS, RETURNS, LISTED):
        plainest: dict[_Places, Siblings] = {}
        for kind in _kinds(program, body.definition):
            for handed in providers.handed(body.definition, kind):
                for found in _odd(body, kind, handed.counts):
                    known = plainest.setdefault((found.odd.at, found.usual.at), found)
                    if found.size < known.size:
                        plainest[found.odd.at, found.usual.at] = found
        for found in plainest.values():
            if (found.usual.at, found.odd.at) not in plainest or found.odd.at > found.usual.at:
                odd, usual = found.odd, found.usual
                checked = compared(providers, body.definition, found.kind, odd, usual)
                yield replace(found, checked=checked)


def _kinds(program: Program, definition: Definition) -> list[str | None]:
    """The classes whose objects run a method; None for a function."""
    if not definition.class_name:
        return [None]
    own = definition.owner
    heirs = [key for key in program.heirs(own) if _runs(program, definition, key)]
    return [own, *heirs[:MOST_HEIRS]]


def _runs(program: Program, definition: Definition, heir: str) -> bool:
    for key in program.family(heir):
        found = program.definition(f"{key}.{definition.short}")
        if found is not None:
            return found == definition
    return False


def _odd(by: Body, kind: str | None, counts: tuple[Count, ...]) -> Iterator[Siblings]:
    groups: list[list[Count]] = []
    for count in counts:
        alike = next((group for group in groups if group[0].apart(count) is None), None)
        if alike is None:
            groups.append([count])
        else:
            alike.append(count)
    if len(groups) > 1:
        most = max(groups, key=len)
        for group in groups:
            told = group[0].apart(most[0]) if group is not most else None
            if told is not None:
                yield Siblings(by, group[0], most[0], told, kind)


def one_formula(program: Program, regions: Term) -> str | None:
    """`in Pool every count is (size + page + 1) // page (pool.py:88)`, None otherwise.

    Said of the class that hands over most pools, when all of them can be read and use one
    formula, and no other class that can be read mixes formulas.
    """
    if not isinstance(regions, Field):
        return None
    providers = Providers(program)
    best: tuple[int, str, Count] | None = None
    for provider in _providers(program, regions.name):
        owner = provider.owner
        for handed in providers.handed(provider, owner):
            counts = handed.counts
            if not handed.whole or not counts:
                continue
            if any(counts[0].apart(one) for one in counts[1:]):
                return None
            if len(counts) > 1 and (best is None or len(counts) > best[0]):
                best = (len(counts), provider.class_name, counts[0])
    if best is None:
        return None
    _, whose, count = best
    at = f"{count.at.path.rpartition('/')[2]}:{count.at.line}"
    return f"in {whose} every count is {show(count.rows)} ({at})"


def _providers(program: Program, field: str) -> list[Definition]:
    """Methods whose result is stored in a field of this name."""
    names: set[str] = set()
    for _, store in program.stores(field):
        for part in store.value.walk():
            match part:
                case Item(Call(receiver=receiver) as call, _) if receiver is not None:
                    names.add(call.name)
    found: list[Definition] = []
    for name in sorted(names):
        if name in apis().keeps:
            continue
        keys = program.defined(name)
        found.extend(
            d for key in keys
            if (d := program.definition(key)) and d.class_name and not _is_test(d.path)
        )  # fmt: skip
    return found[:MOST_PROVIDERS]


def _is_test(path: str) -> bool:
    return bool({"test", "tests", "testing"} & set(path.split("/")[:-1]))
