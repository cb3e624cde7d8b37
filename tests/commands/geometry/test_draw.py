"""`kvlint geometry draw`: to scale, and where an index set goes."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from kvlint.geometry import Geometry
from tests.drawing.samples import of_0_5_21, of_0_5_22_in_bf16, region


@pytest.fixture(autouse=True)
def captured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "a.json").write_text(of_0_5_21().to_json())
    (tmp_path / "b.json").write_text(of_0_5_22_in_bf16().to_json())
    state = region("state", 7, 4_096, list="state")
    several = Geometry((*of_0_5_21().regions, state))
    (tmp_path / "several.json").write_text(several.to_json())
    (tmp_path / "none.json").write_text(Geometry(()).to_json())


@pytest.fixture
def draw(kvlint):
    def draw(*arguments):
        ran = kvlint("geometry", "draw", *arguments)
        assert (ran.code, ran.err) == (0, "")
        return ran.out

    return draw


@pytest.fixture
def refused(kvlint):
    def refused(*arguments):
        ran = kvlint("geometry", "draw", *arguments)
        assert (ran.code, ran.out) == (2, "")
        (line,) = ran.err.splitlines()
        return line.removeprefix("kvlint: ")

    return refused


def places(draw, *arguments):
    (found, *_) = json.loads(draw("a.json", *arguments, "--output-format", "json"))["index_sets"]
    return found["places"]


def test_a_bar_a_region_in_the_width_of_the_terminal(draw):
    lines = draw("a.json").splitlines()
    assert lines[0] == "sglang 0.5.21"
    assert lines[4].startswith("  0 layer 2 c4 kv")
    assert lines[4].endswith("164 x 37,440 B")
    assert max(map(len, lines)) == 100


def test_two_files_have_one_scale(draw):
    lines = draw("a.json", "b.json").splitlines()
    assert lines[:2] == ["A  sglang 0.5.21", "B  sglang 0.5.22"]
    assert [line[2:4] for line in lines if " index key" in line or line.startswith("  B")]


def test_the_same_label_twice_is_told_apart_by_the_files(draw):
    assert draw("a.json", "a.json").splitlines()[:2] == [
        "A  sglang 0.5.21, a.json",
        "B  sglang 0.5.21, a.json",
    ]


def test_where_an_index_set_goes_is_told_and_marked(draw):
    out = draw("a.json", "--slots", "5-7,100")
    assert "    slot 5    index 497 -> region 3 slot 8, byte 67,584     wrong\n" in out
    assert out.endswith("12 of 24 right, 12 wrong\n")
    assert "✕ reached, and not meant" in out


@pytest.mark.parametrize(
    ("options", "right"),
    [
        ([], 12),
        (["--stride", "own"], 24),
        (["--list", "first"], 24),
        (["--stride", "least", "--list", "least"], 24),
        (["--stride", "161", "--list", "161"], 24),
        (["--stride", "own", "--list", "first"], 12),
    ],
)
def test_how_indices_and_list_are_made(draw, options, right):
    fates = [place["fate"] for place in places(draw, "--slots", "5,6,7,100", *options)]
    assert (len(fates), fates.count("right")) == (24, right)


def test_places_as_json(draw):
    found = places(draw, "--slots", "5")
    assert found[3] == {
        "region": 3,
        "slot": 5,
        "index": 497,
        "byte": 42_240,
        "exists": True,
        "fate": "wrong",
        "hit": {"region": 3, "slot": 8, "byte": 67_584},
        "past": 0,
        "under": [],
    }


def test_two_files_get_the_set_each(draw):
    out = draw("a.json", "b.json", "--slots", "5-7,100", "--stride", "first")
    assert "12 of 24 right, 12 wrong\n" in out
    assert "20 of 24 right, 4 wrong\n" in out


def test_two_files_may_call_the_list_otherwise(draw, tmp_path):
    other = Geometry(tuple(replace(r, list="kv.7") for r in of_0_5_21().regions), "other")
    (tmp_path / "other.json").write_text(other.to_json())
    out = draw("a.json", "other.json", "--slots", "5-7,100")
    assert "list kv | kv.7: 6 regions, 1,226 descriptors\n" in out
    assert out.count("12 of 24 right, 12 wrong\n") == 2
    assert "of every region of list kv.7\n" in out


def test_a_set_is_of_the_first_list_or_the_one_that_is_named(draw):
    assert "of every region of list kv" in draw("several.json", "--slots", "1")
    out = draw("several.json", "--slots", "1", "--of", "state")
    assert "of every region of list state" in out
    assert "list kv" not in out
    assert "list kv" in draw("several.json")
    assert "list kv" not in draw("several.json", "--of", "state")


def test_a_set_may_be_of_one_group(draw, refused, tmp_path):
    kinds = [("a", "full"), ("b", "window"), ("c", "full")]
    regions = [region(name, 9, 64, group=group) for name, group in kinds]
    (tmp_path / "groups.json").write_text(Geometry(tuple(regions)).to_json())
    out = draw("groups.json", "--slots", "5", "--group", "window")
    assert "slots 5 of every region of list kv, group window\n" in out
    assert out.endswith("1 of 1 right, 0 wrong\n")
    line = refused("groups.json", "--slots", "5", "--group", "none")
    assert line == "list kv has no group none; there is full, window"


def test_a_picture_is_a_file(draw, tmp_path):
    assert draw("a.json", "b.json", "--slots", "5", "--svg", "out.svg") == ""
    root = ElementTree.parse(tmp_path / "out.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert ElementTree.fromstring(draw("a.json", "--svg", "-")).tag == root.tag


def test_a_picture_that_cannot_be_written_is_one_line(refused):
    line = refused("a.json", "--svg", "none/out.svg")
    assert line == "cannot write none/out.svg: No such file or directory"


@pytest.mark.parametrize("slots", ["", "x", "5-", "-5", "7-5", "1,,2", "1.5", "٣", "9" * 30])
def test_what_are_no_slots(refused, slots):
    line = refused("a.json", f"--slots={slots}")
    assert line.startswith("--slots takes numbers and ranges as in 5,6,40-42, not ")


def test_too_many_slots(refused):
    assert refused("a.json", "--slots", "0-99999999") == "--slots takes at most 65,536 slots"


@pytest.mark.parametrize("option", ["--stride", "--list"])
def test_ways_of_an_index_set(refused, option):
    line = refused("a.json", "--slots", "5", option, "most")
    assert line == f"{option} takes own, first, least or a number of slots, not 'most'"
    assert refused("a.json", "--slots", "5", option, "0").endswith("not '0'")
    assert refused("a.json", option, "own").startswith(f"{option} says how an index set is made")


def test_lists_that_are_not_there(refused):
    assert refused("a.json", "--of", "aux") == "a.json: no list aux; there is kv"
    assert refused("several.json", "b.json", "--slots", "1", "--of", "state") == (
        "b.json: no list state; there is kv"
    )
    assert "no region" in refused("none.json", "--slots", "1")


def test_json_is_of_an_index_set(refused):
    assert "give --slots" in refused("a.json", "--output-format", "json")
