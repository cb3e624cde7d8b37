"""How many slots a tensor has, as a formula over the fields of the object that holds it.

Two levels: what the object's own class computes from its fields, and what that comes to in terms
of whoever made the object. Helpers and computed fields are put in; what a constructor is given
stays a name at the first level, and is what the maker gave at the second.
"""

from dataclasses import dataclass

from kvlint.analysis.allocations import Allocations
from kvlint.analysis.arithmetic import variable
from kvlint.analysis.frames import DEEPEST, NO_FACTS, Cases, Object, Value, given
from kvlint.analysis.link import default_of
from kvlint.analysis.seen import Seen
from kvlint.analysis.showing import show
from kvlint.analysis.terms import (
    Call,
    Choice,
    Each,
    Field,
    Fold,
    Global,
    Index,
    Item,
    Literal,
    Operation,
    Parameter,
    Sequence,
    Term,
    This,
    replace,
)

MOST_FORMULAS = 6  # of one number

_ARITHMETIC = frozenset({"+", "-", "*", "//", "/", "%", "cdiv", "**", "<<", ">>", "&", "|", "^"})
_ROUNDS_UP = frozenset({"round_up", "align_up"})


@dataclass(frozen=True, eq=False, slots=True)
class _Reading:
    """`home`: the object whose fields need no owner; `made`: whether constructors are entered."""

    home: Object | None
    made: bool


class Counting:
    def __init__(self, seen: Seen, allocations: Allocations) -> None:
        self.seen = seen
        self.allocations = allocations

    def formulas(self, value: Value, home: Object | None, *, made: bool = False) -> Cases[Term]:
        """What a number is, in each consistent case; none of those that cannot be read."""
        return self._of(value, _Reading(home, made), 0)

    def _of(self, value: Value, reading: _Reading, depth: int) -> Cases[Term]:
        term, frame = value.term, value.frame
        if depth > DEEPEST:
            return []
        match term:
            case Literal(bool()):
                return []
            case Literal(int()):
                return [(NO_FACTS, term)]
            case Operation("or", left, right) if reading.made:
                return self._joined("or", left, right, value, reading, depth)
            case Operation(symbol, left, right) if symbol in _ARITHMETIC:
                return self._joined(symbol, left, right, value, reading, depth)
            case Fold("min" | "max" as kind, Sequence(items)) if items:
                return self._fold(kind, items, value, reading, depth)
            case Item(Field(of, "shape"), Literal(0)) | Call("size", of, (Literal(0),)) if (
                isinstance(of, Term)
            ):
                return self._rows(Value(of, frame), reading, depth) or self._named(value, reading)
            case Call():
                return self._call(term, value, reading, depth)
            case Choice():
                return self._steps(self.seen.steps(value), reading, depth)
            case Parameter():
                return self._parameter(term, value, reading, depth)
            case Field(of, name):
                return self._field(Value(of, frame), name, value, reading, depth)
            case Item() | Each():
                steps = self.seen.steps(value)
                found = self._steps(steps, reading, depth)
                return found or self._named(value, reading)
            case Global() | Index():
                return self._named(value, reading)
        return []

    def _joined(
        self, symbol: str, left: Term, right: Term, value: Value, reading: _Reading, depth: int
    ) -> Cases[Term]:
        lefts = self._of(Value(left, value.frame), reading, depth + 1)
        rights = self._of(Value(right, value.frame), reading, depth + 1)
        found: Cases[Term] = [
            case
            for facts, one in lefts
            for case in given([(more, Operation(symbol, one, two)) for more, two in rights], facts)
        ]
        return found[:MOST_FORMULAS]

    def _fold(
        self, kind: str, items: tuple[Term, ...], value: Value, reading: _Reading, depth: int
    ) -> Cases[Term]:
        result: Cases[tuple[Term, ...]] = [(NO_FACTS, ())]
        for one in items:
            cases = self._of(Value(one, value.frame), reading, depth + 1)
            result = [
                (facts, (*had, new))
                for known, had in result
                for facts, new in given(cases, known)
            ]  # fmt: skip
        found: Cases[Term] = [(facts, Fold(kind, Sequence(all_))) for facts, all_ in result]
        return found[:MOST_FORMULAS]

    def _rows(self, of: Value, reading: _Reading, depth: int) -> Cases[Term]:
        found: Cases[Term] = []
        for facts, all_ in self.allocations.behind(of, depth + 1):
            for buffer in all_:
                if buffer.dims and not buffer.nested:
                    found += given(self._of(buffer.dims[0], reading, depth + 1), facts)
        return found

    def _call(self, call: Call, value: Value, reading: _Reading, depth: int) -> Cases[Term]:
        if call.name == "ceil" and len(call.arguments) == 1:
            inner = self._of(Value(call.arguments[0], value.frame), reading, depth + 1)
            return [(facts, Call("ceil", None, (one,))) for facts, one in inner]
        steps = self.seen.steps(value)
        if steps is not None:
            return self._steps(steps, reading, depth)
        if call.name in _ROUNDS_UP and len(call.arguments) == 2:
            number, unit = call.arguments
            up = Operation("*", Operation("cdiv", number, unit), unit)
            return self._of(Value(up, value.frame), reading, depth + 1)
        # Nobody knows what it gives: the same as any other call of it, and no telling from others.
        return [(NO_FACTS, Call(call.callee, None, ()))]

    def _steps(self, steps: Cases[Value] | None, reading: _Reading, depth: int) -> Cases[Term]:
        found: Cases[Term] = []
        for facts, one in steps or ():
            found += given(self._of(one, reading, depth + 1), facts)
        return found[:MOST_FORMULAS]

    def _parameter(
        self, term: Parameter, value: Value, reading: _Reading, depth: int
    ) -> Cases[Term]:
        steps = self.seen.steps(value)
        if steps is not None:
            return self._steps(steps, reading, depth)
        frame = value.frame
        definition = frame.body.definition
        if frame.bound and term.function == definition.key:
            default = default_of(definition, term.name)
            return self._of(Value(default, frame), reading, depth + 1) or self._named(
                value, reading
            )
        if reading.made and frame.this is not None and definition.short == "__init__":
            ran = self.seen.constructor(frame.this, definition.key)
            if ran is not None:
                return self._of(Value(term, ran), reading, depth + 1)
        kept = next(
            (s.name for s in frame.body.stores if s.value == term and isinstance(s.of, This)), None
        )
        if kept and definition.short == "__init__" and _is_home(reading, frame.this):
            return [(NO_FACTS, variable(kept))]
        return self._named(value, reading)

    def _field(
        self, of: Value, name: str, value: Value, reading: _Reading, depth: int
    ) -> Cases[Term]:
        """What a field is computed from; the field itself where it is only given."""
        found: Cases[Term] = []
        for facts, objects in self.seen.objects(of):
            for one in objects:
                computed = self.seen.computed(one, name)
                puts = self.seen.stores(one, name) if computed is None else []
                if not all(put.whole for put in puts):
                    return self._named(value, reading)
                values = computed or [(put.facts, put.value) for put in puts]
                if not reading.made and any(_is_given(v.term) for _, v in values):
                    return self._named(value, reading)
                cases = self._steps(values, reading, depth)
                found += given(cases, facts)
        return found[:MOST_FORMULAS] or self._named(value, reading)

    def _named(self, value: Value, reading: _Reading) -> Cases[Term]:
        """A number that is only a name: of a field, with whose it is, unless it is the home's."""
        match value.term:
            case Field(of, name):
                owners = {
                    one.kind: one.short
                    for _, all_ in self.seen.objects(Value(of, value.frame))
                    for one in all_
                }
                if reading.home is not None and reading.home.kind in owners:
                    return [(NO_FACTS, variable(name))]
                if len(owners) == 1:
                    (owner,) = owners.values()
                    return [(NO_FACTS, variable(f"{owner}.{name}"))]
        this = value.frame.this
        owner = this.short if this is not None else "self"
        bare = replace(
            value.term, lambda p: Global(owner) if isinstance(p, This) else None, (This,)
        )
        return [(NO_FACTS, variable(show(bare)))]


def _is_home(reading: _Reading, this: Object | None) -> bool:
    return reading.home is not None and this is not None and this.kind == reading.home.kind


def _is_given(term: Term) -> bool:
    """Whether a value comes from elsewhere as it is, or stands in for one that may be missing."""
    match term:
        case Operation("or"):
            return True
        case Choice(_, then, other):
            return _is_given(then) or _is_given(other)
    return isinstance(term, Parameter | Field | Item | Each)
