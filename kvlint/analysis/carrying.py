"""Whether a value depends on another: inside one body, and through the functions it calls."""

from collections.abc import Callable
from typing import Self

from kvlint.analysis.bodies import Body
from kvlint.analysis.forms import is_part
from kvlint.analysis.link import Program
from kvlint.analysis.outline import Definition
from kvlint.analysis.terms import (
    Arange,
    Call,
    Choice,
    Each,
    Fold,
    Index,
    Item,
    Many,
    Mapping,
    Operation,
    Parameter,
    Running,
    Sequence,
    Slice,
    Term,
    kinds_of,
)
from kvlint.analysis.vocabulary import apis

_ARITHMETIC = frozenset({"+", "-", "*", "//", "/", "%", "cdiv", "**", "<<", ">>", "&", "|", "^"})


class Leaf:
    """Recognises the value that is followed; `kinds` has the bits of what it can be, and of
    sums that run through a loop, which the value may be part of."""

    __slots__ = ("is_it", "kinds")

    def __init__(self, is_it: Callable[[Term], bool], *classes: type[Term]) -> None:
        self.is_it = is_it
        self.kinds = kinds_of(Running, *classes)

    @classmethod
    def of(cls, *values: Term) -> Self:
        """Recognises these very terms."""
        return cls(frozenset(values).__contains__, *map(type, values))


class Carrying:
    def __init__(self, program: Program) -> None:
        self.program = program
        self._passes: dict[tuple[str, str], bool] = {}

    def carries(self, term: Term, body: Body, leaf: Leaf) -> bool:
        """Whether the number that `term` is depends on the leaf."""
        if not term.kinds & leaf.kinds:
            return False
        if leaf.is_it(term):
            return True
        match term:
            case Operation(symbol, left, right):
                if symbol in ("and", "or"):
                    return self.carries(left, body, leaf) or self.carries(right, body, leaf)
                return symbol in _ARITHMETIC and (
                    self.carries(left, body, leaf) or self.carries(right, body, leaf)
                )
            case Choice(_, then, other):
                return self.carries(then, body, leaf) or self.carries(other, body, leaf)
            case Fold("min" | "max" | "sum" | "cumsum", of):
                return self.carries(of, body, leaf)
            case Sequence(items):
                return any(self.carries(i, body, leaf) for i in items)
            case Many(element, over, _):
                return self.carries(element, body, leaf) or self.carries(over, body, leaf)
            case Arange(count):
                return self.carries(count, body, leaf)
            case Running(name, loop):
                added = body.running.get((name, loop), ())
                return any(self.carries(v, body, leaf) for v in added if not v.contains(is_running))
            case Index(over, _):
                return isinstance(over, Arange) and self.carries(over, body, leaf)
            case Each(of, _):
                return self.carries(of, body, leaf)
            case Item(of, key):
                if is_part(key) is not None and isinstance(of, Call):
                    return self._call_carries(of, body, leaf, is_part(key))
                return self.carries(of, body, leaf) or self.carries(key, body, leaf)
            case Slice(of, lower, upper):
                return any(
                    p is not None and self.carries(p, body, leaf) for p in (of, lower, upper)
                )
            case Call():
                return self._call_carries(term, body, leaf, None)
        return False

    def carries_whole(self, term: Term, body: Body, leaf: Leaf) -> bool:
        """As `carries`, and through what packs values into messages."""
        if not term.kinds & leaf.kinds:
            return False
        if leaf.is_it(term):
            return True
        match term:
            case Mapping(_, values):
                return any(self.carries_whole(v, body, leaf) for v in values)
            case Sequence(items):
                return any(self.carries_whole(i, body, leaf) for i in items)
            case Call() as call if call.name in apis().packs or call.name == "format":
                return any(self.carries_whole(v, body, leaf) for v in call.values())
        return self.carries(term, body, leaf)

    def _call_carries(self, call: Call, body: Body, leaf: Leaf, part: int | None) -> bool:
        name = call.name
        carrying = [v for v in call.values() if self.carries(v, body, leaf)]
        if not carrying:
            return False
        if name in apis().makes_tensor or name in apis().silent:
            return False
        if name in apis().keeps or name in apis().packs or name == "format":
            return True
        found, _ = self.program.callees(call, body)
        if not found:
            # An object of a class from elsewhere keeps what it is given.
            return name[:1].isupper() and self.program.constructed(call) is None
        for callee in found:
            bound = self.program.bind(call, callee)
            for parameter, value in bound.items():
                if value in carrying and self._passes_through(callee, parameter, part):
                    return True
        return False

    def _passes_through(self, callee: Definition, parameter: str, part: int | None) -> bool:
        key = (callee.key, f"{parameter}#{part}")
        if key not in self._passes:
            self._passes[key] = False
            body = self.program.body(callee)
            wanted = Parameter(callee.key, parameter)
            for root in body.returns if body else ():
                term = root.term
                if part is not None and isinstance(term, Sequence) and part < len(term.items):
                    term = term.items[part]
                if body and self.carries(term, body, Leaf.of(wanted)):
                    self._passes[key] = True
        return self._passes[key]


def is_running(term: Term) -> bool:
    return isinstance(term, Running)
