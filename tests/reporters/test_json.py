import json

from kvlint.findings import Confidence, Step
from kvlint.reporters.json import render
from kvlint.reporters.paint import plain
from kvlint.reporters.view import Choice
from tests.samples import SAME_SLOTS, claim, conditional, fault, guarded, seen, span

KEYS = [
    "code",
    "name",
    "path",
    "line",
    "column",
    "end_line",
    "end_column",
    "message",
    "label",
    "settle",
    "severity",
    "confidence",
    "status",
    "assumption",
    "unresolved",
    "trace",
    "guard",
    "silenced_by",
    "url",
]


def objects(*args, **options):
    return json.loads("\n".join(render(seen(*args, **options), plain)))


def test_a_finding_is_one_object_with_all_keys():
    step = Step(span("pkg/b.py", 3), "built here")
    (found,) = objects([claim(span(line=2, column=5), trace=(step,), holds_today="one pool")])
    assert list(found) == KEYS
    assumption = found.pop("assumption")
    assert assumption.pop("id").startswith("KV900-")
    assert assumption.pop("counterexample")["slots"] == [2, 1]
    assert assumption == {"formula": str(SAME_SLOTS), "holds_today": "one pool"}
    assert found == {
        "code": "KV900",
        "name": "sample-rule",
        "path": "pkg/a.py",
        "line": 2,
        "column": 5,
        "end_line": 2,
        "end_column": 9,
        "message": "every region gets the slots of the first",
        "label": "taken from region 0",
        "settle": "take the minimum over all regions",
        "severity": "warning",
        "confidence": "high",
        "status": "unguarded",
        "unresolved": [],
        "trace": [
            {
                "path": "pkg/b.py",
                "line": 3,
                "column": 1,
                "end_line": 3,
                "end_column": 5,
                "message": "built here",
            }
        ],
        "guard": None,
        "silenced_by": None,
        "url": None,
    }


def test_a_guarded_finding_has_its_guard_and_no_counterexample():
    (found,) = objects([guarded()], Choice(Confidence.HIGH, guarded=True))
    assert found["status"] == "guarded"
    assert found["guard"]["line"] == 9
    assert found["assumption"]["counterexample"] is None


def test_what_nobody_could_resolve_is_named():
    (found,) = objects([conditional()], Choice(Confidence.MEDIUM))
    assert found["unresolved"] == ["n: a parameter without a caller"]


def test_every_place_is_an_object_though_the_assumption_is_one():
    found = objects([claim(span(line=line)) for line in (1, 2, 3)])
    assert [item["line"] for item in found] == [1, 2, 3]
    assert len({item["assumption"]["id"] for item in found}) == 1


def test_a_fault_has_code_null_and_the_same_keys_and_lies_in_order():
    found = objects([claim(span("a.py")), claim(span("z.py"))], faults=[fault()])
    assert [item["code"] for item in found] == ["KV900", None, "KV900"]
    assert found[1]["name"] == "invalid-syntax"
    assert list(found[1]) == KEYS


def test_nothing_found_is_an_empty_list():
    assert objects([guarded()]) == []
