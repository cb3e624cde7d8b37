"""One hypothesis on one geometry: holds, broken at a region, slot and byte, or not exercised."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.assumptions import (
    Entry,
    Least,
    Number,
    Own,
    Relation,
    Starts,
    Unknown,
)
from kvlint.findings import Span, Status
from kvlint.geometry import Geometry, Region
from kvlint.hypotheses import Guard, Place
from kvlint.verdicts import Outcome, verdict
from tests.test_hypotheses import one

STRIDED = Relation(Starts(Own("slots")), "=", Starts(Entry("slots", 0)))
LIST_BY_LEAST = Relation(Starts(Least("slots")), "=", Starts(Entry("slots", 0)))
BY_LEAST = Relation(Starts(Own("slots")), "=", Starts(Least("slots")))
SAME_SLOTS = Relation(Entry("slots", 0), "=", Own("slots"))
ENOUGH_SLOTS = Relation(Entry("slots", 0), "<=", Own("slots"))
SAME_ITEMS = Relation(Entry("item length", 0), "=", Own("item length"))
WHERE = Place(Span("pool.py", 88, 1, 88, 5))


def region(number, slots, stride=256, **fields):
    given = {
        "name": f"region {number}",
        "address": number << 32,
        "length": slots * stride,
        "stride": stride,
        "transfer_length": stride,
        "memory_kind": "DRAM",
        "device": 0,
        "list": "kv",
    }
    return Region(**{**given, **fields})


def geometry(*slots, **fields):
    return Geometry(tuple(region(i, n, **fields) for i, n in enumerate(slots)))


DSV4 = geometry(164, 164, 161, 161, 288, 288)


def test_one_stride_for_every_region_is_broken_where_the_counts_part():
    found = verdict(one(relation=STRIDED), DSV4)
    assert found.outcome is Outcome.BROKEN
    assert (found.broken.region, found.broken.slot, found.broken.byte) == (3, 0, 0)
    # The example dsv4_slots moves bytes and sees the same: page 40 lands in slot 43.
    assert found.why == (
        "kv region 3 'region 3' slot 0 (byte 0): index 492 is taken for its slot 0, which is 489: "
        "3 too far, slot 3 (byte 768) of region 3 'region 3'; 3 regions break it"
    )


def test_one_stride_holds_where_the_last_region_alone_is_another():
    """Nothing starts behind it."""
    found = verdict(one(relation=STRIDED), geometry(164, 164, 161))
    assert (found.outcome, found.why) == (Outcome.HOLDS, "kv: 3 regions")


def test_one_count_for_every_region_reaches_past_the_end_of_the_smaller():
    found = verdict(one(relation=ENOUGH_SLOTS), DSV4)
    assert (found.broken.region, found.broken.slot, found.broken.byte) == (2, 161, 161 * 256)
    assert "3 too many, 768 bytes past its end; 2 regions break it" in found.why
    assert (found.broken.left, found.broken.right) == (164, 161)


def test_one_count_leaves_slots_of_the_larger_out():
    found = verdict(one(relation=SAME_SLOTS), geometry(164, 288))
    assert found.why.endswith("it has 288 slots, taken are 164: 124 are left out")


def test_one_item_length_finds_slots_elsewhere():
    regions = region(0, 8, stride=8448), region(1, 8, stride=16384, layer=7, name="index key")
    found = verdict(one(relation=SAME_ITEMS), Geometry(regions))
    assert found.why == (
        "kv region 1 'index key' (layer 7) slot 1 (byte 16,384): slots lie 16,384 bytes apart, "
        "taken is 8,448: slot p is looked for 7,936 * p bytes early"
    )


def test_a_length_that_is_taken_for_a_stride_finds_the_next_slot_early():
    relation = Relation(Own("transfer length"), "=", Own("item length"))
    found = verdict(one(relation=relation), geometry(4, transfer_length=200))
    assert (found.broken.slot, found.broken.byte) == (1, 256)
    assert found.why.endswith(
        "slots lie 256 bytes apart, taken is 200: slot p is looked for 56 * p bytes early"
    )


def test_one_transfer_length_is_told_with_the_first_byte_of_a_slot_that_differs():
    relation = Relation(Entry("transfer length", 0), "=", Own("transfer length"))
    regions = region(0, 4), region(1, 4, transfer_length=200)
    found = verdict(one(relation=relation), Geometry(regions))
    assert (found.broken.region, found.broken.slot, found.broken.byte) == (1, 0, 200)
    assert found.why.endswith("200 bytes of a slot are moved, taken is 256")


def test_any_other_quantity_is_told_with_both_values():
    relation = Relation(Entry("device", 0), "=", Own("device"))
    found = verdict(one(relation=relation), Geometry((region(0, 2), region(1, 2, device=3))))
    assert found.why == "kv region 1 'region 1': device is 3, taken is 0"


@pytest.mark.parametrize("list_name", ["kv", "kv.draft"])
def test_every_list_of_the_kind_is_decided(list_name):
    regions = [region(i, n, list=list_name) for i, n in enumerate((3, 2, 2))]
    other = [region(i + 9, 5, list="state.swa") for i in range(3)]
    found = verdict(one(relation=STRIDED), Geometry((*other, *regions)))
    assert found.outcome is Outcome.BROKEN
    assert found.broken.list == list_name
    assert found.broken.region == 2


def test_a_kind_that_the_geometry_has_not_is_not_exercised():
    found = verdict(one(relation=STRIDED, lists=("state",)), DSV4)
    assert (found.outcome, found.why) == (Outcome.NOT_EXERCISED, "there is no state list")


def test_a_quantity_or_value_that_nobody_captured_is_not_exercised():
    shape = Relation(Entry("shape", 0), "=", Own("shape"))
    assert verdict(one(relation=shape), DSV4).why == "kv: nothing says what 'shape' is here"
    of_a_name = Relation(Starts(Own("slots")), "=", Starts(Unknown("num_blocks")))
    found = verdict(one(relation=of_a_name), DSV4)
    assert (found.outcome, found.why) == (
        Outcome.NOT_EXERCISED,
        "kv: nothing says what 'num_blocks' is here",
    )


def settled(relation, *guards):
    return one(relation=relation, status=Status.GUARDED, guards=guards)


def test_what_a_construction_settles_holds_on_every_geometry_and_says_why():
    found = verdict(settled(BY_LEAST, Guard(None, WHERE)), DSV4)
    assert (found.outcome, found.why) == (Outcome.HOLDS, "kv: pool.py:88 settles it")


def test_a_geometry_that_a_guard_refuses_is_not_exercised():
    uniform = Guard(Relation(Own("slots"), "=", Entry("slots", 0)), WHERE)
    found = verdict(settled(SAME_SLOTS, uniform), DSV4)
    assert (found.outcome, found.why) == (
        Outcome.NOT_EXERCISED,
        "kv: pool.py:88 lets no such list through",
    )


def test_a_guard_that_lets_through_what_breaks_settles_nothing():
    weaker = Guard(Relation(Number(1), "<=", Own("slots")), WHERE)
    assert verdict(settled(SAME_SLOTS, weaker), DSV4).outcome is Outcome.BROKEN


def two_bytes(**fields):
    relation = Relation(Own("element size"), "=", Number(2))
    return one(relation=relation, every=False, **fields)


def test_of_a_size_that_one_place_measures_nobody_knows_the_regions():
    mixed = Geometry(
        (
            region(0, 4, dtype="bfloat16", element_size=2),
            region(1, 4, dtype="float8_e4m3fn", element_size=1),
        )
    )
    assert verdict(two_bytes(), mixed).outcome is Outcome.NOT_EXERCISED
    halves = geometry(4, 4, dtype="bfloat16", element_size=2)
    assert verdict(two_bytes(), halves).outcome is Outcome.HOLDS
    bytes_each = geometry(4, 4, dtype="float8_e4m3fn", element_size=1)
    assert verdict(two_bytes(), bytes_each).why == (
        "kv region 0 'region 0': element size is 1, taken is 2; 2 regions break it"
    )


def test_regions_of_bytes_do_not_say_their_elements():
    found = verdict(two_bytes(), geometry(4, dtype="torch.uint8", element_size=1))
    assert found.outcome is Outcome.NOT_EXERCISED


@st.composite
def laid_out(draw):
    """Regions in one memory, with room between them."""
    regions, at = [], 0
    for number in range(draw(st.integers(1, 6))):
        stride = draw(st.integers(1, 6))
        moved = draw(st.integers(1, stride))
        length = draw(st.integers(0, 30))
        at += draw(st.integers(0, 3))
        regions.append(
            region(number, 0, stride, address=at, transfer_length=moved, length=length, list="kv")
        )
        at += length
    return Geometry(tuple(regions))


def descriptors(regions, counts):
    """(region, slot, first byte) of each, as a list of so many for each region has them."""
    return [
        (i, p, regions[i].address + p * regions[i].stride)
        for i, count in enumerate(counts)
        for p in range(count)
    ]


@given(laid_out(), st.sampled_from(["own", "least"]))
def test_a_broken_stride_is_told_where_the_first_page_goes_elsewhere(of, built):
    """Bytes are named by their address, so that what an index brings is known."""
    regions = of.regions
    own = [one.slots for one in regions]
    counts = own if built == "own" else [min(own)] * len(own)
    found = verdict(one(relation=STRIDED if built == "own" else LIST_BY_LEAST), of)
    table = descriptors(regions, counts)
    starts = [sum(counts[:i]) for i in range(len(counts))]
    wrong = [i for i, start in enumerate(starts) if start != i * own[0]]
    in_part = [one.length // one.stride for one in regions]
    if in_part != own and found.outcome is Outcome.NOT_EXERCISED:
        assert "in part" in found.why
        return
    assert found.outcome is (Outcome.BROKEN if wrong else Outcome.HOLDS)
    if not wrong:
        return
    first = next((i for i in wrong if own[i]), wrong[0])
    assert (found.broken.region, found.broken.regions) == (first, len(wrong))
    assert found.broken.slot == (0 if own[first] else None)
    if first * own[0] < len(table):
        hit, slot, byte = table[first * own[0]]
        offset = byte - regions[hit].address
        assert f"slot {slot} (byte {offset:,}) of region {hit} " in found.why
    else:
        assert f"beyond the list of {len(table)} descriptors" in found.why


@given(laid_out())
def test_one_count_is_told_with_the_first_descriptor_and_the_last_byte_that_are_outside(of):
    regions = of.regions
    found = verdict(one(relation=ENOUGH_SLOTS), of)
    moved = descriptors(regions, [regions[0].slots] * len(regions))
    outside = [
        (i, p, begin + regions[i].transfer_length - regions[i].address - regions[i].length)
        for i, p, begin in moved
        if begin + regions[i].transfer_length > regions[i].address + regions[i].length
    ]
    if "in part" in found.why:
        assert any(one.length // one.stride != one.slots for one in regions)
        return
    assert found.outcome is (Outcome.BROKEN if outside else Outcome.HOLDS)
    if outside:
        first, slot, _ = outside[0]
        past = max(past for i, _, past in outside if i == first)
        assert (found.broken.region, found.broken.slot) == (first, slot)
        assert found.broken.byte == slot * regions[first].stride
        assert f", {past:,} bytes past its end" in found.why
        assert found.broken.regions == len({i for i, _, _ in outside})


@given(laid_out())
def test_one_item_length_is_told_with_the_first_slot_that_is_looked_for_elsewhere(of):
    regions = of.regions
    found = verdict(one(relation=SAME_ITEMS), of)
    elsewhere = [
        (i, p, p * (regions[0].stride - one.stride))
        for i, one in enumerate(regions)
        for p in range(one.slots)
        if p * regions[0].stride != p * one.stride
    ]
    if elsewhere and found.broken.slot == 1:
        first, slot, off = next(each for each in elsewhere if each[0] == found.broken.region)
        assert (slot, found.broken.byte) == (1, regions[first].stride)
        way = "late" if off > 0 else "early"
        assert f"slot p is looked for {abs(off):,} * p bytes {way}" in found.why
    assert (found.outcome is Outcome.HOLDS) == (len({one.stride for one in regions}) == 1)


@given(laid_out())
def test_a_length_that_is_taken_for_a_stride_is_told_with_a_region_that_has_a_next_slot(of):
    relation = Relation(Own("transfer length"), "=", Own("item length"))
    several = Guard(Relation(Number(2), "<=", Own("slots")), WHERE)
    found = verdict(one(relation=relation, guards=(several,)), of)
    wrong = [
        i for i, one in enumerate(of.regions) if one.transfer_length < one.stride and one.slots > 1
    ]
    assert (found.outcome is Outcome.BROKEN) == bool(wrong)
    if wrong:
        assert (found.broken.region, found.broken.regions) == (wrong[0], len(wrong))


def test_what_one_place_measures_may_be_of_either_list():
    of_two = [region(i, 4, dtype="bfloat16", element_size=2) for i in range(2)]
    of_one = [region(i + 2, 4, list="kv.draft", dtype="float8", element_size=1) for i in range(2)]
    found = verdict(two_bytes(), Geometry((*of_two, *of_one)))
    assert found.outcome is Outcome.NOT_EXERCISED
    assert found.why.endswith("which are meant is not known")


def test_bytes_beside_elements_leave_open_what_is_meant():
    regions = (
        region(0, 4, dtype="float8_e4m3fn", element_size=1),
        region(1, 4, dtype="uint8", element_size=1),
    )
    one_byte = one(relation=Relation(Own("element size"), "=", Number(1)), every=False)
    assert verdict(one_byte, Geometry(regions)).outcome is Outcome.NOT_EXERCISED


def test_it_does_not_hold_where_one_list_of_its_kind_cannot_be_decided():
    relation = Relation(Own("page size"), "=", Entry("page size", 0))
    known = region(0, 4, page_size=64)
    found = verdict(one(relation=relation), Geometry((known, region(1, 4, list="kv.draft"))))
    assert (found.outcome, found.why) == (
        Outcome.NOT_EXERCISED,
        "kv.draft: nothing says what 'page size' is here; holds on kv: 1 region",
    )


def test_a_list_that_a_guard_refuses_takes_nothing_from_what_holds_on_others():
    uniform = Guard(Relation(Own("slots"), "=", Entry("slots", 0)), WHERE)
    others = [region(i + 2, n, list="kv.draft") for i, n in enumerate((3, 2, 2))]
    found = verdict(settled(STRIDED, uniform), Geometry((region(0, 2), region(1, 2), *others)))
    assert found.outcome is Outcome.HOLDS


def test_a_guard_that_nobody_can_decide_here_leaves_it_open():
    same_pages = Guard(Relation(Own("page size"), "=", Entry("page size", 0)), WHERE)
    found = verdict(settled(SAME_SLOTS, same_pages), DSV4)
    assert (found.outcome, found.why) == (
        Outcome.NOT_EXERCISED,
        "kv: what pool.py:88 lets through is not known here",
    )


def test_slots_that_are_there_in_part_are_counted_by_some_code_and_not_by_other():
    """3 slots each; region length // item length is 3, 2, 3."""
    tail = {"transfer_length": 100, "length": 2 * 256 + 100}
    regions = (region(0, 3), region(1, 3, **tail), region(2, 3))
    found = verdict(one(relation=STRIDED), Geometry(regions))
    assert found.outcome is Outcome.NOT_EXERCISED
    assert "slots count that are there in part" in found.why


def test_many_lists_are_grouped_once_and_told_shortly():
    regions = [region(i, 2, list=f"kv.{i}") for i in range(20_000)]
    found = verdict(one(relation=STRIDED), Geometry(tuple(regions)))
    assert found.outcome is Outcome.HOLDS
    assert found.why.endswith("kv.3: 1 region; 19996 lists more")
