"""What is drawn: rows of regions that are alike, and of two sides."""

from dataclasses import replace

from hypothesis import given

from kvlint.drawing.places import IndexSet, List, marks
from kvlint.drawing.scene import MOST_ROWS, Kind, Mark, scene
from kvlint.geometry import Geometry
from tests.drawing.samples import (
    UNHURRIED,
    apart,
    odd_geometries,
    of_0_5_21,
    of_0_5_22_in_bf16,
    region,
)


def layers(count, slots=164, *roles, stride=8_448):
    return [
        region(f"layer {layer} {role}", slots, stride, layer=layer, role=role)
        for layer in range(count)
        for role in roles
    ]


def rows(*given, **more):
    return [(row.first.label, row.first.numbers) for row in scene(*given, **more).rows]


def test_a_few_regions_are_a_row_each():
    assert [numbers for _, numbers in rows(of_0_5_21())] == [(at,) for at in range(6)]


def test_many_that_are_alike_are_one_row_wherever_they_stand():
    drawn = rows(apart(layers(21, 4_000, "key", "value")))
    assert drawn == [
        ("layers 0-20 key", tuple(range(0, 42, 2))),
        ("layers 0-20 value", tuple(range(1, 42, 2))),
    ]


def test_what_differs_in_one_number_is_a_row_of_its_own():
    regions = [*layers(15, 164, "key"), region("layer 15 key", 161, 8_448, layer=15, role="key")]
    assert [label for label, _ in rows(apart(regions))] == ["layers 0-14 key", "layer 15 key"]


def test_marks_keep_rows_apart_where_they_differ():
    mark = Mark("kv", 3, 5, Kind.WRONG)
    drawn = rows(apart(layers(20, 164, "key")), marks=[mark])
    assert [numbers for _, numbers in drawn] == [(*range(3), *range(4, 20)), (3,)]


def test_the_middle_of_too_many_rows_is_left_out_and_counted():
    drawn = scene(apart([region(f"r{at}", at + 1, 512) for at in range(1_000)]))
    (band,) = drawn.bands
    assert len(band.rows) == MOST_ROWS
    assert band.left_out == (MOST_ROWS // 2, 1_000 - MOST_ROWS)
    assert band.rows[0].first.region.name == "r0"
    assert band.rows[-1].first.region.name == "r999"
    assert band.sizes == ((1_000, 500_500),)


def test_two_sides_stand_beside_each_other_region_by_region():
    drawn = scene(of_0_5_21(), of_0_5_22_in_bf16())
    assert drawn.titles == ("sglang 0.5.21", "sglang 0.5.22")
    assert [bool(row.changed) for row in drawn.rows] == [False, False, True, True, False, False]
    one, two = drawn.rows[3].lanes
    assert (one.region.slots, two.region.slots) == (161, 164)
    assert (one.starts, two.starts) == ((489,), (492,))
    assert set(drawn.rows[3].changed) == {"stride", "transfer_length", "length", "slots"}


def test_what_one_side_lacks_stands_where_it_follows_on_the_other():
    a, b, c = (region(name, 4, 10) for name in "abc")
    drawn = scene(apart([a, c]), apart([a, b, c]))
    assert [row.first.label for row in drawn.rows] == ["a", "b", "c"]
    assert drawn.rows[1].lanes[0] is None


def test_lists_with_another_name_on_each_side_are_one():
    one, two = (
        Geometry(tuple(replace(r, list=name) for r in of_0_5_21().regions))
        for name in ("kv.1", "kv.2")
    )
    mark = Mark("kv.2", 3, 5, Kind.WRONG, side=1)
    (band,) = scene(one, two, marks=[mark]).bands
    assert band.list == "kv.1 | kv.2"
    assert band.sizes == ((6, 1_226),) * 2
    assert [len(lane.marks) for lane in band.rows[3].lanes] == [0, 1]


def test_a_list_alone_can_be_drawn():
    state = region("state", 2, 100, list="state")
    both = Geometry((*of_0_5_21().regions, state))
    assert rows(both, lists=["state"]) == [("state", (0,))]


def test_bytes_after_the_last_slot_are_no_slot():
    regions = [
        region("tail", 33, 65_536, length=33 * 65_536 + 32_768),
        region("short", 0, 100, length=50, transfer_length=100),
        region("padded", 4, 100, transfer_length=60),
        region("longer", 3, 100, transfer_length=150, length=360),
    ]
    lanes = [row.first for row in scene(apart(regions)).rows]
    assert [(lane.used, lane.tail) for lane in lanes] == [
        (33 * 65_536, 32_768),
        (0, 50),
        (400, 0),
        (350, 10),
    ]


@UNHURRIED
@given(odd_geometries(), odd_geometries())
def test_every_region_of_both_sides_is_in_exactly_one_row(one, two):
    drawn = scene(one, two, unfolded=0)
    for side, geometry in enumerate((one, two)):
        lanes = [row.lanes[side] for row in drawn.rows]
        names = [at.region.name for lane in lanes if lane for at in lane.members]
        assert sorted(names) == sorted(r.name for r in geometry.regions)
    assert drawn.longest == max((r.length for g in (one, two) for r in g.regions), default=0)


def test_marks_of_an_index_set_stand_at_their_regions():
    of = List(of_0_5_21(), "kv", IndexSet((5, 6, 7, 100)))
    lanes = [row.first for row in scene(of_0_5_21(), marks=marks(of)).rows]
    assert lanes[3].pointed == (
        *((slot, Kind.MEANT) for slot in (5, 6, 7)),
        *((slot, Kind.WRONG) for slot in (8, 9, 10)),
        (100, Kind.MEANT),
        (103, Kind.WRONG),
    )
