"""Regions, the numbered list made of them, and the frozen JSON form."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.geometry import DescriptorTable, Geometry, GeometryError, Region

SCHEMA_1 = """
{
  "schema": 1,
  "engine": "sglang 0.5.21",
  "process": "decode tp0",
  "regions": [
    {
      "name": "layer 0 key",
      "address": 140000000000000,
      "length": 41984,
      "stride": 256,
      "transfer_length": 256,
      "memory_kind": "VRAM",
      "device": 0,
      "list": "kv",
      "layer": 0,
      "role": "key",
      "dtype": "float8_e4m3fn",
      "element_size": 1,
      "page_size": 256,
      "group": "full"
    },
    {
      "name": "metadata",
      "address": 4096,
      "length": 64,
      "stride": 16,
      "transfer_length": 8,
      "memory_kind": "DRAM",
      "device": 0,
      "list": "aux"
    }
  ]
}
"""
KEY = Region(
    name="layer 0 key",
    address=140_000_000_000_000,
    length=41_984,
    stride=256,
    transfer_length=256,
    memory_kind="VRAM",
    device=0,
    list="kv",
    layer=0,
    role="key",
    dtype="float8_e4m3fn",
    element_size=1,
    page_size=256,
    group="full",
)
METADATA = Region(
    name="metadata",
    address=4096,
    length=64,
    stride=16,
    transfer_length=8,
    memory_kind="DRAM",
    device=0,
    list="aux",
)

texts = st.text(st.characters(categories=("L", "N", "P")), min_size=1, max_size=8)
regions = st.builds(
    Region,
    name=texts,
    address=st.integers(0, 2**63),
    length=st.integers(0, 300),
    stride=st.integers(1, 64),
    transfer_length=st.integers(1, 64),
    memory_kind=st.sampled_from(["VRAM", "DRAM"]),
    device=st.integers(0, 7),
    list=st.sampled_from(["kv", "state.swa", "aux"]),
    layer=st.none() | st.integers(0, 99),
    role=st.none() | texts,
    dtype=st.none() | texts,
    element_size=st.none() | st.integers(1, 8),
    page_size=st.none() | st.integers(1, 256),
    group=st.none() | texts,
)
lists = st.lists(regions, max_size=5, unique_by=lambda region: region.name).map(tuple)


@given(regions)
def test_slots_are_the_transfers_that_fit(region: Region) -> None:
    starts = range(0, region.length, region.stride)
    assert region.slots == sum(s + region.transfer_length <= region.length for s in starts)


@given(lists)
def test_the_table_numbers_every_slot_once_and_in_order(regions: tuple[Region, ...]) -> None:
    table = DescriptorTable(regions)
    slots = [(number, s) for number, region in enumerate(regions) for s in range(region.slots)]
    assert [table.index_of(*slot) for slot in slots] == list(range(len(table)))
    assert [table.locate(index) for index in range(len(table))] == slots


def test_an_empty_region_starts_where_the_next_one_does() -> None:
    empty = replace(KEY, length=255)
    assert DescriptorTable((METADATA, empty, KEY)).starts == (0, 4, 4, 168)


def test_what_is_not_in_the_table_is_named() -> None:
    table = DescriptorTable((METADATA, KEY))
    for region, slot in ((0, 4), (1, -1)):
        with pytest.raises(IndexError, match=f"no slot {slot} in region {region} .*it has"):
            table.index_of(region, slot)
    for region in (-1, 2):
        with pytest.raises(IndexError, match=f"no region {region}: the list has 2 regions"):
            table.index_of(region, 0)
    for index in (-1, 168):
        with pytest.raises(IndexError, match=f"no descriptor {index}: the list has 168"):
            table.locate(index)


def test_schema_1_reads_as_it_always_did() -> None:
    geometry = Geometry((KEY, METADATA), "sglang 0.5.21", "decode tp0")
    assert Geometry.from_json(SCHEMA_1) == geometry
    assert json.loads(geometry.to_json()) == json.loads(SCHEMA_1)


@given(lists, st.none() | texts, st.none() | texts)
def test_json_round_trips(
    regions: tuple[Region, ...], engine: str | None, process: str | None
) -> None:
    geometry = Geometry(regions, engine, process)
    assert Geometry.from_json(geometry.to_json().encode()) == geometry


def test_null_is_absent() -> None:
    form = json.loads(SCHEMA_1)
    form["regions"][1] |= {"layer": None, "group": None}
    assert Geometry.from_json(json.dumps(form | {"engine": None})).regions[1] == METADATA


def test_a_list_keeps_file_order() -> None:
    swapped = Geometry((replace(KEY, name="b"), METADATA, replace(KEY, name="a")))
    assert [region.name for region in swapped.regions_of("kv")] == ["b", "a"]
    assert swapped.regions_of("state") == ()
    assert swapped.lists == tuple(dict.fromkeys(region.list for region in swapped.regions))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"stride": 0}, "region 'metadata': field 'stride': 0 is less than 1"),
        ({"transfer_length": 0}, "field 'transfer_length': 0 is less than 1"),
        ({"length": -1}, "field 'length': -1 is less than 0"),
        ({"length": True}, "field 'length': True is not an integer"),
        ({"length": 64.0}, "field 'length': 64.0 is not an integer"),
        ({"length": float("nan")}, "field 'length': nan is not an integer"),
        ({"length": None}, "field 'length': None is not an integer"),
        ({"length": "64"}, "field 'length': '64' is not an integer"),
        ({"length": 10**4000}, "field 'length': an integer of 13288 bits does not fit 64 bits"),
        ({"address": 2**64 - 8}, "field 'length': 64 bytes end beyond the 64-bit address space"),
        ({"memory_kind": "cuda"}, "field 'memory_kind': 'cuda' is none of VRAM, DRAM"),
        ({"list": "kvs"}, "field 'list': 'kvs' is none of kv, state, aux"),
        ({"role": ""}, "field 'role': '' is not 1 to 200 printable characters"),
        ({"name": "a\nb"}, r"regions[1]: field 'name': 'a\nb' is not 1 to 200 printable"),
        ({"name": "x" * 9999}, "'" + "x" * 40 + "...' is not 1 to 200"),
        ({"name": ["a"]}, "field 'name': a list is not text"),
        ({"name": "layer 0 key"}, "region 'layer 0 key': field 'name': another region has"),
        ({"pagesize": 1}, "unknown field 'pagesize', did you mean 'page_size'?"),
        ({"zzz": 1}, "region 'metadata': unknown field 'zzz'"),
    ],
)
def test_a_region_that_cannot_be_is_refused(change: dict[str, Any], says: str) -> None:
    form = json.loads(SCHEMA_1)
    form["regions"][1] |= change
    refused(json.dumps(form), says)


@pytest.mark.parametrize("field", ["name", "address", "length", "stride", "list"])
def test_a_missing_field_is_named(field: str) -> None:
    form = json.loads(SCHEMA_1)
    del form["regions"][1][field]
    refused(json.dumps(form), f"field '{field}' is missing")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not readable as JSON"),
        (b"\xff\xfe\xfd", "not readable as JSON"),
        (SCHEMA_1[:300], "not readable as JSON"),
        ("[" * 100_000, "not readable as JSON"),
        ('{"schema": 1, "regions": ' + "9" * 5000 + "}", "not readable as JSON"),
        ("null", "not a kvlint geometry"),
        ("[1]", "not a kvlint geometry"),
        ('{"findings": []}', "field 'schema' is missing"),
        ('{"schema": 2, "regions": []}', "field 'schema': 2 is not known"),
        ('{"schema": true, "regions": []}', "field 'schema': True is not known"),
        ('{"schema": 1.0, "regions": []}', "field 'schema': 1.0 is not known"),
        ('{"schema": 1}', "field 'regions' is missing"),
        ('{"schema": 1, "regions": {}}', "field 'regions': an object is not a list"),
        ('{"schema": 1, "regions": [3]}', "regions[0]: 3 is not an object"),
        ('{"schema": 1, "regions": [], "engin": ""}', "did you mean 'engine'?"),
        ('{"schema": 1, "regions": [], "engine": 5}', "field 'engine': 5 is not text"),
        ('{"schema": 1, "schema": 1, "regions": []}', "field 'schema': given twice"),
        ('{"schema": 1, "regions": [NaN]}', "regions[0]: nan is not an object"),
        ('{"schema": Infinity, "regions": []}', "field 'schema': inf is not known"),
    ],
)
def test_what_is_no_geometry_is_refused(text: str | bytes, says: str) -> None:
    refused(text, says)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.sampled_from(sorted(json.loads(SCHEMA_1)["regions"][0])), anything)
def test_a_field_of_any_content_is_read_or_refused(field: str, content: Any) -> None:
    form = json.loads(SCHEMA_1)
    form["regions"][0][field] = content
    try:
        read = Geometry.from_json(json.dumps(form)).regions[0]
    except GeometryError:
        refused(json.dumps(form), f"field '{field}'")
    else:
        assert getattr(read, field) == content


def refused(text: str | bytes, says: str) -> None:
    with pytest.raises(GeometryError) as caught:
        Geometry.from_json(text)
    message = str(caught.value)
    assert says in message
    assert len(message.splitlines()) == 1
    assert len(message) < 400
