"""What comments silence. Findings are hand-made, the comments are real."""

import pytest

from kvlint.engine.directives import directives
from kvlint.engine.suppressions import suppress
from kvlint.findings import Report, Silence, Status
from tests.samples import claim, conditional, fault, finding, guarded, rule, span

RULES = [rule(lambda program: iter(()), code) for code in ("KV101", "KV102", "KV103")]
type(RULES[2]).name = "constant-stride-index"
ALL = {"KV101", "KV102", "KV103"}

CALL = """\
x = f(
    a,  # kvlint: ignore[KV101] pools of one kind
)
"""


def judged(text, *claims, ran=ALL, faults=()):
    found = tuple(finding(made) for made in claims)
    report = Report(found, tuple(faults), directives=tuple(directives("pkg/a.py", text)))
    return suppress(report, RULES, lambda path: ran)


def at(line, code="KV101", made=claim):
    return made(span(line=line), code=code)


def said(report):
    return [(f.name, f.span.line, f.span.column, f.message) for f in report.faults]


@pytest.mark.parametrize("made", [claim, conditional])
def test_a_comment_silences_its_rule_in_its_statement_and_keeps_the_reason(made):
    report = judged(CALL, at(1, made=made), at(3), at(2, "KV102"), at(4))
    assert [(s.finding.span.line, s.by, s.reason) for s in report.silenced] == [
        (1, Silence.COMMENT, "pools of one kind"),
        (3, Silence.COMMENT, "pools of one kind"),
    ]
    assert [(f.code, f.span.line) for f in report.findings] == [("KV102", 2), ("KV101", 4)]
    assert report.faults == ()


def test_several_codes_and_names_in_any_case():
    text = "x = 1  # kvlint: ignore[kv101, Constant-Stride-Index] why\n"
    assert len(judged(text, at(1), at(1, "KV103")).silenced) == 2


def test_a_whole_file_is_silenced_and_the_closer_reason_is_told():
    text = "x = 1  # kvlint: ignore[KV101] near\n# kvlint: ignore-file[KV101] far\ny = 2\n"
    report = judged(text, at(1), at(3))
    assert [s.reason for s in report.silenced] == ["near", "far"]
    assert report.faults == ()


def test_only_the_file_of_the_comment_is_meant():
    report = judged(CALL, claim(span("pkg/b.py", 1), code="KV101"))
    assert (len(report.findings), len(report.faults)) == (1, 1)


def test_what_silences_nothing_is_unused_and_all_of_it_is_marked():
    (unused,) = judged(CALL).faults
    assert unused.name == "unused-suppression"
    assert unused.message == "not needed: KV101 is not found in this statement"
    assert (unused.span.line, unused.span.column, unused.span.end_column) == (2, 9, 50)
    assert not unused.costs_file


def test_of_several_codes_the_unused_ones_are_marked_alone():
    text = "# kvlint: ignore-file[KV101, KV102] why\n"
    assert said(judged(text, at(1))) == [
        ("unused-suppression", 1, 30, "not needed: KV102 is not found in this file")
    ]


def test_what_is_guarded_needs_no_comment():
    report = judged(CALL, at(1, made=guarded))
    assert [f.status for f in report.findings] == [Status.GUARDED]
    assert [message for *_, message in said(report)] == [
        "not needed: KV101 is guarded in this statement"
    ]


def test_what_did_not_run_cannot_be_unused():
    text = "x = 1  # kvlint: ignore[KV101, KV102] why\n"
    assert said(judged(text, ran={"KV103"})) == []
    assert [column for _, _, column, _ in said(judged(text, ran={"KV102"}))] == [32]


@pytest.mark.parametrize(
    ("code", "hint"),
    [("KV1O3", "did you mean KV103?"), ("constant-stride", "KV103?"), ("E501", "`kvlint rules`")],
)
def test_an_unknown_code_makes_the_whole_comment_malformed(code, hint):
    report = judged(f"x = 1  # kvlint: ignore[KV101, {code}] why\n", at(1))
    ((name, _, column, message),) = said(report)
    assert (name, column) == ("malformed-suppression", 32)
    assert message.startswith(f"unknown rule '{code}'")
    assert hint in message
    assert len(report.findings) == 1


def test_the_beginning_of_a_code_is_no_rule():
    ((_, _, _, message),) = said(judged("x = 1  # kvlint: ignore[KV1] why\n"))
    assert message == "'KV1' only begins KV101, KV102, KV103: write the code in full"


def test_a_malformed_comment_silences_nothing():
    report = judged("x = 1  # kvlint: ignore[KV101]\n", at(1))
    assert [(name, column) for name, _, column, _ in said(report)] == [("malformed-suppression", 8)]
    assert report.silenced == ()


def test_in_a_file_that_cannot_be_parsed_no_comment_counts():
    broken = fault("pkg/a.py")
    assert judged(CALL, faults=[broken]).faults == (broken,)
