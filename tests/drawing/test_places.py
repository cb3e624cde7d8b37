"""Where the indices of a set go, in lists as real pools have them and in any other."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.drawing.places import Fate, IndexSet, List, Under, goes, marks, says
from kvlint.drawing.scene import Kind
from kvlint.geometry import DescriptorTable, Geometry
from tests.drawing.samples import C128, INDEX, UNHURRIED, apart, odd_geometries, of_0_5_21, region

SLOTS = (5, 6, 7, 100)


def going(geometry, slots=SLOTS, stride="first", counts="own", name="kv"):
    return List(geometry, name, IndexSet(slots, stride, counts))


def where(of):
    return {(p.region, p.slot): (p.index, p.fate, p.hit) for p in of.places()}


def test_one_stride_over_lists_of_own_counts_goes_wrong_from_the_third_region_on():
    found = where(going(of_0_5_21()))
    assert found[2, 100] == (428, Fate.RIGHT, (2, 100, 100 * INDEX))
    assert found[3, 5] == (497, Fate.WRONG, (3, 8, 8 * INDEX))
    assert found[4, 5] == (661, Fate.WRONG, (4, 11, 11 * C128))
    # The sixth region's are too few by more than a region: they are its neighbour's.
    assert found[5, 5] == (825, Fate.WRONG, (4, 175, 175 * C128))
    assert found[5, 100] == (920, Fate.WRONG, (4, 270, 270 * C128))
    assert Counter(fate for _, fate, _ in found.values()) == {Fate.RIGHT: 12, Fate.WRONG: 12}


@pytest.mark.parametrize("way", ["own", "first", "least", 161])
def test_indices_and_list_made_with_one_count_agree(way):
    found = where(going(of_0_5_21(), stride=way, counts=way))
    assert {(r, s): hit[:2] for (r, s), (_, _, hit) in found.items()} == {k: k for k in found}
    assert {fate for _, fate, _ in found.values()} == {Fate.RIGHT}


def test_a_list_with_too_many_slots_reaches_past_a_region_into_what_lies_there():
    first = region("first", 164, INDEX, address=0)
    short = region("short", 161, INDEX, address=1 << 40)
    behind = region("behind", 40, 1_000, address=(1 << 40) + 161 * INDEX + 100, list="state")
    of = going(Geometry((first, short, behind)), (163,), counts="first")
    place = list(of.places())[1]
    assert (place.index, place.fate, place.hit) == (327, Fate.PAST, (1, 163, 163 * INDEX))
    assert place.past == INDEX
    # Slot 163 begins two slots behind the end of 161, and 100 bytes less behind the next region's.
    assert place.under == (Under("state", 0, "behind", 16, 2 * INDEX - 100),)
    assert goes(of, place) == (
        "region 1 slot 163, byte 1,377,024, which is none of its slots (161): 8,448 bytes beyond "
        "its end, in state region 0 'behind' slot 16, byte 16,796"
    )


def test_a_descriptor_may_reach_past_the_end_by_a_part_and_into_a_tail():
    short = region("short", 3, 100, address=0, length=350)
    behind = region("behind", 1, 45, address=350, length=70)
    (place, _) = going(Geometry((short, behind)), (3,), stride=9, counts=9).places()
    assert (place.fate, place.past, place.under) == (
        Fate.PAST,
        50,
        (Under("kv", 1, "behind", 0, 0),),
    )
    (_, farther) = list(going(Geometry((short, behind)), (3, 4), stride=9, counts=9).places())[:2]
    assert farther.under == (Under("kv", 1, "behind", None, 50),)
    assert "'behind' after its last slot, byte 50" in goes(
        going(Geometry((short, behind))), farther
    )


def test_nothing_lies_past_the_end_in_other_memory():
    short = region("short", 2, 100, address=0)
    other = region("other", 9, 100, address=200, memory_kind="VRAM")
    (place, _) = going(Geometry((short, other)), (2,), stride=9, counts=9).places()
    assert (place.fate, place.under) == (Fate.PAST, ())


def test_a_region_of_no_bytes_lies_nowhere():
    short = region("short", 2, 100, address=0)
    nothing = region("nothing", 0, 100, address=250)
    (place, _) = going(Geometry((short, nothing)), (2,), stride=9, counts=9).places()
    assert (place.fate, place.under) == (Fate.PAST, ())


def test_an_index_beyond_the_list_is_no_descriptor():
    of = going(apart([region("one", 3, 8), region("two", 3, 8)]), (0, 2), stride=5)
    assert [(p.index, p.fate) for p in of.places()] == [
        (0, Fate.RIGHT),
        (2, Fate.RIGHT),
        (5, Fate.WRONG),
        (7, Fate.NONE),
    ]
    assert goes(of, list(of.places())[-1]) == "no descriptor: the list has 6"


def test_a_slot_that_a_region_lacks_is_never_right():
    (place, _) = going(apart([region("one", 3, 8), region("two", 3, 8)]), (4,)).places()
    assert (place.exists, place.fate, place.hit) == (False, Fate.WRONG, (1, 1, 8))


def test_what_is_marked():
    kinds = Counter((m.region, m.kind) for m in marks(going(of_0_5_21())))
    assert kinds[3, Kind.MEANT] == kinds[3, Kind.WRONG] == 4
    assert (kinds[5, Kind.MEANT], kinds[5, Kind.WRONG], kinds[4, Kind.WRONG]) == (4, 0, 8)
    assert kinds[0, Kind.RIGHT] == 4


_ways = st.one_of(st.sampled_from(["own", "first", "least"]), st.integers(1, 50))


@UNHURRIED
@given(odd_geometries(), st.sets(st.integers(0, 1 << 20), max_size=5), _ways, _ways)
def test_right_is_what_the_descriptor_table_has_at_that_index(geometry, slots, stride, counts):
    for name in {one.list for one in geometry.regions}:
        of = going(geometry, tuple(slots), stride, counts, name)
        table = DescriptorTable(geometry.regions_of(name))
        places = list(of.places())
        assert len(places) == len(slots) * len(of.regions)
        for place in places:
            assert says(of, place).isprintable()
            if place.fate is Fate.RIGHT:
                assert place.exists
                assert place.hit == (place.region, place.slot, place.byte)
            if counts == "own" and place.hit:
                assert table.locate(place.index) == place.hit[:2]
            assert (place.hit is None) == (place.index >= len(of))
            assert (place.past > 0) == (place.fate is Fate.PAST)
        if stride == counts == "own":
            assert all(p.fate is Fate.RIGHT for p in places if p.exists)
