import json

from kvlint.reporters import json as whole
from kvlint.reporters.json_lines import render
from kvlint.reporters.paint import plain
from tests.samples import claim, fault, seen, span


def test_every_line_is_an_object_of_the_json_format():
    view = seen([claim(span("a.py")), claim(span("z.py"))], faults=[fault()])
    lines = list(render(view, plain))
    assert not any("\n" in line for line in lines)
    assert [json.loads(line) for line in lines] == json.loads(*whole.render(view, plain))


def test_nothing_found_is_no_line():
    assert list(render(seen(), plain)) == []
