"""Whatever names and code hold, what a format writes can be read by those it is for."""

import json
import os
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from kvlint.findings import Step
from kvlint.reporters import DATA, reporter
from kvlint.reporters.paint import plain
from kvlint.reporters.view import Choice
from tests.samples import claim, fault, guarded, seen, span

# A name is bytes without / and zero; a text of the code may be anything, half pairs too.
NAMES = st.binary(min_size=1).map(lambda data: os.fsdecode(data.translate(None, b"/\0")) + "x.py")
TEXTS = st.text(st.characters(exclude_categories=()))


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


@given(NAMES, TEXTS)
def test_every_format_copes_with_every_name_and_text(name, text):
    trace = (Step(span(name), text),)
    view = seen(
        [claim(span(name), message=text, settle=text, trace=trace), guarded(span(name, 2))],
        Choice(guarded=True),
        faults=[fault(name)],
    )
    for format_name in DATA:
        lines = list(reporter(format_name).render(view, plain))
        written = "".join(f"{line}\n" for line in lines)
        written.encode()
        if format_name == "github":
            assert len(lines) == len(written.splitlines()) == 3
        elif format_name == "junit":
            ElementTree.fromstring(written)
        else:
            parts = lines if format_name == "json-lines" else [written]
            for string in strings([json.loads(part) for part in parts]):
                string.encode()
