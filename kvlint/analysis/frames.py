"""Values seen from one object: which class it is, what made it, what its fields are given.

A `Frame` is a body on its way of being run: on which object, with which arguments. What a value
in a frame can be comes as consistent cases, each with the tests that were chosen on the way.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from kvlint.analysis.bodies import Body, Where
from kvlint.analysis.showing import show
from kvlint.analysis.terms import Not, Term

MOST_CASES = 16
DEEPEST = 16

_T = TypeVar("_T")

Facts = frozenset[tuple[str, bool]]
Cases = list[tuple[Facts, _T]]
NO_FACTS: Facts = frozenset()


@dataclass(frozen=True, eq=False, slots=True)
class Frame:
    """`body`, run on `this` (None: a function, or an object nobody knows) with `bound`."""

    body: Body
    this: "Object | None" = None
    bound: "dict[str, Value]" = field(default_factory=dict)

    @property
    def key(self) -> tuple[Hashable, ...]:
        """The same for frames in which a value comes to the same."""
        bound = ((name, v.term, v.frame.body.definition.key) for name, v in self.bound.items())
        return (
            self.body.definition.key,
            self.this.key if self.this else None,
            *sorted(bound, key=lambda one: one[0]),
        )


@dataclass(frozen=True, eq=False, slots=True)
class Object:
    """An object of the class `kind` (`path::Class`), and the call that made it, if known."""

    kind: str
    made: "Value | None" = None

    @property
    def key(self) -> tuple[Hashable, ...]:
        made = self.made
        return (self.kind, made.term, made.frame.body.definition.key) if made else (self.kind,)

    @property
    def short(self) -> str:
        return self.kind.partition("::")[2].rpartition(".")[2]


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    term: Term
    frame: Frame


@dataclass(frozen=True, eq=False, slots=True)
class Put:
    """What a field is given: a value for all of it (`whole`), for its entry `key`, or, without
    a key, one more entry. `facts` hold where it is given."""

    facts: Facts
    value: Value
    whole: bool = True
    key: Term | None = None


def together(parts: Iterable[Cases[tuple[_T, ...]]]) -> Cases[tuple[_T, ...]]:
    """All that several things are at once, in each case that agrees with itself."""
    result: Cases[tuple[_T, ...]] = [(NO_FACTS, ())]
    for cases in parts:
        joined = [
            (facts | more, (*had, *new))
            for facts, had in result
            for more, new in cases
            if not any((test, not holds) in facts for test, holds in more)
        ]
        result = joined[:MOST_CASES] or result
    return result


def given(cases: Cases[_T], facts: Facts) -> Cases[_T]:
    """The cases that agree with `facts`, which then hold in them."""
    fitting = [(more | facts, one) for more, one in cases]
    return [(f, one) for f, one in fitting if not any((test, not holds) in f for test, holds in f)]


def one_of(what: str, number: int, count: int) -> Facts:
    """That of several alternatives this one is taken, and none of the others."""
    return frozenset((f"{other} of {count}: {what}", other == number) for other in range(count))


def tested(frame: Frame, test: Term, *, holds: bool) -> tuple[str, bool]:
    """A test as a fact: tests of one object agree with each other."""
    while isinstance(test, Not):
        test, holds = test.of, not holds
    whose = frame.this.kind if frame.this else frame.body.definition.key
    return f"{whose}: {show(test)}", holds


def facts_at(frame: Frame, where: Where) -> Facts:
    """The tests that a place in a body stands under."""
    return frozenset(
        tested(frame, guard.condition, holds=True)
        for guard in frame.body.guards
        if not guard.raises and guard.where.dominates(where)
    )


def choice(test: Term, then: Value, other: Value) -> Cases[Value]:
    """One of two values, by a test of the frame they are seen in."""
    return [
        (frozenset({tested(one.frame, test, holds=holds)}), one)
        for one, holds in ((then, True), (other, False))
    ]
