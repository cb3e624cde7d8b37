"""The facts of one definition, as lowering leaves them. No libcst in here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kvlint.analysis.outline import Definition
from kvlint.analysis.terms import Call, Term

Place = tuple[int, int, int, int]  # line, column, end line, end column; all from 1
# Copies are made by calling the class where there are many: field by field takes ten times as long.

Mark = int  # a node of the definition's tree; `Body.at` tells its place


@dataclass(frozen=True, slots=True)
class Where:
    """Where in the control flow a fact stands.

    `block`: ids of the enclosing blocks, outermost first; `order`: running number of
    the statement; `loops`: ids of the enclosing loops, outermost first.
    """

    block: tuple[int, ...]
    order: int
    loops: tuple[int, ...]

    def dominates(self, other: "Where") -> bool:
        """Whether each run that comes to `other` came through here before."""
        return other.block[: len(self.block)] == self.block and self.order < other.order

    def __reduce__(self) -> tuple[Any, ...]:
        return Where, (self.block, self.order, self.loops)


@dataclass(frozen=True, slots=True)
class Loop:
    id: int
    over: Term
    place: Mark


@dataclass(frozen=True, slots=True)
class Root:
    """A value that the code computes: assigned, passed, returned, appended."""

    term: Term
    place: Mark
    where: Where

    def __reduce__(self) -> tuple[Any, ...]:
        return Root, (self.term, self.place, self.where)


@dataclass(frozen=True, slots=True)
class CallSite:
    call: Call
    place: Mark
    where: Where

    def __reduce__(self) -> tuple[Any, ...]:
        return CallSite, (self.call, self.place, self.where)


@dataclass(frozen=True, slots=True)
class Store:
    """`of.name = value`, `of.name[key] = value` or `of.name.append(value)`."""

    of: Term
    name: str
    key: Term | None
    value: Term
    place: Mark
    where: Where
    appended: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (
            self.of, self.name, self.key, self.value, self.place, self.where, self.appended
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Guard:
    """`condition` holds wherever `where` dominates; it stands at `place`.

    `turn`: it only ends the turn of a loop, so other turns go on without it.
    """

    condition: Term
    place: Mark
    where: Where
    raises: bool
    turn: bool = False


@dataclass(slots=True)
class Body:
    definition: Definition
    loops: dict[int, Loop] = field(default_factory=dict)
    roots: list[Root] = field(default_factory=list)
    calls: list[CallSite] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    returns: list[Root] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    running: dict[tuple[str, int], list[Term]] = field(default_factory=dict)
    names: dict[Term, str] = field(default_factory=dict)  # the local a value was first given to
    # That local and where it was given it, numbers included.
    assigned: dict[Term, tuple[str, Mark]] = field(default_factory=dict)
    spans: dict[Term, list[tuple[Mark, Where]]] = field(default_factory=dict)

    # Where a value was only looked at; what is used elsewhere is reported there.
    tested: dict[Term, list[tuple[Mark, Where]]] = field(default_factory=dict)
    places: Callable[[], Mapping[Mark, Place]] = dict
    entries: dict[Term, tuple[object, ...]] = field(default_factory=dict)  # memo of `roles`
    quantities: dict[Term, object] = field(default_factory=dict)  # memo of `quantities`
    _known: Mapping[Mark, Place] | None = None

    def at(self, mark: Mark) -> Place:
        """Where a node was written; places are worked out when one is first asked for."""
        if self._known is None:
            self._known = self.places()
        line = self.definition.first_line
        return self._known.get(mark, (line, 1, line, 1))

    def place_of(self, term: Term) -> tuple[Mark, Where] | None:
        """The first place where `term` itself was written or first computed."""
        written = self.spans.get(term) or self.tested.get(term)
        if written:
            return written[0]
        for root in self.roots:
            if root.term.contains(term):
                return root.place, root.where
        return None
