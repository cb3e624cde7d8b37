import pytest

from kvlint.findings import Confidence, Fault, Silence
from kvlint.reporters.summary import last_line
from kvlint.reporters.view import Choice, Place
from tests.samples import claim, conditional, fault, guarded, seen, silenced, span

MANY = [
    claim(span("a.py"), scope="a"),
    claim(span("a.py", 2), scope="a"),
    claim(span("b.py"), scope="b"),
    guarded(scope="c"),
    guarded(scope="d"),
    conditional(scope="e"),
    claim(scope="f", by_name_only=True),
]


@pytest.mark.parametrize(
    ("claims", "choice", "line"),
    [
        ([], Choice(), "All checks passed!"),
        (
            MANY,
            Choice(),
            "2 assumptions in 2 files; 2 guarded, 1 conditional, 1 less sure hidden",
        ),
        (MANY, Choice(Confidence.MEDIUM), "4 assumptions in 3 files; 2 guarded hidden"),
        (MANY, Choice(Confidence.LOW, guarded=True), "6 assumptions in 3 files"),
        (MANY[3:5], Choice(), "All checks passed! (2 guarded hidden)"),
        (
            MANY[5:],
            Choice(),
            "Nothing certain found; 1 conditional, 1 less sure hidden"
            " (--min-confidence medium shows them)",
        ),
        (
            MANY[3:6],
            Choice(),
            "Nothing certain found; 2 guarded, 1 conditional hidden"
            " (--min-confidence medium shows more)",
        ),
    ],
)
def test_assumptions_are_counted_shown_and_hidden(claims, choice, line):
    assert last_line(seen(claims, choice)) == line


def test_a_file_nobody_understands_is_counted():
    assert last_line(seen(faults=[fault()])) == "1 file not understood"


def test_of_no_file_nothing_is_claimed():
    assert last_line(seen(files=0)) == "No file checked"
    assert last_line(seen([], Choice(place=Place("a.py", 12)), files=0)) == "No file checked"


def test_a_silent_line_is_answered_with_the_nearest_that_is_not():
    claims = [guarded(span("a.py", 30)), claim(span("a.py", 8)), claim(span("b.py", 12))]
    at = Choice(guarded=True, place=Place("a.py", 12))
    assert last_line(seen(claims, at)) == (
        "kvlint sees no assumption at a.py:12; the nearest in this file is at line 8"
    )
    assert last_line(seen([], at)) == "kvlint sees no assumption at a.py:12"


def test_what_the_user_has_answered_is_counted_where_it_would_be_shown():
    answered = [
        silenced(claim(scope="a")),
        silenced(claim(span(line=2), scope="a")),
        silenced(conditional(scope="b")),
        silenced(claim(scope="c"), Silence.BASELINE),
        silenced(claim(scope="d"), Silence.BASELINE),
        silenced(guarded(scope="e"), Silence.UNCHANGED),
    ]
    assert last_line(seen(silenced=answered)) == (
        "All checks passed! (1 suppressed, 2 in the baseline)"
    )
    assert last_line(seen(MANY[:4], Choice(Confidence.MEDIUM), silenced=answered)) == (
        "2 assumptions in 2 files; 2 suppressed, 2 in the baseline; 1 guarded hidden"
    )
    assert last_line(seen(MANY[3:5], silenced=answered[:1])) == (
        "All checks passed! (1 suppressed; 2 guarded hidden)"
    )


def test_a_comment_to_mend_is_no_file_that_is_not_understood():
    told = [
        Fault(f"{what}-suppression", span(), "", costs_file=False)
        for what in ("unused", "malformed", "unused")
    ]
    assert last_line(seen(MANY[:1], faults=[fault(), *told])) == (
        "1 assumption in 1 file, 1 file not understood, "
        "1 malformed suppression, 2 unused suppressions"
    )
