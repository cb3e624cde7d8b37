"""`kvlint report`: what is in a folder, and its exit code."""

import json
from pathlib import Path

import pytest

from kvlint.hypotheses import Assumptions
from tests.runtime_checks.test_bridge import BAD, GOOD, called, place, strided, wrong
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


# Hypotheses.


@pytest.fixture
def run(tmp_path):
    """A folder of evidence, and what says what its code assumes."""

    def made(*hypotheses, beside=True, geometry=None):
        write(tmp_path, "calls-r-1.jsonl", called(column=12))
        emitted = tmp_path / ("assumptions.json" if beside else "emitted.json")
        emitted.write_text(Assumptions(hypotheses, "0.1.0").to_json())
        if geometry is not None:
            (tmp_path / "geometry-r-1-prefill.json").write_text(geometry.to_json())
        return tmp_path

    return made


def test_each_hypothesis_is_told_before_the_violations(kvlint, run):
    folder = run(strided(), strided(2, places=(place("nowhere"),)))
    write(folder, "violations-r-1.jsonl", wrong())
    ran = kvlint("report", folder)
    assert (ran.code, ran.err) == (1, "")
    lines = ran.out.splitlines()
    assert lines[:4] == [
        "refuted (1)",
        "  KV103-0  examples/serve.py:73 in Worker.send  constant-stride-index [unguarded]",
        "      assumes   descriptors before region i = i * S0",
        "      evidence  by 1 observation, first: region 3 gets slot 4, region 0 slot 7",
    ]
    assert lines[4:9] == [
        "                its code ran (12 make_prepped_xfer)",
        "",
        "not exercised (1)",
        "  its code was not seen in this run:",
        "      KV103-2  examples/serve.py:73 in nowhere  descriptors before region i = i * S0",
    ]
    assert "2 hypotheses: 1 refuted, 0 confirmed, 1 not exercised" in lines
    assert lines[-1] == "1 violation, 0 transfers recorded"


def test_the_file_may_be_anywhere(kvlint, run):
    folder = run(strided(), beside=False)
    assert "hypothesis" not in kvlint("report", folder).out
    ran = kvlint("report", folder, "--assumptions", folder / "emitted.json")
    assert (ran.code, "confirmed (1)" in ran.out.splitlines()) == (0, True)


def test_a_relation_that_breaks_is_exit_code_1_without_any_violation(kvlint, run):
    hypothesis = strided(places=(place("Worker.__init__", 42),))
    ran = kvlint("report", run(hypothesis, geometry=BAD))
    assert ran.code == 1
    assert ran.out.splitlines()[-1] == "no violations, 0 transfers recorded"


def test_as_json_hypotheses_stand_beside_the_violations(kvlint, run):
    ran = kvlint("report", run(strided(), geometry=GOOD), "--output-format", "json")
    assert ran.code == 0
    (told,) = json.loads(ran.out)["hypotheses"]
    assert (told["answer"], told["place"], told["calls"]) == (
        "confirmed",
        "examples/serve.py:73",
        12,
    )
    assert told["geometries"] == [
        {"label": "r-1-prefill", "outcome": "holds", "why": "kv: 3 regions"}
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "the file is empty"),
        ("{}", "no file of assumptions: `check --emit-assumptions` writes one"),
        ('{"schema": 1, "regions": []}', "no file of assumptions"),
        ('{"tool": "kvlint", "schema": 2, "assumptions": []}', "schema 2 is not known, only 1 is"),
    ],
)
def test_a_foreign_file_of_assumptions_is_one_line(kvlint, run, content, reason):
    folder = run()
    (folder / "assumptions.json").write_text(content)
    ran = kvlint("report", folder)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"kvlint: {folder}/assumptions.json: {reason}")
    assert ran.err.count("\n") == 1


def test_one_that_is_missing_or_no_file_is_one_line(kvlint, run):
    folder = run()
    ran = kvlint("report", folder, "--assumptions", folder / "none.json")
    assert (ran.code, ran.err) == (2, f"kvlint: no such file: {folder}/none.json\n")
    (folder / "assumptions.json").unlink()
    (folder / "assumptions.json").mkdir()
    said = f"kvlint: cannot read {folder}/assumptions.json: Is a directory\n"
    assert kvlint("report", folder).err == said


def test_geometry_that_cannot_be_read_is_one_line_and_the_rest_is_told(kvlint, run):
    folder = run(strided())
    (folder / "geometry-r-1-prefill.json").write_text("[")
    ran = kvlint("report", folder)
    assert ran.code == 0
    assert ran.err.startswith("kvlint: geometry-r-1-prefill.json: geometry: not readable as JSON")
    assert "confirmed (1)" in ran.out.splitlines()


def test_as_a_page_it_is_one_file_and_one_line_says_what_it_comes_to(kvlint, tmp_path):
    write(tmp_path, "violations-r-1.jsonl", violation())
    write(tmp_path, "transfers-r-1.jsonl", transfer())
    page = tmp_path / "report.html"
    ran = kvlint("report", tmp_path, "--html", page)
    assert (ran.code, ran.out) == (1, "No hypotheses were given; 1 violation was seen once.\n")
    assert ran.err == f"kvlint: the page is {page}\n"
    assert page.read_text().startswith("<!doctype html>\n<html lang=")
    assert "region 3 gets slot 4, region 0 slot 7" in page.read_text()


def test_a_page_and_a_format_go_together(kvlint, tmp_path):
    write(tmp_path, "violations-r-1.jsonl", violation())
    page = tmp_path / "report.html"
    ran = kvlint("report", tmp_path, "--html", page, "--output-format", "json")
    assert (ran.code, len(json.loads(ran.out)["violations"])) == (1, 1)
    assert page.exists()


def test_a_page_that_cannot_be_written_is_wrong_usage_and_what_was_there_stays(kvlint, tmp_path):
    write(tmp_path, "armed-r-1.json", {"pid": 1, "status": "installed"})
    nowhere = tmp_path / "missing" / "report.html"
    ran = kvlint("report", tmp_path, "--html", nowhere)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"kvlint: cannot write {nowhere}: No such file or directory\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["armed-r-1.json"]


def test_the_page_goes_to_standard_output_alone(kvlint, run):
    ran = kvlint("report", run(), "--html", "-")
    assert ran.out.startswith("<!doctype html>")
    assert ran.out.rstrip().endswith("</html>")
    refused = kvlint("report", run(), "--html", "-", "--output-format", "json")
    assert (refused.code, refused.out) == (2, "")
    assert not Path("-").exists()
