"""Which region meets which, against the positions one by one."""

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvlint.runtime_checks.folding import fold
from kvlint.runtime_checks.pairing import mispaired, unequal_counts
from kvlint.runtime_checks.selection import everything, select
from tests.runtime_checks.layouts import BASE, QUICK, Laid, listed, rows5


def a_list(counts, lengths, groups=None, side="local"):
    laid = [
        Laid(BASE + n * 10000, length, 0, length, count)
        for n, (count, length) in enumerate(zip(counts, lengths, strict=True))
    ]
    return listed(fold(rows5(laid)), groups, side, owner=side)


@st.composite
def both_sides(draw):
    regions = draw(st.integers(1, 4))
    counts = [draw(st.integers(2, 4)) for _ in range(regions)]
    lengths = [draw(st.sampled_from([8, 8, 8, 16])) for _ in range(regions)]
    local = a_list(counts, lengths)
    remote = a_list([n + draw(st.integers(0, 2)) for n in counts], lengths, side="remote")
    size = draw(st.integers(1, 12))
    picks = [draw(st.integers(0, regions - 1)) for _ in range(size)]
    if draw(st.booleans()):
        picks.sort()
    strayed = draw(st.integers(0, size - 1)) if draw(st.booleans()) else None
    indices = [], []
    for at, region in enumerate(picks):
        for side, of in enumerate((local, remote)):
            chosen = draw(st.integers(0, regions - 1)) if side and at == strayed else region
            slot = draw(st.integers(0, int(of.regions.slots[chosen]) - 1))
            indices[side].append(int(of.regions.starts[chosen]) + slot)
    return tuple(
        select(of, np.array(taken, np.int32))
        for of, taken in zip((local, remote), indices, strict=True)
    )


@QUICK
@given(both_sides())
def test_region_i_belongs_to_region_i(sides):
    local, remote = sides
    lengths = [side.of.regions.lengths[side.regions].tolist() for side in (local, remote)]
    found = mispaired(local, remote, by_number=True)
    if lengths[0] != lengths[1]:
        assert found.check.name == "unequal-lengths"
    elif local.regions.tolist() != remote.regions.tolist():
        assert found.check.name == "pairing"
        at = int(np.flatnonzero(local.regions != remote.regions)[0])
        assert found.place == remote.of.place(int(remote.regions[at]), int(remote.slots[at]))
    else:
        assert found is None
    assert unequal_counts(local, remote) is None


@QUICK
@given(both_sides())
def test_without_regions_any_slot_of_the_same_length_may_meet_any(sides):
    local, remote = sides
    lengths = [side.of.regions.lengths[side.regions].tolist() for side in (local, remote)]
    found = mispaired(local, remote, by_number=False)
    assert (found is None) == (lengths[0] == lengths[1])


@QUICK
@given(st.lists(st.integers(0, 15), min_size=1, max_size=8, unique=True))
def test_a_pool_may_be_sent_to_many_files(slots):
    # LMCache's and vLLM's object stores: one buffer here, one descriptor a key there.
    pool = a_list([16], [8])
    files = [Laid(0, 8, fd, 8, 1) for fd in range(len(slots))]
    store = listed(fold(rows5(files)), side="remote", owner="store")
    local = select(pool, np.array(slots, np.int32))
    remote = select(store, np.arange(len(slots)))
    assert mispaired(local, remote, by_number=True) is None


def test_sub_blocks_of_padded_blocks_may_meet_one_region():
    # vLLM with two block sizes: each local block is a row of its own.
    blocks = [Laid(BASE + n * 64, 16, 0, 16, 2) for n in range(6)]
    local = listed(fold(rows5(blocks)), groups=[0] * 6)
    remote = a_list([12], [16], side="remote")
    sides = select(local, np.arange(12)[::-1].copy()), select(remote, np.arange(12))
    assert mispaired(*sides, by_number=True) is None


def test_slots_of_one_request_that_happen_to_run_on_are_no_regions():
    # EPLB prepares lists for one exchange: rows in any order, runs by chance.
    here = [Laid(BASE, 16, 0, 16, 2), Laid(BASE + 320, 16, 0, 16, 1)]
    there = [Laid(BASE, 16, 0, 16, 1), Laid(BASE + 160, 16, 0, 16, 2)]
    local, remote = (listed(fold(rows5(laid)), groups=[0, 0]) for laid in (here, there))
    sides = select(local, np.arange(3)), select(remote, np.arange(3))
    assert mispaired(*sides, by_number=True) is None


def test_what_is_unpaired_is_named():
    local, remote = a_list([4, 4], [8, 8]), a_list([4, 4], [8, 8], side="remote")
    found = unequal_counts(select(local, [0, 1, 4]), select(remote, [0, 1]))
    assert found.place == local.place(1, 0)
    assert dict(found.values) == {"local indices": 3, "remote indices": 2}


def test_all_of_two_lists_is_compared_by_length_only():
    one = everything(a_list([4, 4], [8, 8]))
    other = everything(a_list([2, 6], [8, 8], side="remote"))
    assert mispaired(one, other, by_number=False) is None
