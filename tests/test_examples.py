"""`make demo`: the faulty examples are found at their marks, the repaired ones are silent."""

import re
from pathlib import Path

import pytest

from kvlint.engine.check import check
from kvlint.engine.registry import all_rules
from kvlint.reporters.view import Choice

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
FILES = sorted(EXAMPLES.glob("*/*.py"))
MARK = re.compile(r"  # (KV\d+(?:, KV\d+)*)$")


@pytest.fixture(scope="module")
def found():
    """What `kvlint check examples` shows, run where the project is this repository."""
    report = check(ROOT, [EXAMPLES], all_rules())
    assert not report.faults
    return {(f.span.path, f.code, f.span.line) for f in report.findings if Choice().shows(f)}


def marks(path: Path) -> set[tuple[str, str, int]]:
    return {
        (path.relative_to(ROOT).as_posix(), code, number)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (mark := MARK.search(line))
        for code in mark[1].split(", ")
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_findings_stand_where_the_comments_say(path, found):
    name = path.relative_to(ROOT).as_posix()
    assert {place for place in found if place[0] == name} == marks(path)


def test_the_faults_are_shown_by_the_files_that_are_named_so():
    faulty = {path.stem: {code for _, code, _ in marks(path)} for path in FILES if marks(path)}
    assert faulty == {
        "transfer_faulty": {"KV101", "KV102", "KV103"},
        "connector_faulty": {"KV101", "KV102", "KV205"},
        "serve": {"KV101", "KV103"},
        "transfer": {"KV101", "KV103"},
    }
