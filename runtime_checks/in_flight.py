"""Who is writing which slot now: transfers in flight against each other.

A table holds, for the regions of one group, which transfer writes each slot; lists of the same
memory share it, so asking is one look at as many entries as pages. Lists that cut the same
memory otherwise are compared by bytes, and only while such a transfer is in flight.

Not thread-safe: whoever owns it holds a lock.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from kvlint.runtime_checks.destinations import Rows
from kvlint.runtime_checks.lists import DescriptorList
from kvlint.runtime_checks.regions import Integers, Regions, overlaps
from kvlint.runtime_checks.selection import Indices, Selection

Memory = tuple[str, str]
"""Name of the agent whose memory it is, and memory kind."""


class Writer(Protocol):
    """A transfer, as far as it writes."""

    @property
    def number(self) -> int:
        """From 1, unique in the process."""

    @property
    def destination(self) -> Selection: ...


@dataclass(eq=False)
class Table:
    """(slots,) number of the transfer that writes each slot of a group's regions, 0 for none.

    tangled  tables of regions that share bytes with these, this one among them where its own do
    """

    regions: Regions
    writers: NDArray[np.int64]
    members: set[int] = field(default_factory=set)
    tangled: "WeakSet[Table]" = field(default_factory=WeakSet)


@dataclass(frozen=True, eq=False)
class Clash:
    """Another transfer, and where in the new one's destination the first shared byte is."""

    other: int
    position: int


class InFlight:
    """All transfers in flight that this process has posted, by the memory they write."""

    def __init__(self) -> None:
        self._writers: dict[int, tuple[Writer, Selection]] = {}
        self._rows: dict[int, Rows] = {}
        self._loose: dict[Memory, set[int]] = {}
        self._tables: dict[Memory, WeakValueDictionary[bytes, Table]] = {}
        self._of_list: WeakKeyDictionary[DescriptorList, dict[bytes, Table]] = WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self._writers)

    def writing(self) -> Iterator[Writer]:
        for writer, _ in list(self._writers.values()):
            yield writer

    def get(self, number: int) -> Writer | None:
        found = self._writers.get(number)
        return found[0] if found else None

    def clash(self, writer: Writer) -> Clash | None:
        """Another transfer in flight that writes a byte which this one would write."""
        selection = writer.destination
        suspects: set[int] = set(self._loose.get(_memory(selection.of), ()))
        for table, slots in self._columns(selection):
            others = table.writers[slots]
            if others.any():
                at = int(np.flatnonzero(others)[0])
                position = _position(selection, slots, at)
                return Clash(int(others[at]), position)
            suspects.update(*(tangled.members for tangled in table.tangled))
        if selection.loose:
            suspects.update(self._in(_memory(selection.of)))
        suspects.discard(writer.number)
        ours = Rows.of(selection) if suspects else None
        for other in sorted(suspects):
            at_byte = self._shared(ours, other) if ours else None
            if at_byte is not None:
                return Clash(other, at_byte)
        return None

    def enter(self, writer: Writer) -> None:
        """The transfer is posted and not yet done."""
        selection = writer.destination
        self._writers[writer.number] = (writer, selection)
        for table, slots in self._columns(selection):
            table.writers[slots] = writer.number
            table.members.add(writer.number)
        if selection.loose:
            self._loose.setdefault(_memory(selection.of), set()).add(writer.number)

    def leave(self, number: int) -> None:
        """The transfer is over, however it ended. Unknown numbers are none of ours."""
        found = self._writers.pop(number, None)
        if found is None:
            return
        self._rows.pop(number, None)
        selection = found[1]
        for table, slots in self._columns(selection):
            mine = table.writers[slots] == number
            table.writers[slots[mine]] = 0
            table.members.discard(number)
        self._loose.get(_memory(selection.of), set()).discard(number)

    def _in(self, memory: Memory) -> Iterator[int]:
        for number, (_, selection) in self._writers.items():
            if _memory(selection.of) == memory:
                yield number

    def _shared(self, ours: Rows, other: int) -> int | None:
        """The position of the first row of a new transfer that shares a byte with the other."""
        theirs = self._rows.get(other)
        if theirs is None:
            theirs = self._rows[other] = Rows.of(self._writers[other][1])
        found: list[int] = []
        for device in np.unique(ours.devices):
            mine, there = ours.devices == device, theirs.devices == device
            begins, furthest = theirs.begins[there], np.maximum.accumulate(theirs.ends[there])
            if not len(begins):
                continue
            at = np.searchsorted(begins, ours.ends[mine], side="left") - 1
            shared = (at >= 0) & (furthest[at] > ours.begins[mine])
            found += ours.positions[mine][shared].tolist()
        return min(found, default=None)

    def _columns(self, selection: Selection) -> Iterator[tuple[Table, Indices]]:
        tables = self._of_list.get(selection.of)
        if tables is None:
            tables = self._of_list[selection.of] = {}
        for group, slots in selection.columns.items():
            members = selection.grouping.members(group)
            key = members.tobytes()
            if key not in tables:
                tables[key] = self._table(selection.of, members)
            yield tables[key], slots

    def _table(self, of: DescriptorList, members: Integers) -> Table:
        regions = of.regions.taken(members)
        all_of_memory = self._tables.setdefault(_memory(of), WeakValueDictionary())
        table = all_of_memory.get(regions.key)
        if table is None:
            table = Table(regions, np.zeros(int(regions.slots.max()), np.int64))
            for other in list(all_of_memory.values()):
                if next(overlaps(regions, other.regions), None) is not None:
                    table.tangled.add(other)
                    other.tangled.add(table)
            if regions.overlapping:
                table.tangled.add(table)
            all_of_memory[regions.key] = table
        return table


def _memory(of: DescriptorList) -> Memory:
    return of.owner, of.kind


def _position(selection: Selection, column: Indices, at: int) -> int:
    """Where in the indices the column's entry first stands."""
    group = next(group for group, slots in selection.columns.items() if slots is column)
    region = int(selection.grouping.members(group)[0])
    if selection.blocks is None:
        return at * len(selection.of.regions)
    before = np.flatnonzero(selection.blocks.regions == region)[0]
    return int(selection.blocks.counts[:before].sum()) + at
