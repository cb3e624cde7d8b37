"""How the buffers that are handed over in one list count their slots."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce

from kvlint.analysis.addresses import Addresses, Pointer, factors, lists, measures_row, tells_row
from kvlint.analysis.allocations import Allocations, Buffer
from kvlint.analysis.arithmetic import Apart, apart
from kvlint.analysis.counts import Counting
from kvlint.analysis.frames import (
    DEEPEST,
    MOST_CASES,
    NO_FACTS,
    Cases,
    Object,
    Value,
    given,
    together,
)
from kvlint.analysis.link import Program
from kvlint.analysis.outline import Definition
from kvlint.analysis.seen import Seen
from kvlint.analysis.showing import show
from kvlint.analysis.terms import Call, Choice, Field, Literal, Operation, Parameter, Term
from kvlint.findings import Span


@dataclass(frozen=True, eq=False)
class Count:
    """The slots of one buffer: `rows`, divided by the rows that one item takes (None: one).

    `rows` speaks of the fields of the object that holds the buffer. `whose` is the buffer's
    name, `at` where the rows are computed, in the definition `scope`, `handed_at` where its
    address is taken.
    """

    rows: Term
    rows_an_item: Term | None
    whose: str
    at: Span
    scope: str
    handed_at: Span
    holder: Object | None
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


class Providers:
    """What definitions that hand over lists of addresses put into them."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.seen = Seen(program)
        self.addresses = Addresses(self.seen)
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
            for pointers, items in lists(root.term):
                if (pointers, items) in done:
                    continue
                done.add((pointers, items))
                told = Value(items, frame) if items is not None else None
                for _, found in self.addresses.pointers(Value(pointers, frame), told):
                    yield from self._handed(found)

    def _handed(self, pointers: tuple[Pointer, ...]) -> Iterator[Handed]:
        cases = {counts: None for _, counts in together(map(self._counts, pointers))}
        for counts in cases:
            read = tuple(one for one in counts if one is not None)
            yield Handed(read, len(read) == len(counts))

    def _counts(self, pointer: Pointer) -> Cases[tuple[Count | None, ...]]:
        """The counts of all buffers that one address stands for, together."""
        result: Cases[tuple[Count | None, ...]] = []
        for facts, buffers in self.allocations.behind(pointer.buffer):
            parts = [self._count(buffer, pointer) for buffer in buffers]
            result += given(together(parts), facts)
        return result[:MOST_CASES]

    def _count(self, buffer: Buffer, pointer: Pointer) -> Cases[tuple[Count | None, ...]]:
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
        self, rows: Value, buffer: Buffer, pointer: Pointer
    ) -> Cases[tuple[Count | None, ...]]:
        home = rows.frame.this or buffer.of
        origin = self._origin(rows, 0)
        at, scope = self.seen.span(origin), origin.frame.body.definition.key

        def by_maker() -> Cases[Term]:
            if home is None or home.made is None:
                return []
            return self.counting.formulas(rows, home, made=True)

        found: Cases[tuple[Count | None, ...]] = []
        for facts, formula in self.counting.formulas(rows, home):
            for more, an_item in self._rows_an_item(pointer.item, home):
                count = Count(formula, an_item, buffer.name, at, scope, pointer.at, home, by_maker)
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
        all_ = list(factors(item.term))
        rest = [one for one in all_ if not measures_row(one)]
        if not any(map(tells_row, all_)):
            return [(NO_FACTS, Call(show(item.term), None, ()))]
        if not rest:
            return [(NO_FACTS, None)]
        product = reduce(lambda left, right: Operation("*", left, right), rest)
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
