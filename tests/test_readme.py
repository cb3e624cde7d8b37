"""What the README shows is what the tool prints."""

import importlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from kvlint.cli import app
from kvlint.engine.check import check
from kvlint.engine.registry import all_rules, collect
from kvlint.findings import Finding
from kvlint.reporters.view import Choice
from kvlint.rule import HEADINGS, Rule

ROOT = Path(__file__).parents[1]


def test_the_finding_in_the_readme_is_real(monkeypatch):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = text.split("<!-- finding:start -->")[1].split("<!-- finding:end -->")[0]
    monkeypatch.chdir(ROOT)
    printed = CliRunner().invoke(app, ["check", "examples"]).output
    assert shown.strip().strip("`").strip() in printed


def test_the_verification_in_the_readme_is_real(monkeypatch):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    before, after = text.split("<!-- verify:start -->")
    command = before.rpartition("kvlint verify ")[2].replace("\\\n", " ").split()
    monkeypatch.chdir(ROOT)
    printed = CliRunner().invoke(app, ["verify", "--no-cache", *command]).output
    assert after.split("<!-- verify:end -->")[0].strip().strip("`").strip() in printed


def test_the_two_commands_follow_the_finding():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.index("finding:end") < text.index("make demo") < text.index("make test")


@pytest.fixture
def rule(tmp_path, monkeypatch) -> Rule:
    """The rule that the README shows, out of a file of its own."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = text.split("<!-- rule:start -->")[1].split("<!-- rule:end -->")[0]
    (tmp_path / "first_device_stands_for_all.py").write_text(shown.strip().strip("`")[6:])
    monkeypatch.syspath_prepend(tmp_path)
    (found,) = collect([importlib.import_module("first_device_stands_for_all")])
    return found


def test_the_rule_in_the_readme_is_complete(rule, project):
    def found(module: str) -> list[Finding]:
        root = project({"example.py": module})
        report = check(root, [root], [*all_rules(), rule])
        return [finding for finding in report.findings if Choice().shows(finding)]

    assert (rule.name, rule.code) == ("first-device-stands-for-all", "KV901")
    assert tuple(rule.documentation().sections) == HEADINGS
    assert "KV901" in {finding.code for finding in found(rule.BAD)}
    assert found(rule.GOOD) == []
