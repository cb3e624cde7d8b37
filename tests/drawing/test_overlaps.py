"""Bytes that regions have in common, and regions whose slots lie between each other's."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kvlint.drawing.overlaps import in_common, overlaps, shared
from kvlint.geometry import Geometry, Region
from tests.drawing.samples import region


def test_layers_whose_pages_take_turns_share_nothing():
    """As vLLM has them where all layers of a page lie together: 4 layers, 12 pages."""
    regions = tuple(
        region(
            f"layer {at}", 12, 65_536, transfer_length=16_384, address=at * 16_384, length=737_280
        )
        for at in range(4)
    )
    assert overlaps(Geometry(regions)) == {}
    one, *others = regions
    late = replace(one, name="late", address=16_384 - 8)
    # The first 8 bytes of each of its pages are the first layer's, the others the second's.
    (first, second) = shared(Geometry((one, others[0], late)))
    assert (first.one.region, first.two.region, first.bytes) == (one, late, 12 * 8)
    assert {second.one.region.name, second.two.region.name} == {"layer 1", "late"}
    assert second.bytes == 12 * (16_384 - 8)


def test_a_slot_that_reaches_into_the_next_one_of_the_other():
    one = region("one", 0, 10, transfer_length=4, length=50, address=0)
    two = region("two", 0, 10, transfer_length=4, length=50, address=7)
    assert in_common(one, two) == 4  # of slots 0 to 3, the last byte


def test_a_region_that_begins_within_another():
    one = region("one", 10, 100, address=0)
    two = region("two", 10, 100, address=925)
    assert overlaps(Geometry((two, one))) == {"two": 75}


def test_memory_is_told_apart_by_kind_and_device():
    one = region("one", 10, 100, address=0)
    other = replace(one, name="other", memory_kind="VRAM")
    assert overlaps(Geometry((one, other, replace(other, name="third", device=1)))) == {}


def test_bytes_behind_the_last_slot_are_nobodys():
    one = region("one", 3, 100, address=0, length=360)
    assert overlaps(Geometry((one, region("two", 3, 100, address=300)))) == {}


def moved(one: Region) -> set[int]:
    starts = (one.address + slot * one.stride for slot in range(one.slots))
    return {byte for start in starts for byte in range(start, start + one.transfer_length)}


@st.composite
def small_regions(draw: st.DrawFn) -> Region:
    stride, transfer = draw(st.integers(1, 12)), draw(st.integers(1, 14))
    given = {"transfer_length": transfer, "length": draw(st.integers(0, 300))}
    return region("r", 0, stride, address=draw(st.integers(0, 60)), **given)


@given(small_regions(), small_regions())
def test_it_is_what_counting_gives(one, two):
    assert in_common(one, two) == in_common(two, one) == len(moved(one) & moved(two))
