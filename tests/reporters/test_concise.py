from kvlint.findings import Confidence
from kvlint.reporters.concise import render
from kvlint.reporters.paint import plain
from kvlint.reporters.view import Choice
from tests.samples import claim, conditional, fault, guarded, seen, span


def test_every_place_has_one_line():
    made = [
        claim(span(line=1), message="two\nlines"),
        guarded(span(line=2)),
        conditional(span(line=3)),
    ]
    view = seen(made, Choice(Confidence.MEDIUM, guarded=True), faults=[fault()])
    assert list(render(view, plain)) == [
        "pkg/broken.py:2:3: invalid-syntax: '(' was never closed",
        "pkg/a.py:1:1: KV900 two lines",
        "pkg/a.py:2:1: KV900 [guarded by pkg/a.py:9] every region gets the slots of the first",
        "pkg/a.py:3:1: KV900 [conditional] every region gets the slots of the first",
        "1 assumption in 1 file, 1 file not understood",
    ]
