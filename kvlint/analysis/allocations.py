"""The tensors behind a value: where each was allocated, and with what dimensions."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from kvlint.analysis.forms import is_part
from kvlint.analysis.frames import (
    DEEPEST,
    MOST_CASES,
    NO_FACTS,
    Cases,
    Object,
    Put,
    Value,
    given,
    together,
)
from kvlint.analysis.seen import Seen, is_empty
from kvlint.analysis.tensors import allocation
from kvlint.analysis.terms import (
    Call,
    Choice,
    Each,
    Field,
    Global,
    Item,
    Literal,
    Many,
    Mapping,
    Operation,
    Parameter,
    Sequence,
    Slice,
    Term,
    last_name,
)
from kvlint.analysis.vocabulary import words

_JOINS = frozenset({"chain"})


@dataclass(frozen=True, eq=False, slots=True)
class Buffer:
    """A tensor. `dims`: its dimensions as far as they can be read, outermost first; none for
    one that nobody can read. `nested`: lists it lies in. `name`: `Class.field` that holds it,
    in the object `of`."""

    dims: tuple[Value, ...]
    nested: int = 0
    name: str = ""
    of: Object | None = None

    def deeper(self) -> "Buffer":
        return replace(self, nested=self.nested + 1)

    def entry(self) -> "Buffer":
        if self.nested:
            return replace(self, nested=self.nested - 1)
        return replace(self, dims=self.dims[1:])


UNREAD = Buffer(())
Together = Cases[tuple[Buffer, ...]]
_UNREAD: Together = [(NO_FACTS, (UNREAD,))]


class Allocations:
    def __init__(self, seen: Seen) -> None:
        self.seen = seen

    def behind(self, value: Value, depth: int = 0) -> Together:
        """All tensors that a value is or holds, in each consistent case."""
        term, frame = value.term, value.frame
        if depth > DEEPEST:
            return _UNREAD

        def of(inner: Term) -> Together:
            return self.behind(Value(inner, frame), depth + 1)

        match term:
            case Many(element, _, _, _):
                return _each(of(element), Buffer.deeper)
            case Sequence(items) | Mapping(_, items):
                return together(
                    of(one) if isinstance(one, Many) else _each(of(one), Buffer.deeper)
                    for one in items
                )
            case Operation("+", left, right):
                return together((of(left), of(right)))
            case Operation("*", listed, Call() | Literal() | Field() | Parameter()):
                return of(listed)
            case Each(inner, _):
                return _each(of(inner), Buffer.entry)
            case Item(inner, key) if is_part(key) is None and not isinstance(key, Sequence):
                steps = self.seen.steps(value)
                return self._of_steps(steps, depth) if steps else _each(of(inner), Buffer.entry)
            case Slice(inner, _, _):
                found = of(inner)
                whole = all(one.nested for _, all_ in found for one in all_)
                return found if whole else _UNREAD
            case Field():
                return self._held(value, depth)
            case Call() as call:
                return self._call(call, value, depth)
            case Choice() | Parameter() | Item():
                steps = self.seen.steps(value)
                return self._of_steps(steps, depth) if steps else _UNREAD
        return _UNREAD

    def _call(self, call: Call, value: Value, depth: int) -> Together:
        frame = value.frame
        made = allocation(call, frame.body)
        if made is not None:
            cases = self._dims(tuple(Value(one, frame) for one in made.shape), depth)
            return [(facts, (Buffer(dims),)) for facts, dims in cases]
        if call.receiver is None and call.name in _JOINS:
            return together(self.behind(Value(one, frame), depth + 1) for one in call.arguments)
        if call.name == "view" and call.receiver is not None:
            if all(map(_is_type, call.values())):
                return self.behind(Value(call.receiver, frame), depth + 1)
            cases = self._dims(tuple(Value(one, frame) for one in call.arguments), depth)
            return [(facts, (Buffer(dims),)) for facts, dims in cases]
        steps = self.seen.steps(value)
        return self._of_steps(steps, depth) if steps else _UNREAD

    def _dims(self, shape: tuple[Value, ...], depth: int) -> Cases[tuple[Value, ...]]:
        """The dimensions that a call is given: several numbers, or one tuple of them."""
        if len(shape) != 1:
            return [(NO_FACTS, shape if not any(map(_is_rest, shape[:1])) else ())]
        (only,) = shape
        match only.term:
            case Sequence(items):
                return [(NO_FACTS, tuple(Value(one, only.frame) for one in items))]
            case Choice() | Field() | Call() | Item() | Parameter():
                found: Cases[tuple[Value, ...]] = []
                steps = self.seen.steps(only) if depth < DEEPEST else None
                for facts, one in steps or ():
                    found += given(self._dims((one,), depth + 1), facts)
                return found[:MOST_CASES] or [(NO_FACTS, ())]
        return [(NO_FACTS, ())]  # a flat buffer: what it counts are elements

    def _of_steps(self, steps: Cases[Value], depth: int) -> Together:
        found: Together = []
        for facts, one in steps:
            if not is_empty(one.term):
                found += given(self.behind(one, depth + 1), facts)
        return found[:MOST_CASES] or _UNREAD

    def _held(self, value: Value, depth: int) -> Together:
        """What a field of an object holds, of each object that it can be the field of."""
        assert isinstance(value.term, Field)
        of, name = Value(value.term.of, value.frame), value.term.name
        result: Together = []
        for facts, objects in self.seen.objects(of):
            if objects:
                result += given(together(self._of(one, name, depth) for one in objects), facts)
        return result[:MOST_CASES] or _UNREAD

    def _of(self, one: Object, name: str, depth: int) -> Together:
        """One of what the field is set to, with all that is put into it."""
        computed = self.seen.computed(one, name)
        if computed is not None:
            return self._of_steps(computed, depth)
        puts = self.seen.stores(one, name)
        if not puts:
            return _UNREAD
        whole = [put for put in puts if put.whole]
        either = [
            case for put in whole for case in given(self._put(one, name, put, depth), put.facts)
        ]
        # What is written to an entry of a list that is there is data.
        parts = (
            self._put(one, name, put, depth)
            for put in puts
            if not put.whole and not (whole and put.key is not None)
        )
        return together([either[:MOST_CASES] or [(NO_FACTS, ())], *parts])

    def _put(self, one: Object, name: str, put: Put, depth: int) -> Together:
        """What is put into a field, under the name of the class that puts it there."""
        found = self.behind(put.value, depth + 1)
        if not put.whole and not (put.key is None and isinstance(put.value.term, Many)):
            found = _each(found, Buffer.deeper)
        holder = put.value.frame.body.definition.class_name or one.short
        return _each(found, lambda b: b if b.name else replace(b, name=f"{holder}.{name}", of=one))


def _each(cases: Together, change: Callable[[Buffer], Buffer]) -> Together:
    return [(facts, tuple(change(one) for one in all_)) for facts, all_ in cases]


def _is_type(term: Term) -> bool:
    """`torch.uint8`, `self.dtype`: what a view is given to keep the shape."""
    match term:
        case Global(name):
            return name.startswith("torch.")
        case Field() | Parameter():
            return "dtype" in words(last_name(term))
    return False


def _is_rest(value: Value) -> bool:
    return value.term == Literal(-1)
