import json

from kvlint.reporters.gitlab import render
from kvlint.reporters.paint import plain
from kvlint.reporters.view import Choice
from tests.samples import claim, fault, guarded, seen, span


def entries(*args, **options):
    return json.loads("\n".join(render(seen(*args, **options), plain)))


def test_a_finding_has_what_gitlab_asks_for():
    (entry,) = entries([claim(span(line=2), message="two\nlines")])
    fingerprint = entry.pop("fingerprint")
    assert len(bytes.fromhex(fingerprint)) == 16
    assert entry == {
        "description": "KV900: two lines",
        "check_name": "KV900",
        "severity": "major",
        "location": {"path": "pkg/a.py", "lines": {"begin": 2, "end": 2}},
    }


def test_the_severity_says_how_bad_it_is():
    made = [claim(), claim(span(line=2), holds_today="one pool"), guarded(span(line=3))]
    found = entries(made, Choice(guarded=True), faults=[fault()])
    assert [entry["severity"] for entry in found] == ["major", "major", "minor", "info"]
    assert found[0]["check_name"] == "invalid-syntax"


def fingerprints(*args, **options):
    return [entry["fingerprint"] for entry in entries(*args, **options)]


def test_no_two_entries_have_one_fingerprint():
    made = [claim(span(line=line)) for line in (1, 2, 3)]
    found = fingerprints(made, faults=[fault("a.py"), fault("b.py"), fault("b.py", 9)])
    assert len(set(found)) == len(found) == 6


def test_fingerprints_stay_where_lines_move_and_differ_between_projects(tmp_path):
    (tmp_path / ".git").mkdir()
    one, other = tmp_path / "one", tmp_path / "other"
    before = fingerprints([claim(span(line=2))], root=one)
    assert fingerprints([claim(span(line=70))], root=one) == before
    assert fingerprints([claim(span(line=2))], root=other) != before


def test_nothing_found_is_an_empty_list():
    assert entries() == []
