"""Index sets read against a list, and each side's columns, against the indices one by one."""

import array

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.checks import Breach
from kvlint.runtime_checks.columns import uneven
from kvlint.runtime_checks.folding import fold
from kvlint.runtime_checks.lists import DescriptorList
from kvlint.runtime_checks.selection import Selection, select
from tests.runtime_checks.layouts import BASE, QUICK, Laid, listed, rows5

COUNTS = st.lists(st.sampled_from([1, 2, 3, 3, 3, 5, 5]), min_size=1, max_size=5)


def a_list(counts: list[int], groups: list[int] | None = None, **names: str) -> DescriptorList:
    laid = [Laid(BASE + n * 10000, 8, 0, 8, count) for n, count in enumerate(counts)]
    return listed(fold(rows5(laid)), groups, **names)


def places(counts: list[int], indices: list[int]) -> list[tuple[int, int]]:
    """(region, slot) of each index, found by counting."""
    every = [(region, slot) for region, count in enumerate(counts) for slot in range(count)]
    return [every[index] for index in indices]


def groups_of(counts: list[int]) -> dict[int, list[int]]:
    """The regions of each group: those of equally many slots, single ones in none."""
    return {n: [r for r, c in enumerate(counts) if c == n] for n in set(counts) if n > 1}


@st.composite
def right(draw: st.DrawFn, counts: list[int]) -> list[int]:
    """Each chosen group's slots in each of its regions, by region or by slot."""
    chosen = {n: draw(st.lists(st.integers(0, n - 1), max_size=4)) for n in set(counts)}
    starts = np.cumsum([0, *counts]).tolist()
    rows = [
        (region, at, starts[region] + slot)
        for region, count in enumerate(counts)
        for at, slot in enumerate(chosen[count])
    ]
    if draw(st.booleans()):
        rows.sort(key=lambda row: (row[1], row[0]))
    return [index for _, _, index in rows]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Counts of regions, and indices: right, nearly right, or any."""
    counts = draw(COUNTS)
    indices = draw(right(counts))
    for _ in range(draw(st.integers(0, 2))):
        if indices:
            at = draw(st.integers(0, len(indices) - 1))
            new = draw(st.integers(0, sum(counts) - 1))
            match draw(st.sampled_from(["put", "swap", "drop", "add"])):
                case "put":
                    indices[at] = new
                case "swap":
                    other = draw(st.integers(0, len(indices) - 1))
                    indices[at], indices[other] = indices[other], indices[at]
                case "drop":
                    indices.pop(at)
                case "add":
                    indices.insert(at, new)
    return counts, indices


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64, np.int16, ">i4"])
@QUICK
@given(cases())
def test_every_index_is_named_and_columns_are_claimed_only_where_they_are(dtype, case):
    counts, indices = case
    of = a_list(counts)
    read = select(of, np.array(indices, dtype))
    assert isinstance(read, Selection)
    truth = places(counts, indices)
    assert list(zip(read.regions.tolist(), read.slots.tolist(), strict=True)) == truth
    if read.columns:
        members = groups_of(counts)
        numbers = {int(of.groups[regions[0]]): regions for regions in members.values()}
        for group, column in read.columns.items():
            for region in numbers[group]:
                assert [slot for r, slot in truth if r == region] == column.tolist()
        grouped = {region for group in read.columns for region in numbers[group]}
        assert {r for r, _ in truth if of.groups[r] >= 0} <= grouped
    if read.blocks is not None:
        spelled = [
            region
            for region, each in zip(read.blocks.regions, read.blocks.counts, strict=True)
            for _ in range(each)
        ]
        assert spelled == [region for region, _ in truth]


@QUICK
@given(cases())
def test_a_column_is_wrong_where_the_regions_of_a_group_get_different_slots(case):
    counts, indices = case
    read = select(a_list(counts), np.array(indices, np.int32))
    truth = places(counts, indices)
    wrong = any(
        len({tuple(sorted(s for r, s in truth if r == region)) for region in regions}) > 1
        for regions in groups_of(counts).values()
    )
    assert (uneven(read, None) is not None) == wrong


@QUICK
@given(cases())
def test_no_column_is_claimed_where_nothing_says_what_is_a_region(case):
    counts, indices = case
    read = select(a_list(counts, groups=[-1] * len(counts)), np.array(indices, np.int32))
    assert not read.columns
    assert uneven(read, None) is None


ODD = {
    "list": lambda indices: list(indices),
    "tuple": tuple,
    "numpy numbers": lambda indices: [np.int64(index) for index in indices],
    "arrays of no dimension": lambda indices: [np.array(index) for index in indices],
    "range": lambda indices: range(indices[0], indices[0] + len(indices)),
    "every third": lambda indices: np.repeat(np.array(indices, np.int32), 3)[::3],
    "array": lambda indices: array.array("i", indices),
    "objects": lambda indices: np.array(indices, object),
    "reversed": lambda indices: np.array(indices[::-1], np.int64)[::-1],
}


@pytest.mark.parametrize("form", ODD)
def test_indices_are_read_in_every_form_that_nixl_takes(form):
    read = select(a_list([5, 5]), ODD[form]([1, 2, 3]))
    assert read.indices.tolist() == [1, 2, 3]
    assert read.slots.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "given",
    [None, 3, "12", b"12", [1.5], ["a"], [[1]], np.array(3), np.zeros((2, 2), int), iter([1])],
)
def test_what_nixl_does_not_take_is_no_selection(given):
    assert select(a_list([5, 5]), given) is None


@pytest.mark.parametrize("empty", [[], (), np.array([], np.int32), np.array([], np.int64)])
def test_nothing_is_selected_by_nothing(empty):
    read = select(a_list([5, 5]), empty)
    assert len(read.indices) == 0
    assert uneven(read, None) is None


@pytest.mark.parametrize(
    ("given", "check"),
    [
        (np.array([0.0, 3.7]), "index-dtype"),
        (np.array([np.nan]), "index-dtype"),
        (np.array([np.inf, 1]), "index-dtype"),
        (np.array([True, False]), "index-dtype"),
        (np.array([1 + 2j]), "index-dtype"),
        (np.array([2**32 + 3]), "index-width"),
        (np.array([2**63 + 3], np.uint64), "index-width"),
        (np.array([-(2**32) + 3]), "index-width"),
        ([2**32 + 3], "index-width"),
        (np.array([10]), "index-range"),
        (np.array([-1], np.int32), "index-range"),
        ([2**40 + 10], "index-range"),
    ],
)
def test_indices_that_are_none_are_named(given, check):
    found = select(a_list([5, 5]), given)
    assert isinstance(found, Breach)
    assert found.check.name == check


def test_an_index_past_the_list_is_told_as_the_slot_that_it_would_be():
    found = select(a_list([5, 5]), np.array([0, 13]))
    assert found.message == (
        "local index 13 (at 1) is not in the list of 10 descriptors; it would be local region 1 "
        "slot 8 (byte 64), of 5 slots"
    )


@pytest.mark.parametrize("stride", [4, 7])
@pytest.mark.parametrize("pages", [[0], [1, 2], [3, 0]])
def test_one_stride_for_all_regions_is_told_as_such(stride, pages):
    counts = [5, 5, 5, 9, 9]
    local = select(a_list(counts), _strided(pages, [0, 5, 10, 15, 24]))
    remote = select(a_list(counts, side="remote"), _strided(pages, [n * stride for n in range(5)]))
    found = uneven(remote, local)
    assert (found.code, found.formula) == ("KV103", f"descriptors before region i = i * {stride}")
    twice = uneven(remote, remote)
    assert twice.code == "KV103"


def _strided(pages, starts):
    return np.array([start + page for start in starts for page in pages], np.int32)


def test_groups_that_both_sides_keep_apart_are_several_though_their_counts_agree():
    # vLLM's KV cache groups: one count of blocks for all regions, each group its own blocks.
    blocks = {0: [1, 4], 1: [6], 2: []}
    mine = [r * 8 + b for r, g in enumerate([0, 1, 0, 1, 2]) for b in blocks[g]]
    peer = [r * 8 + (b + 2) % 8 for r, g in enumerate([0, 1, 0, 1, 2]) for b in blocks[g]]
    local, remote = (
        select(a_list([8] * 5, side=side), np.array(indices, np.int32))
        for side, indices in (("local", mine), ("remote", peer))
    )
    assert not local.columns
    assert uneven(local, remote) is None
    assert uneven(remote, local) is None


def test_a_slot_that_only_one_side_has_wrong_is_told_though_the_other_has_groups():
    mine = np.array([r * 8 + b for r in range(4) for b in ([1, 2] if r < 2 else [5])], np.int32)
    peer = mine.copy()
    peer[1] += 1
    local, remote = select(a_list([8] * 4), mine), select(a_list([8] * 4, side="remote"), peer)
    found = uneven(remote, local)
    assert (found.place.region, found.place.slot) in {(0, 3), (1, 2)}
