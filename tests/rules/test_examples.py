"""Every rule, by its own documents: BAD is reported, GOOD is not, all headings are there."""

from textwrap import dedent

import pytest

from kvlint.engine.check import check
from kvlint.engine.registry import all_rules
from kvlint.reporters.view import Choice
from kvlint.rule import HEADINGS

RULES = [pytest.param(rule, id=rule.code) for rule in all_rules()]


@pytest.mark.parametrize("rule", RULES)
def test_the_bad_example_is_reported_by_default(rule, project):
    root = project({"example.py": dedent(rule.BAD)})
    report = check(root, [root], all_rules())
    assert not report.faults
    assert rule.code in {f.code for f in report.findings if Choice().shows(f)}


@pytest.mark.parametrize("rule", RULES)
def test_the_good_example_is_silent_by_default(rule, project):
    root = project({"example.py": dedent(rule.GOOD)})
    report = check(root, [root], all_rules())
    assert not report.faults
    assert [f for f in report.findings if Choice().shows(f)] == []


@pytest.mark.parametrize("rule", RULES)
def test_every_heading_is_there_in_order_and_filled(rule):
    documentation = rule.documentation()
    assert tuple(documentation.sections) == HEADINGS
    assert documentation.summary
    # The examples themselves are BAD and GOOD; these two may add words, the others must.
    code = {"Example", "Use instead"}
    assert all(text for title, text in documentation.sections.items() if title not in code)
    assert "https://" in documentation.sections["References"]
