"""The picture is to scale, no text in it lies on another, and what it says is text."""

from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.drawing import svg
from kvlint.drawing.places import IndexSet, List
from kvlint.drawing.scene import Kind, Mark
from kvlint.drawing.shapes import width_of
from kvlint.drawing.svg_rows import tick
from kvlint.geometry import Geometry
from tests.drawing.samples import (
    UNHURRIED,
    apart,
    odd_geometries,
    of_0_5_21,
    of_0_5_22_in_bf16,
    region,
)

SLOTS = (5, 6, 7, 100)


def bars(picture, sort="kvg-slots", x=None):
    found = [e for e in picture.iter("rect") if e.get("class") == sort]
    return [float(e.get("width")) for e in found if x is None or e.get("x") == x]


def said(picture):
    return ["".join(e.itertext()) for e in picture.iter("text")]


def shown(picture):
    """Texts as they are seen, without tooltips."""
    return [e[-1].tail if len(e) else e.text for e in picture.iter("text")]


def boxes(picture):
    """What each text takes at most: left, right, base line."""
    for element in picture.iter("text"):
        words = element[-1].tail if len(element) else element.text
        width = width_of(words, int(element.get("font-size")))
        left = float(element.get("x")) - (width / 2 if element.get("text-anchor") else 0)
        yield left, left + width, float(element.get("y")), int(element.get("font-size")), words


def assert_readable(picture):
    _, _, width, height = map(float, picture.get("viewBox").split())
    all_of_them = list(boxes(picture))
    for left, right, base, size, words in all_of_them:
        assert left >= 0, words
        assert right <= width, words
        assert size <= base <= height, words
    by_line = sorted(all_of_them, key=lambda box: box[2])
    for (l1, r1, b1, s1, w1), (l2, r2, b2, s2, w2) in combinations(by_line, 2):
        beside = r1 <= l2 or r2 <= l1
        above = b1 + s1 * 0.25 <= b2 - s2 * 0.8
        assert beside or above, (w1, w2)


def test_bars_are_as_long_as_regions_and_slots():
    picture = svg.layout(of_0_5_21())
    of_slots, of_regions = bars(picture)[::2], bars(picture)[1::2]
    for bytes_of, drawn in (("length", of_regions), ("stride", of_slots)):
        values = [getattr(one, bytes_of) for one in of_0_5_21().regions]
        widths = [value * drawn[0] / values[0] for value in values]
        assert drawn == pytest.approx(widths, abs=0.001)


def test_two_sides_have_one_scale():
    picture = svg.layout(of_0_5_21(), of_0_5_22_in_bf16())
    one, two = bars(picture)[1::4], bars(picture)[3::4]
    assert one[0] == two[0]
    assert two[2] / one[2] == pytest.approx(164 * 16_384 / (161 * 8_448), rel=1e-4)
    assert "16,384 B" in [e.text for e in picture.iter("text") if e.get("class") == "kvg-changed"]


def test_a_tail_is_as_long_as_its_bytes():
    regions = [region("a", 3, 1_000, length=3_500), region("b", 7, 1_000)]
    picture = svg.layout(apart(regions))
    tail = bars(picture, "kvg-tail")[0]  # the other is of the legend
    assert tail / bars(picture)[3] == pytest.approx(500 / 7_000, rel=1e-4)


def test_a_region_a_million_times_as_large_leaves_the_other_its_row():
    picture = svg.layout(apart([region("huge", 10**6, 10**6), region("tiny", 1, 10**6)]))
    assert "1 slot · 977 KiB" in shown(picture)
    assert bars(picture)[3] < 0.01


def test_what_short_labels_leave_is_for_the_regions():
    long, short = (svg.layout(apart([region(name, 9, 8)])) for name in ("k" * 60, "k"))
    assert long.get("viewBox").split()[2] == short.get("viewBox").split()[2]
    assert bars(short)[1] > bars(long)[1] * 1.3
    assert_readable(long)
    assert_readable(short)


def test_a_region_without_a_name_is_called_once():
    texts = shown(svg.layout(apart([region("region 0", 4, 8), region("keys", 9, 8)])))
    assert (texts.count("region 0"), texts.count("region 1")) == (1, 1)


@pytest.mark.parametrize(("slot", "step"), [(7, 1), (3, 2), (1, 5), (0.6, 10), (0.01, 500), (0, 0)])
def test_ticks_stand_apart(slot, step):
    assert tick(slot) == step


def test_an_index_set_is_drawn_as_lists_and_slots():
    of = List(of_0_5_21(), "kv", IndexSet(SLOTS))
    picture = svg.layout(of_0_5_21(), index_sets=[of])
    assert_readable(picture)
    texts = shown(picture)
    assert "slots 5-7, 100 of list kv: 12 of 24 indices right" in texts
    assert "index of region i, slot p: i * 164 + p, the slots of region 0" in texts
    assert "starts at 489, taken for 492 (+3)" in texts
    assert "regions 0-2: every slot right" in texts
    # To scale: 489 and 492 as the list is and as it is taken, of 1,226 descriptors.
    at = {words: (left + right) / 2 for left, right, _, size, words in boxes(picture) if size == 10}
    scale = (at["938"] - at["164"]) / (938 - 164)
    assert at["492"] - at["489"] == pytest.approx(3 * scale, abs=0.01)
    (stray,) = [e for e in picture.iter("line") if e[:1] and "index 497 " in e[0].text]
    assert float(stray.get("x1")) == pytest.approx(at["492"] + 5.5 * scale, abs=0.01)
    tips = [title.text for title in picture.iter("title")]
    assert "region 3 slot 5: index 497 goes to region 3 slot 8, byte 67,584" in tips


def test_each_wrong_index_has_an_arrow_to_the_slot_that_it_reaches():
    of = List(of_0_5_21(), "kv", IndexSet(SLOTS))
    picture = svg.layout(of_0_5_21(), index_sets=[of])
    ways = [e for e in picture.iter("path") if e.get("class") == "kvg-way"]
    assert len(ways) == 12


def test_right_and_wrong_differ_in_form_as_well():
    marks = [Mark("kv", 0, at, kind) for at, kind in ((5, Kind.RIGHT), (90, Kind.WRONG))]
    picture = svg.layout(of_0_5_21(), marks=[*marks, Mark("kv", 0, 130, Kind.MEANT)])
    forms = {e.tag for e in picture.iter() if e.get("class") in ("kvg-right", "kvg-cross")}
    assert forms == {"rect", "circle", "path"}
    assert {"meant, and reached", "reached, and not meant"} <= set(shown(picture))


def test_every_name_is_text_and_nothing_runs():
    names = ["<script>alert(1)</script>", "&\"'", "]]>", "<b>" * 60]
    regions = [region(name, 9, 64, role=name, group=name, dtype=name) for name in names]
    document = svg.document(svg.layout(apart(regions, engine="</svg>"), titles=["<title>"]))
    root = ElementTree.fromstring(document)
    assert {e.tag.rpartition("}")[2] for e in root.iter()} <= {
        *("svg", "g", "rect", "line", "path", "circle", "text", "title", "style")
    }
    assert not [name for e in root.iter() for name in e.attrib if name.startswith(("on", "id"))]
    assert names[0] in "".join(root.itertext())
    assert "http" not in document.replace("http://www.w3.org/2000/svg", "")


def test_62_regions_of_4000_slots_stay_a_small_picture():
    regions = [
        region(f"layer {at % 31} {role}", 4_000, 8_448, layer=at % 31, role=role)
        for role in ("key", "value")
        for at in range(31)
    ]
    picture = svg.layout(apart(regions))
    assert "layers 0-30 key" in shown(picture)
    assert "4,000 slots · 31 × 32.2 MiB · tick = 50 slots" in shown(picture)
    assert len(ElementTree.tostring(picture)) < 10_000
    assert_readable(picture)


def test_1000_regions_and_their_indices_stay_a_readable_picture():
    geometry = apart([region(f"r{at}", at + 100, 512) for at in range(1_000)])
    of = List(geometry, "kv", IndexSet((0, 50, 400)))
    picture = svg.layout(geometry, index_sets=[of])
    assert len(ElementTree.tostring(picture)) < 1_000_000
    assert_readable(picture)


def test_no_region_is_a_picture_as_well():
    assert "no regions" in shown(svg.layout(Geometry(())))


@UNHURRIED
@given(
    odd_geometries(),
    st.none() | odd_geometries(),
    st.sets(st.integers(0, 1 << 40), min_size=1, max_size=4),
)
def test_no_text_lies_on_another_whatever_the_geometry(one, two, slots):
    sides = [one] if two is None else [one, two]
    name = "kv"
    sets = [List(side, name, IndexSet(tuple(slots), 40, "own")) for side in sides]
    everywhere = all(side.regions_of(name) for side in sides)
    picture = svg.layout(*sides, index_sets=sets if everywhere else ())
    assert_readable(picture)
    root = ElementTree.fromstring(svg.document(picture))
    assert [e.text for e in root.iterfind(".//{*}title")] == [e.text for e in picture.iter("title")]
    for bar in picture.iter("rect"):
        assert float(bar.get("width")) >= 0
