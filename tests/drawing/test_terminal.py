"""The same in a terminal: to scale, in the width there is, in plain signs where there are no
others."""

from hypothesis import given
from hypothesis import strategies as st

from kvlint.drawing import routes, terminal
from kvlint.drawing.places import IndexSet, List, marks
from kvlint.drawing.scene import scene
from kvlint.drawing.words import columns
from kvlint.geometry import Geometry
from tests.drawing.samples import (
    UNHURRIED,
    apart,
    odd_geometries,
    of_0_5_21,
    of_0_5_22_in_bf16,
    region,
)


def plain(text, style):
    return text


def drawn(what, width=100, signs=terminal.UNICODE):
    return list(terminal.lines(what, width, signs, plain))


def test_bars_are_to_scale():
    lines = drawn(scene(apart([region("a", 8, 100), region("b", 3, 100), region("c", 1, 1)])))
    a, b, c = (line.count("█") for line in lines[3:])
    assert b == a * 3 // 8
    # Too little for the scale, but there.
    assert c == 0
    assert "▏" in lines[5]


def test_a_tail_is_to_scale_as_well():
    lines = drawn(
        scene(apart([region("a", 8, 100), region("b", 2, 100, length=400, transfer_length=260)]))
    )
    bar = lines[3].count("█")
    assert abs(lines[4].count("█") - bar * 360 // 800) <= 1
    odd = apart([region("a", 10, 100), region("b", 2, 300, length=850)])
    lines = drawn(scene(odd))
    bar = lines[3].count("█")
    assert abs(lines[4].count("░") - bar * 250 / 1_000) <= 1


def test_two_sides_stand_below_each_other_and_once_where_they_are_the_same():
    lines = drawn(scene(of_0_5_21(), of_0_5_22_in_bf16()), 78)
    assert lines[0:2] == ["A  sglang 0.5.21", "B  sglang 0.5.22"]
    assert lines[4] == "list kv: A: 6 regions, 1,226 descriptors; B: 6 regions, 1,232 descriptors"
    assert [line[:4] for line in lines[5:]] == [
        *("  AB", "  AB", "  A ", "  B ", "  A ", "  B ", "  AB", "  AB")
    ]
    one, two = lines[7], lines[8]
    assert one.endswith("161 x 8,448 B")
    assert two.endswith("164 x 16,384 B")
    assert 1.6 < two.count("█") / one.count("█") < 2.4


def test_what_only_one_side_has_says_so():
    a, b = region("a", 4, 10), region("b", 4, 10)
    lines = drawn(scene(apart([a]), apart([a, b])))
    assert lines[-1].endswith("only in B")


def test_marks_stand_below_their_slots():
    geometry = apart([region("a", 10, 100), region("b", 5, 100), region("c", 10, 100)])
    of = List(geometry, "kv", IndexSet((2, 4)))
    lines = drawn(scene(geometry, marks=marks(of)), 60)
    start = lines[3].index("█")
    signs = {at - start: sign for at, sign in enumerate(lines[8]) if sign in "○●✕"}
    bar = lines[3].count("█")
    # Region c is taken for 20 and starts at 15: slot 2 goes to 7, 4 to 9.
    assert signs == {
        int(s * bar / 10): sign for s, sign in ((2, "○"), (4, "○"), (7, "✕"), (9, "✕"))
    }


def test_plain_signs_where_the_encoding_has_no_others():
    assert terminal.signs_for("utf-8") is terminal.UNICODE
    for encoding in ("ascii", "latin-1", None, "nonsense"):
        assert terminal.signs_for(encoding) is terminal.ASCII
    geometry = apart([region("a" * 200, 10, 100, length=1_250)])
    what = scene(geometry, marks=marks(List(geometry, "kv", IndexSet((2,)))))
    assert "".join(drawn(what, 80, terminal.ASCII)).isascii()


def test_no_region_is_said():
    assert drawn(scene(Geometry(()))) == ["no regions"]


@UNHURRIED
@given(odd_geometries(), st.none() | odd_geometries(), st.integers(60, 200))
def test_rows_fit_the_width(one, two, width):
    what = scene(*([one] if two is None else [one, two]))
    for line in drawn(what, width):
        # A number may be longer than a bar is worth: then the bar has its least width.
        if any(sign in line for sign in "█▏░"):
            longest = max(
                columns(terminal.shape(lane)) for row in what.rows for lane in row.lanes if lane
            )
            assert columns(line.removesuffix("  only in A").removesuffix("  only in B")) <= max(
                width, 2 * longest + 40
            )


def test_where_each_index_goes():
    of = List(of_0_5_21(), "kv", IndexSet((5, 6, 7, 100)))
    assert list(routes.lines(of, plain)) == [
        "slots 5-7, 100 of every region of list kv",
        "  index of region i, slot p: i * 164 + p, the slots of region 0",
        "  descriptors for region i: its own slots; 1,226 in all",
        "  regions 0-2: right",
        "  region 3 'layer 4 c4 index key' (161 slots): starts at 489, taken for 492 (+3)",
        "    slot 5    index 497 -> region 3 slot 8, byte 67,584     wrong",
        "    slot 6    index 498 -> region 3 slot 9, byte 76,032     wrong",
        "    slot 7    index 499 -> region 3 slot 10, byte 84,480    wrong",
        "    slot 100  index 592 -> region 3 slot 103, byte 870,144  wrong",
        "  region 4 'layer 3 c128 kv' (288 slots): starts at 650, taken for 656 (+6)",
        "    slot 5    index 661 -> region 4 slot 11, byte 19,008    wrong",
        "    slot 6    index 662 -> region 4 slot 12, byte 20,736    wrong",
        "    slot 7    index 663 -> region 4 slot 13, byte 22,464    wrong",
        "    slot 100  index 756 -> region 4 slot 106, byte 183,168  wrong",
        "  region 5 'layer 5 c128 kv' (288 slots): starts at 938, taken for 820 (-118)",
        "    slot 5    index 825 -> region 4 slot 175, byte 302,400  wrong",
        "    slot 6    index 826 -> region 4 slot 176, byte 304,128  wrong",
        "    slot 7    index 827 -> region 4 slot 177, byte 305,856  wrong",
        "    slot 100  index 920 -> region 4 slot 270, byte 466,560  wrong",
        "12 of 24 right, 12 wrong",
    ]


def test_of_many_wrong_places_some_are_told_and_all_are_counted():
    geometry = apart([region(f"r{at}", at + 10, 64) for at in range(100)])
    lines = list(routes.lines(List(geometry, "kv", IndexSet((0, 9))), plain))
    assert len(lines) < 120
    assert lines[-2:] == [
        "  ... not all are shown: --output-format json has all 200",
        "4 of 200 right, 196 wrong",
    ]
