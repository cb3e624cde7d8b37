import json

from kvlint.reporters.paint import plain
from kvlint.reporters.statistics import render, render_json
from tests.samples import claim, conditional, fault, guarded, seen, span

CLAIMS = [
    *(claim(span(line=line)) for line in range(1, 11)),
    guarded(),
    conditional(),
    claim(code="KV901"),
    guarded(code="KV902"),
    claim(code="KV903", by_name_only=True),
]


def test_each_rule_has_one_line_the_most_frequent_first():
    assert list(render(seen(CLAIMS, faults=[fault()]), plain)) == [
        "10  KV900  sample-rule (1 guarded, 1 conditional hidden)",
        " 1  -      invalid-syntax",
        " 1  KV901  sample-rule",
        " 0  KV902  sample-rule (1 guarded hidden)",
        " 0  KV903  sample-rule (1 less sure hidden)",
        (
            "2 assumptions in 1 file, 1 file not understood; "
            "2 guarded, 1 conditional, 1 less sure hidden"
        ),
    ]


def test_programs_get_the_same_counts():
    rows = json.loads("\n".join(render_json(seen(CLAIMS))))
    assert rows[0] == {
        "code": "KV900",
        "name": "sample-rule",
        "shown": 10,
        "guarded_hidden": 1,
        "conditional_hidden": 1,
        "less_sure_hidden": 0,
    }
