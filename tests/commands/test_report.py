"""`kvlint report`: what is in a folder, and its exit code."""

import json

from tests.runtime_checks.test_reading import notified, transfer, violation, write


def test_violations_are_told_with_the_transfers_around_them(kvlint, tmp_path):
    write(tmp_path, "violations-r-1.jsonl", violation())
    write(tmp_path, "transfers-r-1.jsonl", transfer())
    write(tmp_path, "transfers-r-2.jsonl", notified())
    ran = kvlint("report", tmp_path)
    assert (ran.code, ran.err) == (1, "")
    first, *_, last = ran.out.splitlines()
    assert first == "violation 1 of 1: column [KV103]"
    assert last == "1 violation, 1 transfer recorded"


def test_as_json_each_violation_has_the_transfers_around_it(kvlint, tmp_path):
    write(tmp_path, "violations-r-1.jsonl", violation())
    write(tmp_path, "transfers-r-1.jsonl", transfer())
    ran = kvlint("report", tmp_path, "--output-format", "json")
    assert ran.code == 1
    told = json.loads(ran.out)
    (one,) = told["violations"]
    assert one["values"] == {"region 3": 4, "region 0": 7}
    assert [event["what"] for event in one["transfers"][0]["events"]] == ["made", "posted", "done"]
    assert told["unread"] == []


def test_without_violations_it_ends_with_0(kvlint, tmp_path):
    write(tmp_path, "armed-r-1.json", {"pid": 1})
    ran = kvlint("report", tmp_path)
    assert (ran.code, ran.out, ran.err) == (0, "no violations, 0 transfers recorded\n", "")


def test_what_cannot_be_read_is_one_line_a_file(kvlint, tmp_path):
    write(tmp_path, "violations-r-1.jsonl", violation(), '{"half')
    write(tmp_path, "transfers-r-1.jsonl", "what\n", "is\n", "this\n")
    ran = kvlint("report", tmp_path)
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "kvlint: violations-r-1.jsonl: the last line breaks off",
        "kvlint: transfers-r-1.jsonl: 3 lines are not evidence of this version (first at line 1)",
    ]


def test_a_folder_without_evidence_and_none_at_all_are_wrong_usage(kvlint, tmp_path):
    empty, missing = kvlint("report", tmp_path), kvlint("report", tmp_path / "missing")
    assert (empty.code, empty.out) == (2, "")
    assert empty.err == (
        f"kvlint: no evidence in {tmp_path}: `kvlint run --report {tmp_path}` writes it\n"
    )
    assert (missing.code, missing.err) == (
        2,
        f"kvlint: cannot read {tmp_path}/missing: No such file or directory\n",
    )
