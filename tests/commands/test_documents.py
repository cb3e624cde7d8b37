"""`kvlint rules` and `kvlint explain`: what the rules say about themselves."""

import json

import pytest

from kvlint.findings import Severity
from kvlint.rule import Rule


class Documented(Rule):
    """One count stands for all.

    ## What it assumes
    That counts agree.

    ## Example
    Read like this:

    ## Use instead

    ## References
    - https://example.org/1
    """

    name = "documented"
    code = "KV900"
    severity = Severity.WARNING
    since = "0.1.0"
    preview = True
    BAD = """
        n = counts[0]
    """
    GOOD = """
        n = min(counts)
    """

    def check(self, program):
        yield from ()


@pytest.fixture(autouse=True)
def _registered(rules):
    rules(Documented())


def test_rules_are_listed_one_a_line(kvlint):
    assert kvlint("rules").out.splitlines() == [
        "KV900  documented  warning  One count stands for all. (preview)",
        "1 rule; `kvlint explain CODE` tells all about one",
    ]


def test_rules_are_listed_for_programs(kvlint):
    assert json.loads(kvlint("rules", "--output-format", "json").out) == [
        {
            "code": "KV900",
            "name": "documented",
            "summary": "One count stands for all.",
            "severity": "warning",
            "confidence": "high",
            "since": "0.1.0",
            "preview": True,
        }
    ]


@pytest.mark.parametrize("wanted", ["KV900", "kv900", "documented"])
def test_a_rule_is_explained_with_its_examples_in_place(kvlint, wanted):
    assert (
        kvlint("explain", wanted).out
        == """\
# KV900 documented

One count stands for all.

Severity warning, since kvlint 0.1.0; preview: runs only when selected by its code or name.

## What it assumes

That counts agree.

## Example

Read like this:

In full, found:

    n = counts[0]

## Use instead

In full, silent:

    n = min(counts)

## References

- https://example.org/1
"""
    )


def test_a_rule_is_explained_for_programs(kvlint):
    found = json.loads(kvlint("explain", "KV900", "--output-format", "json").out)
    assert found["sections"]["What it assumes"] == "That counts agree."
    assert (found["bad"], found["good"]) == ("n = counts[0]\n", "n = min(counts)\n")


def test_what_has_no_code_is_explained_in_a_line(kvlint):
    code, out, err = kvlint("explain", "unreadable")
    assert (code, err) == (0, "")
    assert out == "The file cannot be opened or read, so nothing in it is checked.\n"
    found = json.loads(kvlint("explain", "unreadable", "--output-format", "json").out)
    assert (found["code"], found["name"]) == (None, "unreadable")


def test_an_unknown_rule_is_one_line(kvlint):
    code, out, err = kvlint("explain", "KV901")
    assert (code, out) == (2, "")
    assert err == "kvlint: unknown rule 'KV901'; did you mean KV900?\n"
    assert (
        kvlint("explain", "KV9").err == "kvlint: 'KV9' only begins KV900: write the code in full\n"
    )
