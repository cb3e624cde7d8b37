"""How the buffers that are handed over in one list count their slots."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property

from kvlint.analysis.allocations import Allocations, Buffer
from kvlint.analysis.arithmetic import Apart, apart
from kvlint.analysis.counts import Counting
from kvlint.analysis.forms import is_part, part
from kvlint.analysis.frames import (
    DEEPEST,
    MOST_CASES,
    NO_FACTS,
    Cases,
    Frame,
    Object,
    Seen,
    Value,
    given,
    together,
)
from kvlint.analysis.link import Program
from kvlint.analysis.outline import Definition
from kvlint.analysis.showing import show
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

_UNTOLD = Opaque("no item length stands beside it")


@dataclass(frozen=True, eq=False)
class Count:
    """The slots of one buffer: `rows`, divided by the rows that one item takes (None: one).

    `rows` speaks of the fields of the object that holds the buffer. `whose` is the buffer's
    name, `at` where the rows are computed, in the definition `scope`.
    """

    rows: Term
    rows_an_item: Term | None
    whose: str
    at: Span
    scope: str
    handed_at: Span
    by_maker: Callable[[], Cases[Term]]

    @cached_property
    def made(self) -> tuple[Term, ...]:
        """The rows in terms of whoever made the object, in each case; none: nobody knows whom."""
        return tuple(dict.fromkeys(one for _, one in self.by_maker()))

    @property
    def formula(self) -> Term:
        return self._by_item(self.rows)

    def _by_item(self, rows: Term) -> Term:
        return Operation("//", rows, self.rows_an_item) if self.rows_an_item else rows

    def apart(self, other: "Count") -> Apart | None:
        """Numbers for which two buffers have different counts though one formula would give
        both the same; None where they share one, here or where they are made."""
        same_items = self.rows_an_item == other.rows_an_item
        told = apart(self.rows, other.rows) if same_items else apart(self.formula, other.formula)
        if told is None or not self.made or not other.made:
            return told
        both = ((one, two) for one in self.made for two in other.made)
        if not same_items:
            both = ((self._by_item(one), other._by_item(two)) for one, two in both)
        return told if all(apart(one, two) for one, two in both) else None


@dataclass(frozen=True, eq=False, slots=True)
class Handed:
    """Buffers that are handed over in one list. `whole`: each of them can be read."""

    counts: tuple[Count, ...]
    whole: bool


@dataclass(frozen=True, eq=False, slots=True)
class _Pointer:
    buffer: Value
    item: Value | None
    at: Span


class Providers:
    """What definitions that hand over lists of addresses put into them."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.seen = Seen(program)
        self.allocations = Allocations(self.seen)
        self.counting = Counting(self.seen, self.allocations)
        self._known: dict[Hashable, Cases[tuple[Count | None, ...]]] = {}

    def handed(self, definition: Definition, kind: str | None) -> Iterator[Handed]:
        """Each list that a run of the definition on an object of class `kind` may hand over."""
        frame = self.seen.frame(definition, kind)
        if frame is None:
            return
        done: set[tuple[Term, Term | None]] = set()
        for root in frame.body.returns:
            for pointers, items in _lists(root.term, ()):
                if (pointers, items) in done:
                    continue
                done.add((pointers, items))
                told = Value(items, frame) if items is not None else None
                for _, found in self._pointers(Value(pointers, frame), told, 0):
                    yield from self._handed(found)

    def _handed(self, pointers: tuple[_Pointer, ...]) -> Iterator[Handed]:
        cases = {counts: None for _, counts in together(map(self._counts, pointers))}
        for counts in cases:
            read = tuple(one for one in counts if one is not None)
            yield Handed(read, len(read) == len(counts))

    # -- addresses and the item lengths beside them

    def _pointers(
        self, pointers: Value, items: Value | None, depth: int
    ) -> Cases[tuple[_Pointer, ...]]:
        term, frame = pointers.term, pointers.frame
        nothing: Cases[tuple[_Pointer, ...]] = [(NO_FACTS, ())]
        if depth > DEEPEST:
            return nothing

        def of(inner: Term, item: Term | None) -> Cases[tuple[_Pointer, ...]]:
            told = Value(item, items.frame) if items is not None and item is not None else None
            return self._pointers(Value(inner, frame), told, depth + 1)

        told = items.term if items is not None else None
        match term:
            case Call("data_ptr", receiver) if receiver is not None:
                at = self._span(frame, term)
                return [(NO_FACTS, (_Pointer(Value(receiver, frame), items, at),))]
            case Many(element, _, _, _):
                match told:
                    case Many(inner, _, _, _):
                        return of(element, inner)
                return of(element, told and _UNTOLD)
            case Sequence(all_):
                match told:
                    case Sequence(inner) if len(inner) == len(all_):
                        return together(of(a, b) for a, b in zip(all_, inner, strict=True))
                return together(of(one, told and _UNTOLD) for one in all_)
            case Operation("+", left, right):
                match told:
                    case Operation("+", one, other):
                        return together((of(left, one), of(right, other)))
                if is_pointer(left) or is_pointer(right):
                    return nothing  # a part of a buffer: how many slots lie in it is not said
                return together((of(left, told and _UNTOLD), of(right, told and _UNTOLD)))
            case Choice(test, then, other):
                match told:
                    case Choice(same, one, two) if same == test:
                        told, elsewhere = one, two
                    case _:
                        elsewhere = told
                cases = self.seen.choice(test, Value(then, frame), Value(other, frame))
                found: Cases[tuple[_Pointer, ...]] = []
                for (facts, one_of), item in zip(cases, (told, elsewhere), strict=True):
                    found += given(of(one_of.term, item), facts)
                return found[:MOST_CASES]
            case Item(Call() as call, key) if (number := is_part(key)) is not None:
                beside = told.key if isinstance(told, Item) and told.of == call else None
                found = []
                for facts, one in self.seen.results(Value(call, frame)) or ():
                    position = is_part(beside) if beside is not None else None
                    item = part(one.term, position) if position is not None else None
                    value = Value(item, one.frame) if item is not None else None
                    inner_pointers = Value(part(one.term, number), one.frame)
                    found += given(self._pointers(inner_pointers, value, depth + 1), facts)
                return found[:MOST_CASES] or nothing
            case Call() | Field() | Parameter():
                found = []
                for facts, one in self.seen.steps(pointers) or ():
                    unknown = Value(_UNTOLD, frame) if items is not None else None
                    found += given(self._pointers(one, unknown, depth + 1), facts)
                return found[:MOST_CASES] or nothing
        return nothing

    # -- one buffer

    def _counts(self, pointer: _Pointer) -> Cases[tuple[Count | None, ...]]:
        """The counts of all buffers that one address stands for, together."""
        result: Cases[tuple[Count | None, ...]] = []
        for facts, buffers in self.allocations.behind(pointer.buffer):
            parts = [self._count(buffer, pointer) for buffer in buffers]
            result += given(together(parts), facts)
        return result[:MOST_CASES]

    def _count(self, buffer: Buffer, pointer: _Pointer) -> Cases[tuple[Count | None, ...]]:
        unread: Cases[tuple[Count | None, ...]] = [(NO_FACTS, (None,))]
        if not buffer.dims or buffer.nested or isinstance(buffer.dims[0].term, Literal):
            return unread
        rows, item = buffer.dims[0], pointer.item
        home = rows.frame.this or buffer.of
        key = (
            (rows.term, rows.frame.key, buffer.name, home.key if home else None, pointer.at),
            (item.term, item.frame.key) if item else None,
        )
        if key not in self._known:
            self._known[key] = self._read(rows, buffer, pointer) or unread
        return self._known[key]

    def _read(
        self, rows: Value, buffer: Buffer, pointer: _Pointer
    ) -> Cases[tuple[Count | None, ...]]:
        home = rows.frame.this or buffer.of
        origin = self._origin(rows, 0)
        at, scope = self._span(origin.frame, origin.term), origin.frame.body.definition.key

        def by_maker() -> Cases[Term]:
            if home is None or home.made is None:
                return []
            return self.counting.formulas(rows, home, made=True)

        found: Cases[tuple[Count | None, ...]] = []
        for facts, formula in self.counting.formulas(rows, home):
            for more, an_item in self._rows_an_item(pointer.item, home):
                count = Count(formula, an_item, buffer.name, at, scope, pointer.at, by_maker)
                found += given([(more, (count,))], facts)
        return found[:MOST_CASES]

    def _rows_an_item(self, item: Value | None, home: Object | None) -> Cases[Term | None]:
        """How many rows of its tensor an item takes; None: one, or no item length is given."""
        if item is None:
            return [(NO_FACTS, None)]
        match item.term:
            case Choice():
                found: Cases[Term | None] = []
                for facts, one in self.seen.steps(item) or ():
                    if one.term != Literal(0):
                        found += given(self._rows_an_item(one, home), facts)
                return found[:MOST_CASES]
        factors = list(_factors(item.term))
        rest = [one for one in factors if not _measures_row(one)]
        if not any(map(_tells_row, factors)):
            return [(NO_FACTS, Call(show(item.term), None, ()))]
        if not rest:
            return [(NO_FACTS, None)]
        product = rest[0]
        for one in rest[1:]:
            product = Operation("*", product, one)
        cases = self.counting.formulas(Value(product, item.frame), home)
        return [(facts, None if one == Literal(1) else one) for facts, one in cases]

    def _origin(self, rows: Value, depth: int) -> Value:
        """Where the number of rows is computed: not where it is handed on or kept."""
        steps = self.seen.steps(rows) if isinstance(rows.term, Parameter | Field) else None
        if depth < DEEPEST and steps and len(steps) == 1:
            one = steps[0][1]
            if isinstance(rows.term, Parameter) or not isinstance(one.term, Parameter | Literal):
                return self._origin(one, depth + 1)
        return rows

    def _span(self, frame: Frame, term: Term) -> Span:
        found = frame.body.place_of(term)
        return self.program.span(frame.body, found[0] if found else -1)


def is_pointer(term: Term) -> bool:
    return isinstance(term, Call) and term.callee == "data_ptr"


def _factors(term: Term) -> Iterator[Term]:
    match term:
        case Operation("*", left, right):
            yield from _factors(left)
            yield from _factors(right)
        case _:
            yield term


def _measures_row(term: Term) -> bool:
    """Part of the bytes of one row of a tensor."""
    if isinstance(term, Call | Field) and last_name(term) in ("element_size", "itemsize"):
        return True
    return _tells_row(term)


def _lists(term: Term, beside: tuple[Term, ...]) -> Iterator[tuple[Term, Term | None]]:
    """Lists of addresses in what is handed over, each with the item lengths beside it."""
    if not term.contains(is_pointer) and not isinstance(term, Item | Call):
        return
    match term:
        case Sequence(items) if not any(is_pointer(_of_offset(one)) for one in items):
            for one in items:
                yield from _lists(one, tuple(other for other in items if other is not one))
        case Mapping(_, values):
            for one in values:
                yield from _lists(one, tuple(other for other in values if other is not one))
        case Call() as call if call.callee != "data_ptr":
            if call.contains(is_pointer):
                values = tuple(call.values())
                for one in values:
                    yield from _lists(one, tuple(other for other in values if other is not one))
        case _:
            yield term, _item_lengths(beside)


def _of_offset(term: Term) -> Term:
    match term:
        case Operation("+", left, right):
            return left if is_pointer(left) else right
    return term


def _item_lengths(beside: tuple[Term, ...]) -> Term | None:
    """The list beside the addresses that says how many bytes an item of each region takes."""
    lists = [one for one in beside if _is_list(one) and not one.contains(is_pointer)]
    lists = [one for one in lists if not one.contains(tells_whole)]
    told = [one for one in lists if one.contains(_tells_row)]
    # The length of a part of a buffer is a number of rows, too: the shorter text is the item's.
    return min(told, key=lambda one: one.size) if told else (lists[-1] if lists else None)


def _is_list(term: Term) -> bool:
    match term:
        case Many() | Sequence() | Choice():
            return True
        case Operation("+", left, right):
            return _is_list(left) or _is_list(right)
        case Item(Call(), key):
            return is_part(key) is not None
    return False


def _tells_row(term: Term) -> bool:
    match term:
        case Field(Item(), "nbytes") | Call("numel" | "nelement", Item()):
            return True
        case Call("stride", _, (Literal(0),)):
            return True
    return False


def tells_whole(term: Term) -> bool:
    match term:
        case Field(of, "nbytes") | Call("numel" | "nelement" | "nbytes", of) if of is not None:
            return not isinstance(of, Item)
    return False
