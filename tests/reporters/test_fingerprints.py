from dataclasses import replace

from kvlint.findings import Silence
from kvlint.reporters.fingerprints import fingerprints
from kvlint.reporters.view import Choice
from tests.samples import claim, conditional, finding, guarded, seen, silenced, span

OTHER = claim(span(line=5), scope="pkg.a.g")


def known(view, made):
    return fingerprints(view)[finding(made)]


def test_places_of_one_assumption_are_told_apart_and_others_do_not_count():
    first, second = claim(span(line=1)), claim(span(line=9))
    view = seen([first, OTHER, second])
    number = finding(first).assumption_id
    assert known(view, first) == f"{number}/1"
    assert known(view, second) == f"{number}/2"
    assert known(view, OTHER) == f"{finding(OTHER).assumption_id}/1"


def test_moved_lines_change_nothing():
    before = [claim(span(line=line)) for line in (9, 10, 11)]
    after = [replace(made, at=span(line=made.at.line + 90)) for made in before]
    assert list(fingerprints(seen(before)).values()) == list(fingerprints(seen(after)).values())


def test_neither_an_option_nor_a_comment_renumbers_the_rest():
    first, second, third = guarded(span(line=1)), conditional(span(line=2)), claim(span(line=3))
    everything = known(seen([first, second, third], Choice(guarded=True)), third)
    assert known(seen([first, second, third]), third) == everything
    hushed = silenced(second, Silence.BASELINE)
    assert known(seen([first, third], silenced=[hushed]), third) == everything
