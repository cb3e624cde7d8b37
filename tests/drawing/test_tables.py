"""The table of `geometry show`, and what is remarkable in a geometry."""

import json

from hypothesis import given

from kvlint.drawing import tables
from kvlint.drawing.remarks import remarks
from kvlint.geometry import Geometry
from tests.drawing.samples import UNHURRIED, apart, odd_geometries, of_0_5_21, region


def shown(geometry, **more):
    return list(tables.table(geometry, "a.json", lambda text, style: text, **more))


def test_regions_that_are_alike_are_one_line_with_numbers_layers_and_starts():
    lines = shown(of_0_5_21())
    assert lines[0] == "a.json, sglang 0.5.21: 6 regions, 15.3 MiB"
    assert lines[2] == "list kv: 6 regions, 1,226 descriptors"
    assert [" ".join(line.split()) for line in lines[3:7]] == [
        "region starts at layer role dtype slots item length transfer bytes tail memory",
        "0, 1 0, 164 2, 4 c4 kv uint8 164 37,440 37,440 6,140,160 0 DRAM 0",
        "2, 3 328, 489 2, 4 c4 index key uint8 161 8,448 8,448 1,360,128 0 DRAM 0",
        "4, 5 650, 938 3, 5 c128 kv uint8 288 1,728 1,728 497,664 0 DRAM 0",
    ]


def test_each_region_by_itself_where_that_is_asked_for():
    assert len(shown(of_0_5_21(), fold=False)) == len(shown(of_0_5_21())) + 3


def test_a_name_is_shown_where_layer_and_role_do_not_say_it():
    told = region("layer 3 key", 4, 10, layer=3, role="key")
    named = region("blk.4", 5, 10, layer=4, role="key")
    lines = shown(apart([told, named]))
    assert "layer 3 key" not in lines[4]
    assert "blk.4" in lines[5]


def test_what_is_moved_of_a_slot_and_what_is_no_slot():
    odd = region("k", 33, 65_536, transfer_length=60_000, length=33 * 65_536 + 32_768)
    assert shown(apart([odd]))[4].split() == [
        *("0", "0", "k", "33", "65,536", "60,000", "2,195,456", "32,768", "DRAM", "0")
    ]


def test_what_is_remarkable_in_a_real_list():
    assert list(remarks(of_0_5_21())) == [
        "list kv: regions differ in slot count: 164 (region 0, 1), 161 (region 2, 3), "
        "288 (region 4, 5)",
        "list kv: index i * 164 + p, with the slots of region 0, is wrong from region 3 on, which "
        "starts at 489, not 492",
        "list kv: regions differ in item length: 37,440 (region 0, 1), 8,448 (region 2, 3), "
        "1,728 (region 4, 5)",
    ]


def test_slots_that_overlap_are_padded_or_missing():
    regions = [
        region("longer", 9, 100, transfer_length=150),
        region("padded", 9, 100, transfer_length=60, length=860),
        region("none", 0, 100, length=99),
    ]
    assert [line for line in remarks(apart(regions)) if "list kv, region" in line] == [
        "list kv, region 0: transfers are longer than the item length: neighbouring slots overlap "
        "by 50 bytes",
        "list kv, region 1: 40 bytes of each slot are not moved",
        "list kv, region 2: no slot, shorter than one transfer",
    ]


def test_regions_that_overlap():
    one = region("one", 10, 100, address=0)
    two = region("two", 10, 100, address=900, list="state")
    apart_by_device = region("three", 10, 100, address=900, device=1, memory_kind="VRAM")
    (line,) = [m for m in remarks(Geometry((two, one, apart_by_device))) if "common" in m]
    assert line == "kv region 0 'one' and state region 0 'two' have 100 bytes in common"


def test_many_overlaps_are_counted():
    regions = tuple(region(f"r{at}", 10, 100, address=at * 10) for at in range(1_000))
    told = list(remarks(Geometry(regions)))
    assert told[0] == "kv region 0 'r0' and kv region 1 'r1' have 990 bytes in common"
    assert told[-1].endswith(" more have bytes in common")
    assert len(told) == 5


def test_what_agrees_is_not_remarkable():
    regions = [region(f"layer {at} key", 33, 1_024, layer=at, role="key") for at in range(8)]
    assert list(remarks(apart(regions))) == []


def test_data_has_every_region_and_no_address():
    data = tables.data(of_0_5_21(), "a.json")
    (only,) = data["lists"]
    assert only["descriptors"] == 1_226
    assert [one["starts_at"] for one in only["regions"]] == [0, 164, 328, 489, 650, 938]
    assert "address" not in json.dumps(data)


@UNHURRIED
@given(odd_geometries())
def test_any_geometry_has_a_table_of_one_line_a_row(geometry):
    lines = shown(geometry, fold=False)
    assert all("\n" not in line for line in lines)
    assert len(lines) > len(geometry.regions)
    json.dumps(tables.data(geometry, "a.json"))
