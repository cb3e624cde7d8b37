from pathlib import Path

import pytest

from kvlint.findings import Confidence, Fault, Status, Step
from kvlint.reporters.view import Choice, Place
from tests.samples import claim, conditional, fault, guarded, seen, silenced, span

UNGUARDED, CONDITIONAL, GUARDED = Status.UNGUARDED, Status.CONDITIONAL, Status.GUARDED
ALL = [claim(), conditional(span(line=2)), guarded(span(line=3))]


@pytest.mark.parametrize(
    ("choice", "statuses"),
    [
        (Choice(), [UNGUARDED]),
        (Choice(Confidence.MEDIUM), [UNGUARDED, CONDITIONAL]),
        (Choice(Confidence.LOW), [UNGUARDED, CONDITIONAL]),
        (Choice(guarded=True), [UNGUARDED, GUARDED]),
        (Choice(Confidence.LOW, guarded=True), [UNGUARDED, CONDITIONAL, GUARDED]),
    ],
)
def test_confidence_and_the_guarded_are_chosen_apart(choice, statuses):
    view = seen(ALL, choice)
    assert [finding.status for finding in view.shown] == statuses
    assert len(view.shown) + len(view.hidden) == len(ALL)


def test_what_is_guarded_never_fails_a_run():
    assert not seen([guarded()], Choice(Confidence.LOW, guarded=True)).failed
    assert not seen([conditional()]).failed
    assert seen([conditional()], Choice(Confidence.MEDIUM)).failed
    assert seen([claim()]).failed
    assert seen(faults=[fault()]).failed


def at(line):
    return Choice(guarded=True, place=Place("pkg/a.py", line))


def test_a_line_shows_all_that_is_known_there_and_nothing_else():
    assert [f.status for f in seen(ALL, at(2)).shown] == [CONDITIONAL]
    assert [f.status for f in seen(ALL, at(3)).shown] == [GUARDED]
    assert seen(ALL, at(4)).shown == ()
    # Shown because it was asked for, no more of a complaint than before.
    assert not seen(ALL, at(2)).failed
    assert seen(ALL, at(1)).failed


def test_a_line_shows_what_is_silenced_there_with_the_reason_and_does_not_fail():
    answered = [silenced(claim(span(line=4)), reason="one pool")]
    view = seen(ALL, at(4), silenced=answered)
    assert [view.silence(f) for f in view.shown] == answered
    assert not view.failed
    assert seen(ALL, silenced=answered).shown == seen(ALL).shown


def test_a_comment_to_mend_elsewhere_is_no_answer_about_a_line():
    told = [Fault("unused-suppression", span(line=4), "", costs_file=False)]
    assert seen(ALL, at(4), faults=told).faults == tuple(told)
    assert seen(ALL, at(2), faults=[*told, fault()]).faults == (fault(),)


def test_a_line_that_a_finding_only_passes_is_answered_with_that_finding():
    traced = claim(trace=(Step(span("pkg/a.py", 7), "stored here"),))
    assert len(seen([traced], at(7)).shown) == 1
    assert len(seen([guarded()], at(9)).shown) == 1


def test_paths_read_from_the_working_directory():
    assert seen(root=Path("/p"), here=Path("/p/pkg")).path("pkg/a.py") == "a.py"
    assert seen(root=Path("/p"), here=Path("/q")).path("a.py") == "../p/a.py"


def test_lines_are_counted_as_python_counts_them(tmp_path):
    (tmp_path / "a.py").write_bytes(b"# coding: latin-1\r\nx = '\xe9\x0c\x85'\r\ny = 1\n")
    view = seen(root=tmp_path)
    assert view.line("a.py", 2) == "x = 'é\x0c\x85'"
    assert view.line("a.py", 3) == "y = 1"
    assert view.line("a.py", 9) is None
    assert view.line("gone.py", 1) is None
