"""What becomes of a violation: recorded, counted, printed once, raised where the mode raises."""

import pickle

import pytest

from kvlint.runtime_checks.checks import COLUMN, PAIRING
from kvlint.runtime_checks.violations import Violation
from tests.runtime_checks.breaches import breach, lines, site


@pytest.mark.parametrize(("mode", "raised"), [("log", False), ("assert", True), ("paranoid", True)])
def test_the_mode_says_whether_there_is_something_to_raise(policy, mode, raised):
    judged = policy(mode).judge(breach(), [site()], agent="a")
    assert isinstance(judged, Violation) is raised


def test_what_is_raised_tells_the_message_and_holds_the_record(policy, tmp_path):
    judged = policy("assert").judge(breach(), [site()], agent="a", peer="b", transfer="a>b:0#1")
    assert isinstance(judged, RuntimeError)
    assert str(judged) == "wrong"
    assert lines(tmp_path / "report") == [judged.record]
    copy = pickle.loads(pickle.dumps(judged))
    assert (str(copy), copy.record) == (str(judged), judged.record)


def test_a_record_names_both_values_the_place_and_the_calls(policy):
    judged = policy()
    judged.judge(breach(3, PAIRING), [site("prep_xfer_dlist"), site()], agent="a", peer="b")
    (record,) = judged.violations
    assert record["check"] == "pairing"
    assert record["code"] == "KV303"
    assert record["formula"] == "region i here is region i there"
    assert record["values"] == {"here": 1, "there": 2}
    assert [record[part] for part in ("side", "region", "slot", "byte")] == ["local", 3, 7, None]
    assert [record[part] for part in ("agent", "peer", "transfer")] == ["a", "b", None]
    calls = [(s["call"], s["stack"][-2].rpartition(" in ")[2]) for s in record["sites"]]
    here = "test_a_record_names_both_values_the_place_and_the_calls"
    assert calls == [("prep_xfer_dlist", here), ("make_prepped_xfer", here)]


def test_repeats_are_counted_and_said_at_each_doubling(policy, tmp_path, capsys):
    judged = policy()
    for _ in range(9):
        judged.judge(breach(), [site()], agent="a")
    first, *repeats = lines(tmp_path / "report")
    assert (first["number"], first["count"]) == (1, 1)
    assert [(r["repeat_of"], r["count"]) for r in repeats] == [(1, 2), (1, 4), (1, 8)]
    judged.conclude()
    *_, last = lines(tmp_path / "report")
    assert (last["repeat_of"], last["count"], last["final"]) == (1, 9, True)
    assert [record["count"] for record in judged.violations] == list(range(1, 10))
    assert capsys.readouterr().err.count("violation:") == 1


def test_another_region_or_check_or_caller_is_another_violation(policy, capsys):
    judged = policy()
    for found in (breach(0), breach(1), breach(0, PAIRING)):
        judged.judge(found, [site()], agent="a")
    judged.judge(breach(0), [site()], agent="a")
    assert capsys.readouterr().err.count("violation:") == 4
    assert judged.found == {("column", ""): 3, ("pairing", "KV303"): 1}


def test_the_line_of_a_violation_says_where_and_where_to_read_on(policy, tmp_path, capsys):
    policy().judge(breach(0, PAIRING), [site()], agent="a")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("kvlint: violation: pairing [KV303]: wrong (")
    assert "breaches.py:" in line
    assert f"; full record in {tmp_path}/report/violations-r-" in line


def test_without_a_folder_the_line_is_all_there_is(policy, capsys):
    policy(report=None).judge(breach(0, COLUMN), [site()], agent="a")
    assert "full record" not in capsys.readouterr().err


def test_what_a_peer_names_itself_cannot_break_the_line(policy, capsys):
    policy().judge(breach(message="agent \x1b[2J\nkvlint: all is well"), [site()], agent="a")
    (line,) = capsys.readouterr().err.splitlines()
    assert "agent \\x1b[2J\\nkvlint: all is well" in line
