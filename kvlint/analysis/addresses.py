"""Lists of addresses that code hands over, and the item lengths that stand beside them."""

from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.forms import is_part, part
from kvlint.analysis.frames import (
    DEEPEST,
    MOST_CASES,
    NO_FACTS,
    Cases,
    Value,
    choice,
    given,
    together,
)
from kvlint.analysis.seen import Seen
from kvlint.analysis.terms import (
    Call,
    Choice,
    Field,
    Item,
    Literal,
    Many,
    Mapping,
    Opaque,
    Operation,
    Parameter,
    Sequence,
    Term,
    last_name,
)
from kvlint.findings import Span

STARRED = 0  # the loop that `*xs` in a list stands for
_UNTOLD = Opaque("no item length stands beside it")


@dataclass(frozen=True, eq=False, slots=True)
class Pointer:
    """The address of `buffer`, whole, taken at `at`. `item`: how many bytes one item of it
    takes; None where nothing says so, for none of the list."""

    buffer: Value
    item: Value | None
    at: Span


Pointers = Cases[tuple[Pointer, ...]]
_NOTHING: Pointers = [(NO_FACTS, ())]


class Addresses:
    def __init__(self, seen: Seen) -> None:
        self.seen = seen

    def pointers(self, value: Value, items: Value | None, depth: int = 0) -> Pointers:
        """The addresses in a list, in each consistent case; `items`: the list of item lengths
        that came with it. An address in the middle of a buffer is left out: how many slots lie
        behind it is not said."""
        if depth > DEEPEST:
            return _NOTHING
        match value.term:
            case Call("data_ptr", receiver) if receiver is not None:
                at = self.seen.span(value)
                return [(NO_FACTS, (Pointer(Value(receiver, value.frame), items, at),))]
            case Operation("+", left, right) if is_pointer(left) or is_pointer(right):
                return _NOTHING
            case Many() | Sequence() | Operation("+"):
                return self._inside(value, items, depth)
            case Choice():
                return self._either(value.term, value, items, depth)
            case Item(Call() as call, key) if (number := is_part(key)) is not None:
                return self._of_call(Value(call, value.frame), number, items, depth)
            case Call() | Field() | Parameter():
                untold = items and Value(_UNTOLD, items.frame)
                steps = self.seen.steps(value) or ()
                found = [
                    case
                    for facts, one in steps
                    for case in given(self.pointers(one, untold, depth + 1), facts)
                ]
                return found[:MOST_CASES] or _NOTHING
        return _NOTHING

    def _inside(self, value: Value, items: Value | None, depth: int) -> Pointers:
        parts = _parts(value.term)
        beside: tuple[Term, ...] = (_UNTOLD,) * len(parts)
        if items is not None and type(items.term) is type(value.term):
            same = _parts(items.term)
            beside = same if len(same) == len(parts) else beside
        return together(
            self.pointers(Value(one, value.frame), items and Value(item, items.frame), depth + 1)
            for one, item in zip(parts, beside, strict=True)
        )

    def _either(self, either: Choice, value: Value, items: Value | None, depth: int) -> Pointers:
        beside = [items, items]
        if items is not None:
            match items.term:
                case Choice(test, one, two) if test == either.test:
                    beside = [Value(one, items.frame), Value(two, items.frame)]
        cases = choice(
            either.test, Value(either.then, value.frame), Value(either.other, value.frame)
        )
        found = [
            case
            for (facts, one), item in zip(cases, beside, strict=True)
            for case in given(self.pointers(one, item, depth + 1), facts)
        ]
        return found[:MOST_CASES]

    def _of_call(self, call: Value, number: int, items: Value | None, depth: int) -> Pointers:
        """One list of several that a call gives."""
        beside: int | None = None
        if items is not None and isinstance(items.term, Item) and items.term.of == call.term:
            beside = is_part(items.term.key)
        found: Pointers = []
        for facts, one in self.seen.results(call) or ():
            item = items and Value(_UNTOLD, items.frame)
            if beside is not None:
                item = Value(part(one.term, beside), one.frame)
            list_ = Value(part(one.term, number), one.frame)
            found += given(self.pointers(list_, item, depth + 1), facts)
        return found[:MOST_CASES] or _NOTHING


def _parts(term: Term) -> tuple[Term, ...]:
    match term:
        case Many(element, _, _, _):
            return (element,)
        case Sequence(items):
            return items
        case Operation("+", left, right):
            return (left, right)
    return ()


def is_pointer(term: Term) -> bool:
    """`x.data_ptr()`."""
    return isinstance(term, Call) and term.callee == "data_ptr"


def factors(term: Term) -> Iterator[Term]:
    """What is multiplied, in order."""
    match term:
        case Operation("*", left, right):
            yield from factors(left)
            yield from factors(right)
        case _:
            yield term


def measures_row(term: Term) -> bool:
    """Part of the bytes of one row of a tensor."""
    if isinstance(term, Call | Field) and last_name(term) in ("element_size", "itemsize"):
        return True
    return tells_row(term)


def lists(term: Term, beside: tuple[Term, ...] = ()) -> Iterator[tuple[Term, Term | None]]:
    """Lists of addresses in what is handed over, each with the item lengths beside it."""
    match term:
        case Sequence(items) if not _is_one_list(items):
            inner = items
        case Mapping(_, values):
            inner = values
        case Call() as call if not is_pointer(call):
            inner = tuple(call.values())
        case _:
            if term.contains(is_pointer) or isinstance(term, Item):
                yield term, _item_lengths(beside)
            return
    for one in inner:
        if one.contains(is_pointer) or isinstance(one, Item):
            yield from lists(one, tuple(other for other in inner if other is not one))


def _is_one_list(items: tuple[Term, ...]) -> bool:
    """Whether these are addresses, or lists of them put into one; else they are several lists."""
    return any(
        is_pointer(_of_offset(one)) or (isinstance(one, Many) and one.loop == STARRED)
        for one in items
    )


def _of_offset(term: Term) -> Term:
    match term:
        case Operation("+", left, right):
            return left if is_pointer(left) else right
    return term


def _item_lengths(beside: tuple[Term, ...]) -> Term | None:
    """The list beside the addresses that says how many bytes an item of each region takes."""
    listed = [one for one in beside if _is_list(one) and not one.contains(is_pointer)]
    listed = [one for one in listed if not one.contains(tells_whole)]
    told = [one for one in listed if one.contains(tells_row)]
    # The length of a part of a buffer is a number of rows, too: the shorter text is the item's.
    return min(told, key=lambda one: one.size) if told else (listed[-1] if listed else None)


def _is_list(term: Term) -> bool:
    match term:
        case Many() | Sequence() | Choice():
            return True
        case Operation("+", left, right):
            return _is_list(left) or _is_list(right)
        case Item(Call(), key):
            return is_part(key) is not None
    return False


def tells_row(term: Term) -> bool:
    """`x[0].nbytes`, `x[0].numel()`, `x.stride(0)`: the size of one row of a tensor."""
    match term:
        case Field(Item(), "nbytes") | Call("numel" | "nelement", Item()):
            return True
        case Call("stride", _, (Literal(0),)):
            return True
    return False


def tells_whole(term: Term) -> bool:
    """`x.nbytes`, `x.numel()`: the size of all of a tensor."""
    match term:
        case Field(of, "nbytes") | Call("numel" | "nelement" | "nbytes", of) if of is not None:
            return not isinstance(of, Item)
    return False
