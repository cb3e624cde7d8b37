"""What kvlint says of the pools of released SGLang, made by their own classes in host memory, and
reached through SGLang's own loader of plug-ins.

Faults are planted into what the released methods answer, at the middle entry of each list.
"""

from functools import cache
from typing import Any

import pytest

VERSIONS = ("0.5.13", "0.5.17", "0.5.20", "0.5.21", "0.5.22", "0.5.23")
LACKING = {
    "0.5.13": {"dsv4_unified", "minimax", "mxfp8", "qsa", "unified_swa"},
    "0.5.17": {"qsa"},
}
KV = "get_contiguous_buf_infos"
STATES = "get_state_buf_infos"
# The entry at which faults are planted: its number and its name.
AT = {
    ("mha", KV): (3, "layer 0 value"),
    ("mha_float8", KV): (3, "layer 0 value"),
    ("mha_second_stage", KV): (3, "layer 3 value"),
    ("mla", KV): (1, "layer 1 kv"),
    ("dsa", KV): (1, "layer 1 kv"),
    ("swa", KV): (2, "layer 1 value"),
    ("swa", STATES): (2, "layer 0 swa value"),
    ("hybrid", KV): (2, "layer 1 value"),
    ("hybrid", STATES): (3, "layer 0 temporal state"),
    ("dsv4", KV): (3, "layer 4 c4 index key"),
    ("dsv4_small", KV): (3, "layer 4 c4 index key"),
    ("dsv4", STATES): (5, "layer 5 swa kv"),
}
# The window of a layer, with the layer's pages behind it in the same tensor: what reaches into
# these is in another list, of which this one says nothing.
BEFORE_PAGES = {("dsv4_unified", "get_unified_swa_ring_buf_infos")}
# All pages of all layers in one region: how much a slot is nothing but the answer tells.
SLOTS_OF_ONE_BYTE = {"unified_swa"}


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def told_by(engine):
    return cache(
        lambda version: engine(f"sglang=={version}").result("sglang_pools.py", KVLINT_RUNTIME="log")
    )


@pytest.fixture
def told(told_by, version) -> Any:
    return told_by(version)


def lists(told: Any) -> list[tuple[str, str, Any]]:
    """Those that have entries."""
    return [
        (pool, method, faults)
        for pool, methods in told["pools"].items()
        if isinstance(methods, dict)
        for method, faults in methods.items()
        if faults["one_item_length_less"]
    ]


def brief(records: list[Any]) -> list[tuple[Any, ...]]:
    return [(r["check"], r["region"], r["region_name"]) for r in records]


def test_every_pool_of_the_zoo_is_made_and_asked(told, version):
    lacking = {name for name, methods in told["pools"].items() if isinstance(methods, str)}
    assert lacking == LACKING.get(version, set())
    assert {(pool, method) for pool, method, _ in lists(told)} >= AT.keys()


def test_pools_as_they_are_are_silent(told):
    assert [(pool, method, faults["right"]) for pool, method, faults in lists(told)] == [
        (pool, method, []) for pool, method, _ in lists(told)
    ]


def test_regions_are_called_by_layer_and_role(told, version):
    found = {
        (pool, method): (r["region"], r["region_name"])
        for pool, method, faults in lists(told)
        for r in faults["elements_of_one_byte"]
    }
    wanted = dict(AT)
    if version == "0.5.13":
        # Which layers have states, and of what ratio, those pools do not keep.
        wanted["hybrid", STATES] = (3, "temporal state 0")
        wanted["dsv4", STATES] = (6, "layer 2 compression state")
    assert found | wanted == found


def test_an_item_length_for_elements_of_one_byte_is_told_with_what_a_slot_takes(told):
    for pool, method, faults in lists(told):
        if pool in SLOTS_OF_ONE_BYTE:
            continue
        (record,) = faults["elements_of_one_byte"]
        given, wanted = record["values"].values()
        assert (record["check"], 2 * given) == ("item-length", wanted), (pool, method)
    (record,) = told["pools"]["mha"][KV]["elements_of_one_byte"]
    assert record["code"] == "KV201"
    assert "right for elements of 1 byte, bfloat16 has 2" in record["message"]


@pytest.mark.parametrize("fault", ["length_of_a_longer_one", "a_page_late"])
def test_what_reaches_past_the_tensor_or_into_the_next_layer_is_told(told, fault):
    for pool, method, faults in lists(told):
        if (pool, method) in BEFORE_PAGES:
            continue
        (planted,) = faults["elements_of_one_byte"] or [{"region": 0}]
        ((check, region, _),) = brief(faults[fault])
        # Layers in one tensor lie side by side: the next one is hit.
        next_one = {"pool-length": 0, "region-overlap": 1}[check]
        assert region == planted["region"] + next_one, (pool, method)


def test_lists_of_different_lengths_are_told(told):
    for _, _, faults in lists(told):
        (record,) = faults["one_item_length_less"]
        addresses, lengths, item_lengths = record["values"].values()
        assert (record["check"], addresses - item_lengths) == ("pool-lists", 1)
        assert addresses == lengths


def test_what_is_the_first_regions_is_told_of_each_other_one(told, version):
    faults = told["pools"]["dsv4"][KV]
    # Without a count for each pool C4 and index-K have one length in pages, and not in bytes.
    assert brief(faults["item_length_of_the_first_for_all"]) == [
        ("item-length", 2, "layer 2 c4 index key"),
        ("item-length", 3, "layer 4 c4 index key"),
        ("item-length", 4, "layer 3 c128 kv"),
        ("item-length", 5, "layer 5 c128 kv"),
    ]
    assert brief(faults["length_of_the_first_for_all"]) == [
        ("pool-length", 2, "layer 2 c4 index key"),
        ("pool-length", 3, "layer 4 c4 index key"),
        ("pool-length", 4, "layer 3 c128 kv"),
        ("pool-length", 5, "layer 5 c128 kv"),
    ]
    first = faults["length_of_the_first_for_all"][0]
    slots = 164 if version in ("0.5.21", "0.5.22", "0.5.23") else 161
    assert first["values"]["bytes of region 2"] == slots * 37440


def test_a_tensor_of_which_every_other_row_is_anothers_is_told(told):
    assert {name: brief(records) for name, records in told["strided"].items()} == {
        "mha": [("item-length", 3, "layer 0 value")],
        "mla": [("item-length", 0, "layer 0 kv")],
    }
    assert {r["code"] for records in told["strided"].values() for r in records} == {"KV404"}
