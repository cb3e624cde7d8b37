"""Groups that right transfers show: read at once from then on, and no fault the less is found."""

from dataclasses import replace

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np

from kvlint.geometry import Region
from kvlint.runtime_checks.columns import as_guessed, settle, uneven, uneven_runs
from kvlint.runtime_checks.folding import fold
from kvlint.runtime_checks.known import Known
from kvlint.runtime_checks.lists import DescriptorList
from kvlint.runtime_checks.pairing import mispaired
from kvlint.runtime_checks.selection import Selection, select
from tests.runtime_checks.layouts import BASE, Laid, listed, rows3
from tests.runtime_checks.test_selection import a_list

SLOTS, REGIONS = 8, 6
EVEN, ODD = [0, 2, 4], [1, 3, 5]


@pytest.fixture
def lists():
    return a_list([SLOTS] * REGIONS), a_list([SLOTS] * REGIONS, side="remote")


def by_group(even: list[int], odd: list[int]) -> np.ndarray:
    """Group after group, as vLLM writes the blocks of its KV cache groups."""
    groups = ((EVEN, even), (ODD, odd))
    return np.array([r * SLOTS + s for g, slots in groups for r in g for s in slots], np.int32)


def by_region(even: list[int], odd: list[int]) -> np.ndarray:
    return np.sort(by_group(even, odd))


def sides(lists, ours: np.ndarray, theirs: np.ndarray) -> tuple[Selection, Selection]:
    local, remote = (select(of, given) for of, given in zip(lists, (ours, theirs), strict=True))
    return as_guessed(local, remote), as_guessed(remote, local)


def wrong(local: Selection, remote: Selection) -> list:
    return [found for a, b in ((local, remote), (remote, local)) if (found := uneven(a, b))]


@pytest.mark.parametrize("order", [by_group, by_region])
def test_the_second_right_transfer_is_read_by_columns(lists, order):
    first = sides(lists, order([1, 2], [5]), order([3, 4], [7]))
    assert not first[0].columns
    assert wrong(*first) == []
    settle(*first)
    local, remote = sides(lists, order([0, 6, 7], [2, 4]), order([6, 2, 1], [0, 5]))
    assert [slots.tolist() for slots in local.columns.values()] == [[0, 6, 7], [2, 4]]
    assert wrong(local, remote) == []


def test_one_group_alone_is_right_as_well(lists):
    settle(*sides(lists, by_group([1, 2], [5]), by_group([3, 4], [7])))
    local, remote = sides(lists, by_group([1], []), by_group([2], []))
    assert local.columns
    assert wrong(local, remote) == []


def test_a_slot_wrong_on_one_side_is_found_where_it_is(lists):
    settle(*sides(lists, by_group([1, 2], [5]), by_group([3, 4], [7])))
    theirs = by_group([3, 4], [7])
    theirs[-1] -= 2
    local, remote = sides(lists, by_group([1, 2], [5]), theirs)
    (found,) = wrong(local, remote)
    assert (found.place.side, found.place.region, found.place.slot) == ("remote", 5, 5)


def test_what_a_list_has_shown_counts_for_nothing_beside_one_that_has_not(lists):
    settle(*sides(lists, by_group([1, 2], [5, 6]), by_group([3, 4], [7, 0])))
    another = (a_list([SLOTS] * REGIONS), lists[1])
    local, remote = sides(another, by_region([1, 2], [1, 2]), by_region([3, 4], [7, 0]))
    (found,) = wrong(local, remote)
    assert found.place.side == "remote"


def test_groups_of_one_region_show_nothing(lists):
    ours = np.array([region * SLOTS + region for region in range(REGIONS)], np.int32)
    local, remote = sides(lists, ours, ours)
    settle(local, remote)
    assert [of.shown for of in lists] == [[], []]


def test_slots_past_the_end_of_a_shorter_region_of_a_group_are_no_column():
    counts = [4, 9, 2, 9]
    of = a_list(counts, [0, 1, 0, 1])
    starts = np.cumsum([0, *counts])
    read = select(of, np.array([starts[0] + 3, starts[2] + 3], np.int32))
    assert not read.columns
    assert read.at(1) == (3, 1)


def test_a_stride_so_small_that_all_lands_in_one_region_is_told_by_its_stride():
    lists = (a_list([32] * 4), a_list([32] * 4, side="remote"))
    ours, theirs = (np.array([r * 16 + p for r in range(4) for p in s]) for s in ([1, 2], [7, 8]))
    local, remote = sides(lists, ours, theirs)
    first, second = wrong(local, remote)
    assert (first.code, first.place.region, first.place.slot) == ("KV103", 0, 17)
    assert (second.code, second.place.region, second.place.slot) == ("KV103", 0, 23)


def test_a_staging_buffer_may_go_to_some_of_the_regions():
    staging, layers = a_list([64]), a_list([32] * 4, side="remote")
    pages = np.array([r * 32 + p for r in (1, 2) for p in (5, 9)])
    local, remote = sides((staging, layers), np.arange(4), pages)
    assert wrong(local, remote) == []
    assert mispaired(local, remote, by_number=True) is None
    pages[3] += 1
    local, remote = sides((staging, layers), np.arange(4), pages)
    (found,) = wrong(local, remote)
    assert found.place.side == "remote"


def runs(pages: dict[int, list[int]]) -> DescriptorList:
    """Pages of declared regions, a row each, as one `initialize_xfer` describes them."""
    rows = [Laid(BASE + r * 10000 + p * 8, 8, 0, 8, 1) for r, some in pages.items() for p in some]
    of = listed(fold(rows3(rows)))
    known = [
        Region(
            name=f"layer {r}", address=BASE + r * 10000, length=80, stride=8, transfer_length=8,
            memory_kind="DRAM", device=0, list="kv", layer=r,
        )
        for r in range(4)
    ]  # fmt: skip
    return replace(of, known=Known(known))


def test_pages_that_one_transfer_describes_are_the_same_in_every_declared_region_it_has():
    assert uneven_runs(runs({0: [1, 2, 5], 1: [1, 2, 5], 3: [5, 1, 2]})) is None
    found = uneven_runs(runs({0: [1, 2, 5], 1: [1, 2, 5], 3: [1, 2, 6]}))
    assert (found.place.layer, found.place.slot) == (3, 6)
    found = uneven_runs(runs({0: [1, 2], 1: [1], 2: [1, 2]}))
    assert (found.place.layer, found.place.slot) == (1, 2)
    assert found.message.endswith(
        "slot 2 (byte 16) is not moved, unlike in the other regions of its group"
    )
