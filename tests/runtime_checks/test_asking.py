"""What a transfer selects against what was asked for, region by region."""

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvlint.geometry import Region
from kvlint.runtime_checks.asking import Asked, all_known, unasked
from kvlint.runtime_checks.checks import Breach
from kvlint.runtime_checks.folding import fold
from kvlint.runtime_checks.lists import DescriptorList
from kvlint.runtime_checks.selection import Selection, select
from tests.runtime_checks.layouts import BASE, QUICK, Laid, rows5

# Regions of two groups, and one that both share; slots of each.
GROUPS = ("0", "1", None, "0")
SLOTS = (8, 5, 9, 8)
STARTS = np.cumsum([0, *SLOTS])


def a_list(*, begin: int = 0) -> DescriptorList:
    """begin  bytes from where each region is declared to where the list has it"""
    laid = [Laid(BASE + n * 1000 + begin, 8, 0, 16, count) for n, count in enumerate(SLOTS)]
    declared = [
        Region(
            name=f"layer {n}",
            address=BASE + n * 1000,
            length=count * 16,
            stride=16,
            transfer_length=16,
            memory_kind="DRAM",
            device=0,
            list="kv",
            layer=n,
            group=group,
        )
        for n, (count, group) in enumerate(zip(SLOTS, GROUPS, strict=True))
    ]
    regions = fold(rows5(laid))
    pieces = np.arange(len(regions))
    return DescriptorList(0, "local", "agent", "DRAM", regions, declared, lambda: pieces)


def asked(*slots: list[int]) -> dict[tuple[str, str | None], np.ndarray]:
    each = {("kv", str(n)): np.array(group, np.int64) for n, group in enumerate(slots)}
    return {**each, ("kv", None): np.concatenate(list(each.values()))}


def indices_of(wanted: dict[tuple[str, str | None], np.ndarray], shift: int = 0) -> np.ndarray:
    """By group, as an engine writes them; all but group 0's a constant off."""
    rows = [
        start + wanted["kv", group] + (shift if group != "0" else 0)
        for group in (None, "0", "1")
        for start, its in zip(STARTS, GROUPS, strict=False)
        if its == group
    ]
    return np.concatenate(rows)


def found(indices: np.ndarray, wanted: Asked) -> Breach | None:
    selection = select(a_list(), indices)
    assert isinstance(selection, Selection)
    return unasked(selection, wanted)


@QUICK
@given(
    st.lists(st.integers(0, 7), max_size=4, unique=True),
    st.lists(st.integers(0, 4), max_size=4, unique=True),
    st.randoms(),
)
def test_what_was_asked_for_is_right_in_any_order(one, other, random):
    wanted = asked(one, other)
    indices = indices_of(wanted)
    assert found(indices, wanted) is None
    shuffled = indices.tolist()
    random.shuffle(shuffled)
    assert found(np.array(shuffled, np.int64), wanted) is None


@QUICK
@given(st.data())
def test_one_other_index_is_found(data):
    wanted = asked([1, 3], [0, 2])
    indices = indices_of(wanted).tolist()
    position = data.draw(st.integers(0, len(indices) - 1))
    instead = data.draw(st.integers(0, int(STARTS[-1]) - 1))
    changed = [*indices[:position], instead, *indices[position + 1 :]]
    if set(changed) != set(indices):
        breach = found(np.array(changed), wanted)
        assert breach is not None
        assert breach.check.name == "unasked-slot"


def test_a_whole_column_that_is_off_is_told_with_what_was_asked_for():
    wanted = asked([6], [1, 3])
    breach = found(indices_of(wanted, 1), wanted)
    assert breach is not None
    assert breach.message == (
        "local index 10 (at 5) is local region 1 'layer 1' (layer 1) slot 2 (byte 32), which was "
        "not asked for: slots 1, 3 of it were"
    )
    assert breach.values == {"slot selected": 2, "slots asked for": 2}


def test_a_slot_that_was_asked_for_and_is_left_out_is_told():
    wanted = asked([6, 2], [1])
    few = [index for index in indices_of(wanted).tolist() if index != STARTS[3] + 2]
    breach = found(np.array(few), wanted)
    assert breach is not None
    assert breach.message.startswith(
        "local region 3 'layer 3' (layer 3) slot 2 (byte 32) was asked"
    )


def test_regions_may_be_asked_for_one_by_one():
    each = {0: np.array([1]), 1: np.array([2, 3]), 2: np.array([], np.int64), 3: np.array([4])}
    indices = np.concatenate([STARTS[number] + slots for number, slots in each.items()])
    assert found(indices, each) is None
    assert all_known(a_list(), each)
    assert not all_known(a_list(), {0: each[0]})
    each[3] = np.array([5])
    breach = found(indices, each)
    assert breach is not None
    assert (breach.place.region, breach.place.slot) == (3, 4)


def test_where_slots_count_otherwise_nothing_is_said():
    selection = select(a_list(begin=16), np.array([0]))
    assert isinstance(selection, Selection)
    assert unasked(selection, asked([5], [5])) is None
    # Nor where nothing is known of what the region was asked for.
    assert found(np.array([5, 8]), {}) is None
