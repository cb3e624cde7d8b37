"""What released code does over real NIXL when nothing is armed: the fault is real, and repaired."""

import pytest

BUFFERS = 9  # three groups of three layers
PAGES = [5, 6, 7, 100]


def outcome(engine, version):
    return engine(f"sglang=={version}").result("prepared_lists.py")


def by_group(c4, index, c128):
    return [c4] * 3 + [index] * 3 + [c128] * 3


def test_one_count_for_pools_that_differ_is_refused_where_nothing_lies_behind(engine):
    found = outcome(engine, "0.5.21")
    assert found["slots"] == by_group(c4=164, index=161, c128=288)
    assert found["refused"] == "nixlNotFoundError: NIXL_ERR_NOT_FOUND"


@pytest.mark.parametrize("version", ["0.5.22", "0.5.23"])
def test_with_the_least_count_every_page_arrives(engine, version):
    found = outcome(engine, version)
    assert found["slots"] == by_group(c4=164, index=164, c128=288)
    assert found["written"] == [PAGES] * BUFFERS
    assert found["right"] == [PAGES] * BUFFERS
