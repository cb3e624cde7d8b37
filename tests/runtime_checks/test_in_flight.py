"""Transfers in flight against each other, against a set of bytes for each."""

import gc
from dataclasses import dataclass

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.folding import fold
from kvlint.runtime_checks.in_flight import InFlight
from kvlint.runtime_checks.selection import Selection, select
from tests.runtime_checks.layouts import BASE, QUICK, Laid, bytes_of, listed, rows3, rows5, rows_of


@dataclass(frozen=True)
class Transfer:
    number: int
    destination: Selection


def _pool(count, stride, shift=0):
    return [Laid(BASE + n * 4096 + shift, 16, 0, stride, count) for n in range(3)]


# One memory in many forms: the same list twice, cut otherwise, interleaved, with holes, in rows,
# and one whose own slots overlap.
LAYOUTS = [
    (rows5(_pool(8, 32)), None),
    (rows3(_pool(8, 32)), None),
    (rows5(_pool(6, 32)), None),
    (rows5(_pool(8, 32, shift=16)), None),
    (rows5(_pool(16, 16)), None),
    (rows5(_pool(8, 32)), [-1, -1, -1]),
    (rows3(_pool(8, 32))[[5, 0, 17, 3, 9]], [-1] * 5),
    (rows3(_pool(8, 8)), None),
    (rows5([*_pool(8, 32)[:2], Laid(BASE, 64, 0, 64, 4)]), None),
]


def bytes_written(selection: Selection) -> set[tuple[int, int]]:
    rows = rows_of(selection.of.regions)
    return set().union(*(bytes_of(*rows[index]) for index in selection.indices), set())


def row_bytes(selection: Selection, position: int) -> set[tuple[int, int]]:
    return bytes_of(*rows_of(selection.of.regions)[selection.indices[position]])


@st.composite
def steps(draw):
    """Lists, then transfers that enter with slots of one of them, or leave."""
    kinds = draw(st.lists(st.integers(0, len(LAYOUTS) - 1), min_size=1, max_size=4))
    todo = []
    for number in range(1, draw(st.integers(2, 12))):
        if draw(st.integers(0, 3)) == 0:
            todo.append(("leave", draw(st.integers(1, number)), None))
        which = draw(st.integers(0, len(kinds) - 1))
        whole = draw(st.booleans())
        slots = draw(st.lists(st.integers(0, 15), min_size=1, max_size=3))
        todo.append((number, which, (whole, slots)))
    return kinds, todo


@QUICK
@given(steps())
def test_a_clash_is_told_where_and_only_where_a_byte_is_written_twice(case):
    kinds, todo = case
    in_flight, writing = InFlight(), {}
    lists = [listed(fold(LAYOUTS[kind][0]), LAYOUTS[kind][1], "remote", "b") for kind in kinds]
    for number, which, chosen in todo:
        if number == "leave":
            in_flight.leave(which)
            writing.pop(which, None)
            continue
        of, (whole, slots) = lists[which], chosen
        regions = of.regions
        every = [
            int(regions.starts[region]) + slot % int(regions.slots[region])
            for region in (range(len(regions)) if whole else [0])
            for slot in slots
        ]
        transfer = Transfer(number, select(of, np.array(every, np.int32)))
        mine = bytes_written(transfer.destination)
        clashing = {n for n, other in writing.items() if bytes_written(other) & mine}
        clash = in_flight.clash(transfer)
        assert (clash is not None) == bool(clashing)
        if clash is not None:
            assert clash.other in clashing
            shared = row_bytes(transfer.destination, clash.position)
            assert shared & bytes_written(writing[clash.other])
        else:
            in_flight.enter(transfer)
            writing[number] = transfer.destination
        assert len(in_flight) == len(writing)
    for number in list(writing):
        in_flight.leave(number)
    assert len(in_flight) == 0


def test_memory_of_another_agent_or_kind_is_other_memory():
    in_flight = InFlight()
    rows = fold(rows5(_pool(8, 32)))
    in_flight.enter(Transfer(1, select(listed(rows, side="remote", owner="b"), [0, 8, 16])))
    same, other = (listed(rows, side="remote", owner=owner) for owner in "bc")
    assert in_flight.clash(Transfer(2, select(same, [0, 8, 16]))).other == 1
    assert in_flight.clash(Transfer(3, select(other, [0, 8, 16]))) is None


def test_lists_that_are_gone_leave_nothing_behind():
    in_flight = InFlight()
    kept = listed(fold(rows5(_pool(8, 32))), side="remote", owner="b")
    first = Transfer(1, select(kept, [0, 8, 16]))
    in_flight.enter(first)
    in_flight.leave(1)
    for number in range(2, 200):
        count = 4 + number % 97
        passing = listed(fold(rows5(_pool(count, 32))), side="remote", owner="b")
        transfer = Transfer(number, select(passing, [1, count + 1, 2 * count + 1]))
        in_flight.enter(transfer)
        in_flight.leave(number)
    del passing, transfer
    gc.collect()
    (tables,) = in_flight._tables.values()
    assert len(tables) == 1
    assert all(len(table.tangled) == 0 for table in tables.values())
