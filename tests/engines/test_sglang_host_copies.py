"""Copies between pools of released SGLang and its own host pools of them; the script says what is
SGLang's and what is not."""

from functools import cache

import pytest

VERSIONS = ("0.5.13", "0.5.20", "0.5.23")
POOLS = ("mha", "mla", "dsv4")


@pytest.fixture(scope="module")
def told_by(engine):
    return cache(
        lambda version: engine(f"sglang=={version}").result(
            "sglang_host_copies.py", KVLINT_RUNTIME="assert"
        )
    )


@pytest.fixture(params=VERSIONS)
def told(told_by, request):
    return told_by(request.param)


def test_right_copies_are_silent_and_bring_the_pages_back(told):
    for pool in POOLS:
        copies = told["copies"][f"{pool} layer_first"]
        assert (copies["backup"], copies["load"], copies["right"]) == (None, None, True), pool
    assert told["faults"] == {}


def test_right_copies_page_by_page_are_silent_up_to_the_kernel(told):
    for pool in POOLS:
        copies = told["copies"][f"{pool} page_first_direct"]
        assert (copies["backup"], copies["load"]) == ("no kernel", "no kernel"), pool


@pytest.mark.parametrize("layout", ["layer_first", "page_first_direct"])
@pytest.mark.parametrize("pool", POOLS)
def test_each_fault_is_raised_before_anything_is_copied(told, pool, layout):
    copies = told["copies"][f"{pool} {layout}"]
    found, page, end = copies["faults"], copies["page"], copies["host entries"]
    assert all(found.values())
    told_of = {fault: message.partition(": ")[0] for fault, message in found.items()}
    wanted = {
        "counts": "copy-counts",
        "host range": "copy-range",
        "device range": "copy-range",
        "twice": "duplicate-destination",
    }
    if (pool, layout) != ("mha", "layer_first") and (pool, layout) != ("mla", "layer_first"):
        # There single tokens are copied, wherever they are.
        wanted |= {"part of a page": "copy-pages", "torn page": "copy-pages"}
    assert told_of == wanted
    assert f"index {end} (at {page}) of host" in found["host range"]
    assert f"is not in it: it has {end} entries" in found["host range"]
    last = copies["entries"] // page * page
    assert f"index {last} (at {page}) of the device pool" in found["device range"]


def test_both_directions_of_every_host_pool_are_hooked(told):
    owners = {hook.rpartition(".")[0] for hook in told["hooks"]}
    for owner in ("MHATokenToKVPoolHost", "MLATokenToKVPoolHost", "DeepSeekV4PagedHostPool"):
        assert f"sglang.{owner}" in owners
    assert set(told["hooks"].values()) == {"installed"}


@pytest.mark.parametrize("pool", POOLS)
def test_what_pages_hold_is_followed_to_the_host_and_back(told, pool):
    seen = told["stages"][pool]
    assert (seen["backup"], seen["load"], seen["given back"]) == (None, None, None)
    stages = [(stage, where.partition(" ")[0]) for stage, where, _ in seen["stages"]]
    assert stages == [
        ("write-back", "device"),
        ("write-back", "host"),
        ("load-back", "host"),
        ("load-back", "device"),
    ]
    assert all(pages >= 2 for _, _, pages in seen["stages"])
    assert "page-changed: layer " in seen["changed"]
    assert "of host copy " in seen["changed"]
    assert " changed between load-back and load-back: from " in seen["changed"]
