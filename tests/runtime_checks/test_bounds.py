"""Which declared region a region of a list is."""

import pytest

pytest.importorskip("numpy", reason="the wheel numpy is missing")

import numpy as np

from kvlint.geometry import Region
from kvlint.runtime_checks.bounds import declared_for
from kvlint.runtime_checks.extents import Extents
from kvlint.runtime_checks.folding import fold

BASE = 1 << 40
SLOTS = 8


def known(name: str, offset: int, stride: int, moved: int) -> Region:
    return Region(
        name=name,
        address=BASE + offset,
        length=(SLOTS - 1) * stride + moved,
        stride=stride,
        transfer_length=moved,
        memory_kind="DRAM",
        device=0,
        list="kv",
    )


def names(rows: list[tuple[int, int, int]], declared: list[Region]) -> list[str | None]:
    """Of rows of (offset, length, stride)."""
    listed = [(BASE + offset, length, 0, stride, SLOTS) for offset, length, stride in rows]
    regions = fold(np.array(listed, np.uint64))
    extents = Extents.of([(one.address, one.length, one.device) for one in declared])
    found = declared_for(regions, "DRAM", extents, declared)
    return [one.name if one else None for one in found]


def test_layers_that_share_each_row_are_told_apart_whatever_their_lengths():
    declared = [known("key", 0, 100, 20), known("wide", 20, 100, 70), known("index", 90, 100, 10)]
    assert names([(0, 20, 100), (20, 70, 100), (90, 10, 100)], declared) == [
        "key",
        "wide",
        "index",
    ]


def test_a_part_of_each_slot_is_of_the_region_that_holds_it():
    declared = [known("key", 0, 100, 50), known("value", 50, 100, 50)]
    assert names([(25, 25, 100), (50, 25, 100), (75, 25, 100)], declared) == [
        "key",
        "value",
        "value",
    ]


def test_memory_that_is_cut_in_two_ways_has_the_names_of_both():
    declared = [
        known("attention", 0, 100, 100),
        known("conv", 0, 100, 10),
        known("state", 10, 100, 60),
        known("twice as long", 0, 200, 200),
    ]
    rows = [(0, 100, 100), (0, 10, 100), (10, 60, 100), (0, 200, 200), (0, 50, 50)]
    assert names(rows, declared) == ["attention", "conv", "state", "twice as long", None]
