"""The list by index, around what somebody points at."""

from hypothesis import given
from hypothesis import strategies as st

from kvlint.geometry import DescriptorTable
from kvlint.runtime_checks.page.strip import Pointed, spoken, strip
from tests.runtime_checks.page.test_document import geometry


def cells(svg):
    return [one.get("class") for one in svg.iter("rect")]


def texts(svg):
    return [one.text for one in svg.iter("text")]


def pointed(meant, taken):
    return [Pointed(meant, True, f"meant {meant}"), Pointed(taken, False, f"taken {taken}")]


def test_a_short_list_is_drawn_whole_and_goes_on_where_an_index_lies_beyond():
    svg = strip([2, 1, 1], pointed(3, 4), "list")
    assert cells(svg) == [
        "cell even",
        "cell even",
        "cell odd",
        "cell even meant",
        "cell beyond taken",
    ]
    assert texts(svg)[-2:] == ["taken 4", "meant 3"]
    assert "region 0" in texts(svg)


def test_of_a_long_list_what_lies_around_is_drawn():
    svg = strip([164, 164, 161, 161], pointed(494, 497), "list")
    assert len(cells(svg)) == 18
    assert "region 3, 161 slots" in texts(svg)
    assert {"487", "504", "159", "15"} <= set(texts(svg))


def test_between_places_far_apart_is_a_gap():
    svg = strip([1000, 1000], pointed(5, 1500), "list")
    assert "⋯" in texts(svg)
    assert len(cells(svg)) == 13 + 15


def test_where_nothing_is_pointed_at_nothing_is_drawn():
    assert strip([2, 1], [], "list") is None
    assert strip([], pointed(0, 1), "list") is None
    assert strip([2, 1], [Pointed(1 << 70, True, ""), Pointed(-1, True, "")], "list") is None


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(0, 60))
def test_an_index_is_spoken_of_as_the_list_has_it(slots, index):
    table = DescriptorTable(geometry(*slots).regions)
    if index >= len(table):
        assert spoken(slots, index) == f"beyond the list of {len(table)}"
    else:
        region, slot = table.locate(index)
        assert spoken(slots, index) == f"region {region} slot {slot}"


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=300),
    st.lists(st.integers(-1, 1 << 65), min_size=1, max_size=8),
)
def test_it_stays_small_whatever_is_pointed_at(slots, indices):
    svg = strip(slots, [Pointed(index, True, "here") for index in indices], "list")
    assert svg is None or len(cells(svg)) <= 60
