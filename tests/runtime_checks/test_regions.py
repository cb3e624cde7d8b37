"""Descriptor rows folded back into regions, against the rows and against single bytes."""

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.extents import Extents, cut
from kvlint.runtime_checks.folding import RowsError, fold
from kvlint.runtime_checks.regions import overlaps
from tests.runtime_checks.layouts import (
    BASE,
    QUICK,
    Laid,
    bytes_of,
    found,
    layouts,
    region_bytes,
    registered,
    rows3,
    rows5,
    rows_of,
    told,
)

ANY_ROWS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 9), st.integers(0, 1)), max_size=24
)
PIECES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20), st.integers(0, 1)), max_size=6)


@QUICK
@given(ANY_ROWS)
def test_every_index_has_the_address_of_its_row_whatever_the_rows(rows):
    array = np.array(rows, np.uint64).reshape(-1, 3)
    regions = fold(array)
    assert rows_of(regions) == rows
    assert regions.descriptors == len(rows)
    assert all(regions.slots >= 1)


@QUICK
@given(ANY_ROWS, PIECES)
def test_what_the_memory_tells_changes_no_address(rows, pieces):
    array = np.array(rows, np.uint64).reshape(-1, 3)
    assert rows_of(found(fold(array), pieces)[0]) == rows


@QUICK
@given(layouts())
def test_strided_rows_say_the_same_as_the_rows_that_they_stand_for(laid):
    assert rows_of(fold(rows5(laid))) == rows_of(fold(rows3(laid)))


@QUICK
@given(layouts(), st.booleans(), st.booleans())
def test_regions_registered_each_by_itself_are_found(laid, padded, strided):
    rows = fold(rows5(laid) if strided else rows3(laid))
    regions, pieces = found(rows, registered(laid, padded=padded))
    starts = np.cumsum([0, *(r.count for r in laid)])
    assert told(regions) == [
        (start, r.address, r.length, r.device, r.stride if r.count > 1 else 0)
        for start, r in zip(starts, laid, strict=False)
    ]
    assert pieces.tolist() == list(range(len(laid)))


@QUICK
@given(layouts(counts=st.integers(2, 6)))
def test_dense_regions_that_do_not_touch_are_found_without_help(laid):
    apart = [
        Laid(r.address + 1000 * n * n, r.length, r.device, r.length, r.count)
        for n, r in enumerate(sorted(laid, key=lambda r: r.address))
    ]
    regions = fold(rows3(apart))
    assert regions.addresses.tolist() == [r.address for r in apart]


def test_a_region_that_runs_past_its_end_into_the_next_is_left_whole():
    six = Laid(BASE, 16, 0, 16, 6), Laid(BASE + 6 * 16, 16, 0, 16, 6)
    over = [Laid(BASE, 16, 0, 16, 8), six[1]]
    regions, held = found(fold(rows5(over)), registered(list(six), padded=True))
    assert regions.slots.tolist() == [8, 6]
    assert held.tolist() == [-1, 1]


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros(3, np.uint64),
        np.zeros((2, 4), np.uint64),
        np.zeros((2, 3), np.int32),
        np.zeros((2, 3), np.float64),
        np.zeros((2, 3), ">u8"),
        np.zeros((2, 3), object),
        np.zeros((2, 3, 5), np.uint64),
    ],
)
def test_what_nixl_does_not_take_is_no_list(rows):
    with pytest.raises(RowsError):
        fold(rows)


@pytest.mark.parametrize(
    "row",
    [
        (BASE, 0, 0, 64, 4),
        (BASE, 64, 0, 0, 4),
        (BASE, 64, 0, 63, 4),
        (BASE, 64, 0, 64, 0),
        (BASE, 64, 0, 64, 1 << 62),
        (BASE, 64, 0, 64, (1 << 64) - 1),
        (BASE, (1 << 64) - 1, 0, (1 << 64) - 1, 1),
    ],
)
def test_regions_that_nixl_refuses_are_no_list(row):
    with pytest.raises(RowsError):
        fold(np.array([row], np.uint64))


@pytest.mark.parametrize("width", [3, 5])
@pytest.mark.parametrize("dtype", [np.uint64, np.int64])
def test_empty_and_transposed_lists_are_read(width, dtype):
    assert len(fold(np.zeros((0, width), dtype))) == 0
    columns = np.ones((width, 2), dtype)
    assert fold(columns.T).descriptors == 2


@QUICK
@given(ANY_ROWS, ANY_ROWS)
def test_no_pair_that_shares_a_byte_is_missed(ours, theirs):
    one = fold(np.array(ours, np.uint64).reshape(-1, 3))
    other = fold(np.array(theirs, np.uint64).reshape(-1, 3))
    for a_list, b_list in ((one, other), (one, one)):
        pairs = list(overlaps(a_list, b_list))
        shared = {
            (a, b)
            for a in range(len(a_list))
            for b in range(len(b_list))
            if not (a_list is b_list and b <= a)
            and region_bytes(a_list, a) & region_bytes(b_list, b)
        }
        assert set(pairs) == shared
        assert len(pairs) == len(set(pairs))


@QUICK
@given(layouts())
def test_a_list_overlaps_where_two_of_its_slots_share_a_byte(laid):
    laid = [*laid, Laid(laid[0].address + 4, 4, laid[0].device, 8, 2)]
    regions = fold(rows5(laid))
    slots = [bytes_of(*row) for row in rows_of(regions)]
    shared = any(a & b for n, a in enumerate(slots) for b in slots[:n])
    assert regions.overlapping == shared


@QUICK
@given(ANY_ROWS, PIECES)
def test_what_holds_a_region_is_the_smallest_piece_with_all_its_bytes(rows, pieces):
    regions = fold(np.array(rows, np.uint64).reshape(-1, 3))
    extents = Extents.of(pieces)
    for number, held in enumerate(extents.holding_all(regions).tolist()):
        address, end = int(regions.addresses[number]), int(regions.ends[number])
        device = int(regions.devices[number])
        holding = [
            (length, n)
            for n, (start, length, at) in enumerate(pieces)
            if at == device and start <= address and end <= start + length
        ]
        assert (held >= 0) == bool(holding)
        if holding:
            assert pieces[held][1] == min(holding)[0]
            assert held in [n for _, n in holding]


@QUICK
@given(PIECES, st.integers(0, 70), st.integers(0, 1))
def test_the_nearest_piece_holds_the_byte_or_is_least_far(pieces, address, device):
    near = Extents.of(pieces).nearest(address, device)
    here = [(start, length) for start, length, at in pieces if at == device]
    if not here:
        assert near is None
        return

    def far(piece):
        start, length = piece
        return max(start - address, address - (start + length) + 1, 0)

    start, length, at = pieces[near]
    assert at == device
    assert far((start, length)) == min(map(far, here))


def test_more_pieces_than_slots_cost_nothing_and_touching_ones_cut():
    pieces = [(BASE + n * 64, 64, 0) for n in range(100)]
    rows = fold(rows3([Laid(BASE, 16, 0, 16, 400)]))
    regions = cut(rows, Extents.of(pieces))
    assert regions.slots.tolist() == [4] * 100
