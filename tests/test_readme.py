"""What the README shows is what the tool prints."""

from pathlib import Path

from click.testing import CliRunner

from kvlint.cli import app

ROOT = Path(__file__).parents[1]


def test_the_finding_in_the_readme_is_real(monkeypatch):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = text.split("<!-- finding:start -->")[1].split("<!-- finding:end -->")[0]
    monkeypatch.chdir(ROOT)
    printed = CliRunner().invoke(app, ["check", "examples"]).output
    assert shown.strip().strip("`").strip() in printed


def test_the_two_commands_follow_the_finding():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.index("finding:end") < text.index("make demo") < text.index("make test")
