"""`kvlint geometry show` and `kvlint geometry diff`."""

import json

import pytest

from tests.drawing.samples import of_0_5_21, of_0_5_22_in_bf16


@pytest.fixture(autouse=True)
def captured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_text(of_0_5_21().to_json())
    (tmp_path / "b.json").write_text(of_0_5_22_in_bf16().to_json())


def test_show_is_a_table_and_what_is_remarkable(kvlint):
    ran = kvlint("geometry", "show", "a.json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("a.json, sglang 0.5.21: 6 regions, 15.3 MiB\n")
    assert "is wrong from region 3 on, which starts at 489, not 492\n" in ran.out
    each = kvlint("geometry", "show", "a.json", "--each")
    assert len(each.out.splitlines()) == len(ran.out.splitlines()) + 3


def test_show_as_json(kvlint):
    found = json.loads(kvlint("geometry", "show", "a.json", "--output-format", "json").out)
    assert (found["file"], found["engine"]) == ("a.json", "sglang 0.5.21")
    region = found["lists"][0]["regions"][3]
    assert (region["number"], region["starts_at"], region["slots"]) == (3, 489, 161)


def test_diff_says_what_changed_and_its_exit_code_whether(kvlint):
    ran = kvlint("geometry", "diff", "a.json", "b.json")
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.splitlines()[:5] == [
        "A  a.json, sglang 0.5.21",
        "B  b.json, sglang 0.5.22",
        "",
        "list kv",
        "  regions 2, 3 (layers 2, 4 c4 index key): item and transfer length 8,448 -> 16,384 "
        "bytes, slots 161 -> 164, length 1,360,128 -> 2,686,976 bytes",
    ]
    same = kvlint("geometry", "diff", "a.json", "a.json")
    assert (same.code, same.out.splitlines()[-1]) == (0, "no difference")


def test_diff_as_json_has_each_region_by_itself(kvlint):
    ran = kvlint("geometry", "diff", "a.json", "b.json", "--output-format", "json")
    assert ran.code == 1
    found = json.loads(ran.out)
    assert (found["same"], found["unchanged"]) == (False, 4)
    assert [one["regions"] for one in found["changed"]] == [[2, 2], [3, 3]]
    changes = {
        one["field"]: (one["before"], one["after"]) for one in found["changed"][0]["changes"]
    }
    assert changes == {
        "stride": (8_448, 16_384),
        "transfer_length": (8_448, 16_384),
        "length": (1_360_128, 2_686_976),
        "slots": (161, 164),
    }
    assert found["descriptors"][0] == {
        "list": "kv",
        "region": [3, 3],
        "before": 489,
        "after": 492,
    }
    assert found["one_stride_wrong_from"] == [{"list": "kv", "before": 3, "after": 5}]
    same = kvlint("geometry", "diff", "a.json", "a.json", "--output-format", "json")
    assert (same.code, json.loads(same.out)["same"]) == (0, True)


def test_diff_needs_two(kvlint):
    ran = kvlint("geometry", "diff", "a.json")
    assert ran.code == 2
    assert "missing argument" in ran.err
