"""What goes wrong in the companion itself never reaches the program: counted, said once, off."""

import errno
import shutil

import pytest

from kvlint.runtime_checks.stacks import Stack
from kvlint.runtime_checks.violations import Violation
from tests.runtime_checks.breaches import breach, lines, site


class Broken:
    def to_dict(self):
        raise KeyError("secret")


def fail(*_, **__):
    raise ZeroDivisionError("secret of the request")


def test_a_check_that_raises_is_counted_said_once_and_switched_off(policy, capsys):
    judged = policy()
    for _ in range(2):
        with judged.contained("column"):
            fail()
    assert judged.faults == {"column": 2}
    assert not judged.armed("column")
    assert judged.armed("pairing")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("kvlint: internal error, column is switched off in this process: Zero")
    assert f"ZeroDivisionError at {__file__}:" in line


def test_the_text_of_an_internal_error_is_not_told(policy, capsys):
    with policy().contained("column"):
        fail()
    assert "secret" not in capsys.readouterr().err


@pytest.mark.parametrize("raised", [Violation("wrong", {}), KeyboardInterrupt(), SystemExit(78)])
def test_a_violation_and_what_ends_the_program_pass(policy, raised):
    judged = policy()
    with pytest.raises(type(raised)), judged.contained("column"):
        raise raised
    assert judged.armed("column")


@pytest.mark.parametrize(
    ("place", "check"),
    [
        ("kvlint.runtime_checks.evidence.Evidence.add_violation", "evidence"),
        ("kvlint.runtime_checks.evidence.Evidence.replace_ring", "evidence"),
        ("kvlint.runtime_checks.recorder.Recorder.entries", "recorder"),
        ("kvlint.runtime_checks.policy.Policy._recognised", "policy"),
        ("kvlint.runtime_checks.policy.Policy._line", "policy"),
    ],
)
def test_whatever_fails_in_judging_the_violation_is_still_raised(policy, monkeypatch, place, check):
    judged = policy("assert")
    judged.recorder.append(Broken() if check == "recorder" else _Plain())
    monkeypatch.setattr(place, fail)
    assert str(judged.judge(breach(), [site()], agent="a")) == "wrong"
    assert judged.faults == {check: 1}
    assert str(judged.judge(breach(), [site()], agent="a")) == "wrong"


def test_a_stack_that_cannot_be_told_leaves_the_rest_of_the_record(policy, monkeypatch):
    judged = policy()
    monkeypatch.setattr(Stack, "lines", fail)
    judged.judge(breach(), [site()], agent="a")
    (record,) = judged.violations
    assert (record["check"], record["sites"], judged.faults) == ("column", [], {"stacks": 1})


def test_counters_that_fail_cost_the_counters_and_nothing_else(policy):
    judged = policy()
    judged.on_count = fail
    for _ in range(2):
        judged.transferred("WRITE")
    assert judged.transfers == {"WRITE": 2}
    assert judged.faults == {"metrics": 1}


def test_an_entry_that_cannot_be_told_costs_the_ring_and_nothing_else(policy, tmp_path):
    judged = policy()
    judged.recorder.append(Broken())
    judged.judge(breach(), [site()], agent="a")
    assert judged.faults == {"recorder": 1}
    assert len(lines(tmp_path / "report")) == 1


def test_a_folder_that_vanished_is_said_once_and_judging_goes_on(policy, tmp_path, capsys):
    judged = policy("assert")
    shutil.rmtree(tmp_path / "report")
    for region in range(3):
        assert judged.judge(breach(region), [site()], agent="a") is not None
    said = capsys.readouterr().err
    assert said.count("internal error, evidence is switched off") == 1
    assert said.count("violation: column") == 3
    assert "full record" not in said


def test_a_full_disk_is_said_once_and_leaves_no_half_of_a_ring(policy, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    judged = policy()
    judged.recorder.append(_Plain())
    judged.dump()
    before = lines(tmp_path / "report", "transfers")
    monkeypatch.setattr("os.write", full)
    judged.dump()
    monkeypatch.undo()
    assert judged.faults == {"evidence": 1}
    assert lines(tmp_path / "report", "transfers") == before
    assert [path.name for path in (tmp_path / "report").iterdir()] == [
        f"transfers-r-{judged.pid}.jsonl"
    ]


def test_nobody_listening_on_standard_error_is_no_failure(policy, monkeypatch):
    for stream in (None, object()):
        monkeypatch.setattr("sys.stderr", stream)
        judged = policy("assert")
        assert judged.judge(breach(), [site()], agent="a") is not None


class _Plain:
    def to_dict(self):
        return {"kind": "transfer", "id": "x"}
